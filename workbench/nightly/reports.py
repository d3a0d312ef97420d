"""The reports of a stack's nightly rechecks: which there are, and what one says in a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from functions.core.recheck_day import DayError, day
from workbench.errors import UserError
from workbench.nightly.machine import Machine
from workbench.policy.document import one_line

Form = Literal["html", "json"]
PREFIX: Final = "nightly/reports/"
_KEY: Final = re.compile(r"nightly/reports/model=([^/]+)/date=(\d{4}-\d{2}-\d{2})/report\.json", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A report that there is."""

    date: str
    model: str

    def key(self, form: Form) -> str:
        """Where it lies in the bucket."""
        return f"{PREFIX}model={self.model}/date={self.date}/report.{form}"


def entries(machine: Machine, model: str | None = None) -> list[Entry]:
    """The reports there are, newest first; of one model, or of all."""
    pages = machine.objects.get_paginator("list_objects_v2").paginate(Bucket=machine.bucket, Prefix=PREFIX)
    matches = (_KEY.fullmatch(item["Key"]) for page in pages for item in page.get("Contents", []))
    found = [Entry(match[2], match[1]) for match in matches if match is not None]
    return sorted((each for each in found if model in (None, each.model)), reverse=True)


def entry(machine: Machine, date: str, model: str | None) -> Entry:
    """The report of a day. Raises `UserError` naming the days there are, or the models to choose from."""
    known = entries(machine, model)
    found = [each for each in known if each.date == checked(date)]
    if not found:
        near = ", ".join(dict.fromkeys(each.date for each in known[:5])) or "none yet"
        raise UserError(
            f"stack {machine.stack} has no report of {date}; the newest are of: {near}. Make it with "
            f"`inferlane nightly run --date {date} --stack {machine.stack}`"
        )
    if len(found) > 1:
        raise UserError(f"reports of {date} are of {', '.join(each.model for each in found)}: choose one with --model")
    return found[0]


def content(machine: Machine, key: str) -> bytes:
    """The bytes of a report."""
    return machine.objects.get_object(Bucket=machine.bucket, Key=key)["Body"].read()


def document(machine: Machine, found: Entry) -> dict[str, Any]:
    """A report as its JSON says it. Raises `UserError` when it is none."""
    try:
        read = json.loads(content(machine, found.key("json")))
    except ValueError:
        read = None
    if not isinstance(read, dict) or not isinstance(read.get("headline"), dict):
        raise UserError(f"the report of {found.date} in bucket {machine.bucket} cannot be read: run the day again")
    return read


def checked(date: str) -> str:
    """A date such as 2026-12-01. Raises `UserError`."""
    try:
        return day(date, "UTC").date
    except DayError as error:
        raise UserError(one_line(str(error))) from None


def headline(told: Mapping[str, Any]) -> str:
    """What a report found, in two lines."""
    agreement, kappa, missed = told.get("agreement"), told.get("kappa"), told.get("missed_of_passed")
    cost = told.get("cost_usd")
    counts = f"{told.get('verdicts', 0):,} verdicts of {told.get('checked', 0):,} requests"
    first = (
        f"{counts} ({told.get('requests', 0):,} captured)",
        "" if agreement is None else f"{agreement:.2%} agreement",
        "" if kappa is None else f"kappa {kappa:.3f}",
    )
    second = (
        f"{told.get('missed', 0):,} missed" + ("" if missed is None else f" ({missed:.2%} of what passed)"),
        f"{told.get('false_alarms', 0):,} false alarms",
        f"scores {told.get('drift', 'unknown')}",
        "" if cost is None else f"${cost:.4f}",
    )
    return "\n".join(", ".join(part for part in line if part) for line in (first, second))
