"""The report of a recheck as a document, schema `inferlane/recheck/v1`: the JSON beside the page, and reading it back.

The same run over the same baseline gives the same bytes: no clock is read, a report's time is its transform job's end.
A report that replaces another one (captures came in late, or the heavy model is a new one) says which, and how many
requests that one looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from functions.core.document import DocumentError, Fields, as_integer, show_time
from functions.core.recheck import Example, Findings, Slice
from functions.core.recheck_day import Day
from functions.core.recheck_measures import BINS, Drift, Estimate

SCHEMA: Final = "inferlane/recheck/v1"
BASELINE_DAYS: Final = 7
"""How many days before are what a day's scores are compared with."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a run's records come from, and what became of the captures that did not make it."""

    objects: int
    """Captured objects read."""
    lines: int
    unreadable: int
    """Lines that are no capture."""
    elsewhere: int
    """Lines of another day."""
    duplicates: int
    requests: int
    """Requests of the day."""
    unchecked: Mapping[str, int]
    """Of those, the ones that cannot be rechecked, by reason."""
    records: int
    """Lines for the heavy model."""
    verdicts: int
    """Of the light model on them."""

    @property
    def checked(self) -> int:
        """Requests that are rechecked."""
        return self.requests - sum(self.unchecked.values())

    @classmethod
    def from_json(cls, value: Fields) -> Sources:
        """What `to_json` gave. Raises `DocumentError`."""
        counts = {each.name: value.integer(each.name, at_least=0) for each in fields(cls) if each.name != "unchecked"}
        return cls(unchecked=_counts(value.fields("unchecked")), **counts)

    def to_json(self) -> dict[str, object]:
        """JSON's form."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Job:
    """The transform job, and what it cost."""

    name: str
    began: float | None
    ended: float
    """Unix seconds."""
    instance_type: str
    instance_count: int
    cost_usd: float | None

    @property
    def seconds(self) -> float | None:
        """Billed seconds of each instance."""
        return None if self.began is None else self.ended - self.began


@dataclass(frozen=True, slots=True)
class Before:
    """A report that this one builds on, or takes the place of."""

    date: str
    run: str
    requests: int
    ended: str
    """When it was made, ISO 8601."""

    @classmethod
    def from_json(cls, value: Fields) -> Before:
        """What `to_json` gave. Raises `DocumentError`."""
        requests = value.integer("requests", at_least=0)
        return cls(value.text("date"), value.text("run"), requests, value.text("made_at"))

    def to_json(self) -> dict[str, object]:
        """JSON's form."""
        return {"date": self.date, "run": self.run, "requests": self.requests, "made_at": self.ended}


