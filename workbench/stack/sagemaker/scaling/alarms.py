"""When an alarm goes off: CloudWatch's M-out-of-N rule with its treatment of missing data. Pure.

An alarm looks at a few more periods than it evaluates. With N real points among them it judges the newest N of these,
whatever is missing between them; with fewer, the missing ones count as TreatMissingData says:

breaching, notBreaching   as that
ignore                    the state stays, unless the real points alone decide
missing                   INSUFFICIENT_DATA without any real point. With breaching ones only, fewer than M, ALARM when
                          the oldest of them within the last N periods is at least M periods old, else the state stays

Source: CloudWatch user guide, "Evaluating an alarm" and "Configuring how CloudWatch alarms treat missing data"; its two
tables are unit tests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.stack.sagemaker.scaling.metric_math import Expression, ExpressionError, Series, parse

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
Missing = Literal["breaching", "notBreaching", "ignore", "missing"]
EXTRA_PERIODS = 2
"""Periods looked at beyond those evaluated; CloudWatch documents no number, and its tables show 5 for 3."""

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One CloudWatch metric and the statistic of it."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    stat: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """What an alarm looks at: metrics and expressions by id, of which `result` is judged."""

    metrics: Mapping[str, Metric]
    expressions: Mapping[str, Expression]
    result: str

    def series(self, read: Mapping[str, Series], period_s: float, length: int) -> Series:
        """The judged series, from those of the metrics."""
        known = dict(read)
        pending = dict(self.expressions)
        while pending:
            ready = [name for name, expression in pending.items() if expression.names <= known.keys()]
            for name in ready:
                known[name] = pending.pop(name).evaluate(known, period_s, length)
        return known[self.result]


@dataclass(frozen=True, slots=True)
class Rule:
    """An alarm's threshold. `periods` is N, `datapoints` M."""

    comparison: str
    threshold: float
    periods: int
    datapoints: int
    missing: Missing = "missing"

    @property
    def range(self) -> int:
        """Periods to look at."""
        return self.periods + EXTRA_PERIODS

    def breaches(self, value: float) -> bool:
        """Whether one point is beyond the threshold."""
        return COMPARISONS[self.comparison](value, self.threshold)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm as it is evaluated here."""

    name: str
    watched: Watched
    period_s: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Verdict:
    """An evaluation's end: the state, and the real points it rests on, oldest first."""

    state: State
    points: tuple[float, ...] = ()


def judge(rule: Rule, slots: Series, before: State) -> Verdict:
    """The alarm's state by the last `rule.range` periods, oldest first."""
    real = tuple(v for v in slots[-rule.range :] if v is not None)[-rule.periods :]
    breaching = sum(map(rule.breaches, real))
    missing = rule.periods - len(real)
    if breaching >= rule.datapoints:
        return Verdict("ALARM", real)
    if not missing or rule.missing == "notBreaching":
        return Verdict("OK", real)
    if rule.missing == "breaching":
        return Verdict("ALARM" if breaching + missing >= rule.datapoints else "OK", real)
    if breaching < len(real):
        return Verdict("OK", real)
    if rule.missing == "ignore":
        return Verdict(before, real)
    if not real:
        return Verdict("INSUFFICIENT_DATA")
    return Verdict("ALARM" if _old_enough(rule, slots) else before, real)


def _old_enough(rule: Rule, slots: Series) -> bool:
    # Every real point breaches here.
    recent = slots[-rule.periods :]
    oldest = next((i for i, value in enumerate(recent) if value is not None), None)
    return oldest is not None and len(recent) - oldest >= rule.datapoints


def watch_one(metric: Metric) -> Watched:
    """An alarm's look at one metric."""
    return Watched({"m1": metric}, {}, "m1")


def watch_queries(queries: Sequence[Mapping[str, Any]]) -> Watched:
    """An alarm's look at MetricDataQuery structures. Raises `ExpressionError`."""
    metrics: dict[str, Metric] = {}
    expressions: dict[str, Expression] = {}
    returned: list[str] = []
    for query in queries:
        name = query["Id"]
        if name in metrics or name in expressions:
            raise ExpressionError(f"the id {name!r} is used twice")
        if query.get("ReturnData", True):
            returned.append(name)
        if ("Expression" in query) == ("MetricStat" in query):
            raise ExpressionError(f"{name!r} must have either Expression or MetricStat")
        if "Expression" in query:
            expressions[name] = parse(query["Expression"])
        else:
            stat = query["MetricStat"]
            metrics[name] = metric_of(stat["Metric"], stat["Stat"], stat.get("Unit"))
    if len(returned) != 1:
        raise ExpressionError(f"exactly one query must have ReturnData true; got {returned or 'none'}")
    _check_names(metrics, expressions)
    return Watched(metrics, expressions, returned[0])


def metric_of(document: Mapping[str, Any], stat: str, unit: str | None) -> Metric:
    """From CloudWatch's Metric structure."""
    dimensions = tuple(sorted((d["Name"], d["Value"]) for d in document.get("Dimensions") or ()))
    return Metric(document["Namespace"], document["MetricName"], dimensions, stat, unit)


def _check_names(metrics: Mapping[str, Metric], expressions: Mapping[str, Expression]) -> None:
    known, pending = set(metrics), dict(expressions)
    while ready := [name for name, expression in pending.items() if expression.names <= known]:
        known.update(ready)
        for name in ready:
            del pending[name]
    if pending:
        name, expression = next(iter(pending.items()))
        unknown = sorted(expression.names - known)
        raise ExpressionError(f"expression {name!r} refers to {', '.join(unknown)}, which nothing defines before it")
