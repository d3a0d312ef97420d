"""Values by series and by bin in time, and the datums that a bin becomes when it is over. Pure.

A value counts in the bin in which it is seen; bins are stamped with their start. Equal values of a bin are one value
with a count, so that no statistic, percentiles included, is lost.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.stack.sagemaker.metrics.catalogue import Metric
from workbench.stack.sagemaker.metrics.points import Point

# PutMetricData: at most 150 values a datum, 1000 datums and 1 MB a call. 250 full datums are about half of that.
VALUES_PER_DATUM = 150
DATUMS_PER_CALL = 250
MINUTE_S = 60

Scope = tuple[tuple[str, str], ...]
"""Dimensions: names and values."""


class Series(NamedTuple):
    """What a datum belongs to."""

    namespace: str
    name: str
    unit: str
    scope: Scope
    period_s: float


@dataclass(slots=True)
class Bins:
    """Bins that are not over yet, or not taken."""

    _bins: dict[tuple[float, Series], Counter[float]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, scope: Scope, point: Point, at: float, period_s: float) -> None:
        """Keep a value seen at epoch second `at`, in bins of `period_s` real seconds."""
        self._bins[_key(scope, point.metric, at, period_s)][point.value] += 1

    def touch(self, scope: Scope, metric: Metric, at: float, period_s: float) -> None:
        """Have the bin published: as one zero if nothing else is seen in it."""
        self._bins[_key(scope, metric, at, period_s)].update()

    def take(self, now: float, lag_s: float) -> dict[str, list[Mapping[str, Any]]]:
        """Remove the bins that ended `lag_s` ago or earlier; returns PutMetricData's datums by namespace."""
        done = [key for key in self._bins if key[0] + key[1].period_s + lag_s <= now]
        taken: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for start, series in sorted(done):
            values = self._bins.pop((start, series))
            taken[series.namespace].extend(_datums(start, series, values))
        return taken


def _key(scope: Scope, metric: Metric, at: float, period_s: float) -> tuple[float, Series]:
    start = math.floor(at / period_s) * period_s
    return start, Series(metric.namespace, metric.name, metric.unit, scope, period_s)


def _datums(start: float, series: Series, values: Counter[float]) -> Iterator[Mapping[str, Any]]:
    pairs = sorted(values.items()) or [(0.0, 1)]
    for first in range(0, len(pairs), VALUES_PER_DATUM):
        part = pairs[first : first + VALUES_PER_DATUM]
        yield {
            "MetricName": series.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in series.scope],
            "Timestamp": start,
            "Unit": series.unit,
            "Values": [v for v, _ in part],
            "Counts": [float(n) for _, n in part],
            "StorageResolution": 1 if series.period_s < MINUTE_S else MINUTE_S,
        }
