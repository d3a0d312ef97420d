"""The `prepare` Lambda: a day's captures become the nightly recheck's input. The state machine's first step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from functions.aws.recheck_errors import told
from functions.nightly_bootstrap import PrepareParts, prepare_parts
from functions.nightly_settings import read_nightly


def handler(event: object, context: object) -> dict[str, object]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return respond(event, _parts())


@cache
def _parts() -> PrepareParts:
    return prepare_parts(read_nightly())


def respond(event: object, parts: PrepareParts) -> dict[str, object]:
    """Prepare the day that the event names. Raises `RecheckError`."""
    with told("prepare", parts.log):
        return parts.prepare.prepare(event if isinstance(event, Mapping) else {})