@dataclass(frozen=True, slots=True)
class Known:
    """What is read back of an earlier report."""

    before: Before
    baseline: tuple[Before, ...]
    replaces: tuple[Before, ...]
    light_scores: Mapping[int, int]
    heavy_scores: Mapping[int, int]
    headline: Mapping[str, object]

    @classmethod
    def from_json(cls, document: object) -> Known:
        """Read a report's document. Raises `DocumentError`."""
        root = Fields.of(document)
        root.schema(SCHEMA)
        sources, scores = root.fields("sources"), root.fields("scores")
        requests = sources.integer("requests", at_least=0)
        return cls(
            before=Before(root.text("date"), root.text("run"), requests, root.text("made_at")),
            baseline=tuple(Before.from_json(each) for each in _mappings(root, "baseline")),
            replaces=tuple(Before.from_json(each) for each in _mappings(root, "replaces")),
            light_scores=_histogram(scores, "light"),
            heavy_scores=_histogram(scores, "heavy"),
            headline=root.fields("headline").values,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A day's recheck."""

    stack: str
    day: Day
    run: str
    light_model: str
    heavy_model: str
    passing: str
    sources: Sources
    unanswered: Mapping[str, int]
    """Verdicts of the light model that the heavy one did not answer, by reason."""
    findings: Findings
    job: Job
    baseline: tuple[Before, ...]
    light_drift: Drift
    heavy_drift: Drift
    light_baseline: Mapping[int, int]
    """The light model's scores on the days before, by bin."""
    replaces: tuple[Before, ...] = ()
    """Reports of the same day that this one takes the place of, the first one first."""

    @property
    def made_at(self) -> str:
        """ISO 8601."""
        return show_time(self.job.ended)

    @property
    def complete(self) -> bool:
        """Whether the day was over when it was made."""
        return self.job.ended >= self.day.ends

    def headline(self) -> dict[str, object]:
        """The few figures that a note, a metric or a command tells."""
        total = self.findings.total
        return {
            "requests": self.sources.requests,
            "checked": self.sources.checked,
            "verdicts": total.verdicts,
            "agreement": _value(total.agreement),
            "kappa": _value(self.findings.kappa),
            "missed": total.missed,
            "missed_of_flagged": _value(total.missed_of_flagged),
            "missed_of_passed": _value(total.missed_of_passed),
            "false_alarms": total.alarmed,
            "drift": self.light_drift.level,
            "cost_usd": None if self.job.cost_usd is None else round(self.job.cost_usd, 6),
        }

    def to_json(self) -> dict[str, object]:
        """The document."""
        found = self.findings
        return {
            "schema": SCHEMA,
            "stack": self.stack,
            "model": self.light_model,
            "heavy_model": self.heavy_model,
            "date": self.day.date,
            "timezone": self.day.zone,
            "window": {"from": show_time(self.day.begins), "to": show_time(self.day.ends)},
            "complete": self.complete,
            "run": self.run,
            "made_at": self.made_at,
            "headline": self.headline(),
            "sources": self.sources.to_json(),
            "unanswered": dict(self.unanswered),
            "passing_label": self.passing,
            "total": _slice(found.total),
            "kappa": _estimate(found.kappa),
            "confusion": {"labels": list(found.labels), "light_by_heavy": [list(row) for row in found.table]},
            "routes": {name: _slice(each) for name, each in found.routes.items()},
            "lanes": {name: _slice(each) for name, each in found.lanes.items()},
            "light_versions": {name: _slice(each) for name, each in found.light_versions.items()},
            "heavy_versions": {name: _slice(each) for name, each in found.heavy_versions.items()},
            "hours": [_slice(each) for each in found.hours],
            "scores": {
                "bins": BINS,
                "light": {str(index): count for index, count in found.light_scores.items()},
                "heavy": {str(index): count for index, count in found.heavy_scores.items()},
                "light_before": {str(index): count for index, count in self.light_baseline.items()},
            },
            "drift": {"light": _drift(self.light_drift), "heavy": _drift(self.heavy_drift)},
            "baseline": [each.to_json() for each in self.baseline],
            "examples": {
                "missed": [_example(each) for each in found.missed],
                "false_alarms": [_example(each) for each in found.alarmed],
            },
            "job": {
                "name": self.job.name,
                "began_at": None if self.job.began is None else show_time(self.job.began),
                "ended_at": show_time(self.job.ended),
                "seconds": self.job.seconds,
                "instance_type": self.job.instance_type,
                "instance_count": self.job.instance_count,
                "cost_usd": self.job.cost_usd,
            },
            "replaces": [each.to_json() for each in self.replaces],
        }


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else round(estimate.value, 6)


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {each.name: round(getattr(estimate, each.name), 6) for each in fields(estimate)}


def _slice(each: Slice) -> dict[str, object]:
    return {
        "verdicts": each.verdicts,
        "agreed": each.agreed,
        "light_flagged": each.light_flagged,
        "heavy_flagged": each.heavy_flagged,
        "missed": each.missed,
        "false_alarms": each.alarmed,
        "agreement": _estimate(each.agreement),
        "missed_of_flagged": _estimate(each.missed_of_flagged),
        "missed_of_passed": _estimate(each.missed_of_passed),
        "false_alarms_of_flagged": _estimate(each.alarmed_of_flagged),
    }


def _drift(each: Drift) -> dict[str, object]:
    told = {field.name: getattr(each, field.name) for field in fields(each)}
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in told.items()}


def _example(each: Example) -> dict[str, object]:
    return {
        "request_id": each.request_id,
        "number": each.number,
        "text": each.text,
        "light": {"label": each.light.label, "score": each.light.score},
        "heavy": {"label": each.heavy.label, "score": each.heavy.score},
    }


def _mappings(root: Fields, key: str) -> Sequence[Fields]:
    return [Fields.of(value, path) for value, path in root.items(key)]


def _counts(value: Fields) -> dict[str, int]:
    return {name: value.integer(name, at_least=0) for name in value.values}


def _histogram(scores: Fields, side: str) -> dict[int, int]:
    held = scores.fields(side)
    found: dict[int, int] = {}
    for name, count in held.values.items():
        if not name.isdecimal() or int(name) >= BINS:
            raise DocumentError(held.at(name), f"is no bin of {BINS}")
        found[int(name)] = as_integer(count, held.at(name), at_least=0)
    return found
