"""The `report` Lambda: the heavy model's answers become the nightly recheck's report. The state machine's last step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from functions.aws.recheck_errors import told
from functions.nightly_bootstrap import ReportParts, report_parts
from functions.nightly_settings import read_nightly


def handler(event: object, context: object) -> dict[str, object]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return respond(event, _parts())


@cache
def _parts() -> ReportParts:
    return report_parts(read_nightly())


def respond(event: object, parts: ReportParts) -> dict[str, object]:
    """Report on the run that the event names. Raises `RecheckError`."""
    with told("report", parts.log):
        return parts.reporter.report(event if isinstance(event, Mapping) else {})
