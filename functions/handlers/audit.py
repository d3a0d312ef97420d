"""The `audit` Lambda: the scheduler calls it every few hours."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from functions.batch_bootstrap import AuditParts, audit_parts
from functions.batch_settings import read_batch
from functions.handlers.turn import Context, turn


def handler(event: object, context: Context) -> dict[str, int]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return respond(_parts())


@cache
def _parts() -> AuditParts:
    return audit_parts(read_batch())


def respond(parts: AuditParts) -> dict[str, int]:
    """Count all records; the counts are metrics, and the answer to who asks by hand. Raises `TurnError`."""
    with turn("audit", parts.log) as found:
        census: dict[str, int] = asdict(parts.auditor.audit())
        found["census"] = census
    return census
