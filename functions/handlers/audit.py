"""The `audit` Lambda: the scheduler calls it every hour."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from functions.batch_bootstrap import AuditParts, audit_parts
from functions.batch_settings import read_batch
from functions.handlers.turn import Context, turn


def handler(event: object, context: Context) -> None:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    respond(_parts())


@cache
def _parts() -> AuditParts:
    return audit_parts(read_batch())


def respond(parts: AuditParts) -> None:
    """Count all records; the counts are metrics. Raises `TurnError`."""
    with turn("audit", parts.log) as found:
        found["census"] = asdict(parts.auditor.audit())
