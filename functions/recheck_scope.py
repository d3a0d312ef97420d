"""Which recheck a stack has, and what its earlier ones said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from functions.batch_ports import Objects
from functions.core.document import DocumentError
from functions.core.recheck_day import Day, DayError, day, days_before, yesterday
from functions.core.recheck_report import BASELINE_DAYS, Known
from functions.core.recheck_run import Folders
from functions.core.topology import BatchLane
from functions.nightly_ports import RecheckError
from functions.ports import Log


@dataclass(frozen=True, slots=True)
class Scope:
    """Which recheck a stack has."""

    stack: str
    light_model: str
    heavy_model: str
    zone: str
    """IANA name: which day a request belongs to."""
    passing: str
    """The label that lets a text pass."""
    folders: Folders
    lane: BatchLane
    """The heavy model's, with all that a transform job needs."""

    def day(self, asked: Mapping[str, object], now: float) -> Day:
        """The day that an event asks for: its `date`, else the last one that is over. Raises `RecheckError`."""
        model = asked.get("model")
        if model not in (None, "", self.light_model):
            raise RecheckError(f"this stack rechecks model {self.light_model!r}, not {str(model)[:60]!r}")
        try:
            return day(str(asked.get("date") or yesterday(now, self.zone)), self.zone)
        except DayError as error:
            raise RecheckError(str(error)) from None


def report_keys(folders: Folders, date: str) -> dict[str, str]:
    """Where a day's report lies, by its form."""
    return {form: folders.report(date, form) for form in ("html", "json")}


def read_report(objects: Objects, folders: Folders, date: str, log: Log) -> Known | None:
    """A day's report, as far as later ones need it; None where there is none that this code can read."""
    key = folders.report(date, "json")
    body = objects.get(key)
    if body is None:
        return None
    try:
        return Known.from_json(json.loads(body))
    except (ValueError, DocumentError) as error:
        log.warning("a report cannot be read", extra={"key": key, "cause": str(error)})
        return None


def baseline(objects: Objects, scope: Scope, wanted: Day, log: Log) -> list[Known]:
    """The reports of the days before, newest first, that there are."""
    found = (read_report(objects, scope.folders, date, log) for date in days_before(wanted.date, BASELINE_DAYS))
    return [each for each in found if each is not None]
