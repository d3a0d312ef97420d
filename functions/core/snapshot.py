"""All lanes' metric series and health at one moment, and what can still be believed of them at `now`.

Schema `inferlane/snapshot/v1`. Times are Unix seconds inside, ISO 8601 outside. A point stamped *t* covers
[t, t + period); a point not finished at `now` is ignored. A lane's metrics are *unknown* when the snapshot, or that
lane's newest finished point, is more than ten minutes old: CloudWatch itself lags one to three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from functions.core.document import DocumentError, Fields, Path, as_choice, as_list, as_number, as_time, show_time

SCHEMA: Final = "inferlane/snapshot/v1"
STALE_S: Final = 600.0
"""Age at which metrics become unknown, seconds."""
PERIOD_S: Final = 60.0
"""Period of a series that does not state one, seconds."""
METRICS: Final = (
    "cpu_percent",
    "gpu_percent",
    "memory_percent",
    "concurrency",
    "invocations",
    "model_latency_p50_ms",
    "model_latency_p99_ms",
    "errors",
    "throttles",
    "instances",
)
"""Every metric a signal may name. Percents are 0–100, already divided by cores or GPUs."""

Breaker = Literal["closed", "open", "half_open"]
BREAKERS: Final = ("closed", "open", "half_open")
_EXPERIMENTS: Final = ("running", "stopped")
Point = tuple[float, float]
"""(stamp in Unix seconds, value)."""


class SnapshotError(DocumentError):
    """The snapshot cannot be read."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one metric, oldest first, one per stamp."""

    points: tuple[Point, ...]
    period_s: float = PERIOD_S

    @classmethod
    def of(cls, points: list[Point], period_s: float = PERIOD_S) -> Series:
        """A series of points in any order; of equal stamps the last wins."""
        return cls(tuple(sorted(dict(points).items())), period_s)

    def finished(self, now: float) -> tuple[Point, ...]:
        """The points whose period lies wholly before `now`."""
        end, limit = len(self.points), now - self.period_s
        while end and self.points[end - 1][0] > limit:
            end -= 1
        return self.points[:end]

    def newest(self, now: float) -> Point | None:
        """The newest finished point."""
        limit = now - self.period_s
        for point in reversed(self.points):
            if point[0] <= limit:
                return point
        return None


@dataclass(frozen=True, slots=True)
class LatchState:
    """A latch at the start of the window."""

    on: bool
    since: float | None = None


@dataclass(frozen=True, slots=True)
class LaneState:
    """What is known of one lane."""

    series: Mapping[str, Series] = field(default_factory=dict)
    instances: int | None = None
    in_flight: int | None = None
    breaker: Breaker = "closed"

    def newest_stamp(self, now: float) -> float | None:
        """Stamp of the newest finished point over all series."""
        stamps = [point[0] for series in self.series.values() if (point := series.newest(now)) is not None]
        return max(stamps, default=None)

    def fresh(self, metric: str, now: float) -> float | None:
        """The metric's newest finished value, unless older than ten minutes."""
        series = self.series.get(metric)
        point = series.newest(now) if series is not None else None
        return point[1] if point is not None and now - point[0] <= STALE_S else None


@dataclass(frozen=True, slots=True)
class ModelState:
    """What is known of one model's lanes, and its latches at the window's start."""

    lanes: Mapping[str, LaneState] = field(default_factory=dict)
    latches: Mapping[str, LatchState] = field(default_factory=dict)


_NO_LANE: Final = LaneState()
_NO_MODEL: Final = ModelState()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is known, taken at one moment."""

    taken_at: float | None
    """Unix seconds; None when no reading ever succeeded."""
    models: Mapping[str, ModelState] = field(default_factory=dict)
    latches: Mapping[str, LatchState] = field(default_factory=dict)
    """Carried latches that hold for every model; a model's own come first."""
    stopped: frozenset[str] = frozenset()
    """Experiments whose guard tripped: they take nothing."""

    @classmethod
    def from_json(cls, document: object) -> Snapshot:
        """Read a snapshot document (parsed JSON). Raises `SnapshotError`."""
        try:
            root = Fields.of(document)
            root.schema(SCHEMA)
            models = root.fields_or_empty("models")
            return cls(
                taken_at=as_time(root.require("taken_at"), root.at("taken_at")),
                models={name: _model(models.fields(name)) for name in models.values},
                latches=_latches(root),
                stopped=_stopped(root.fields_or_empty("experiments")),
            )
        except DocumentError as error:
            raise SnapshotError(error.path, error.cause) from error

    def to_json(self) -> dict[str, object]:
        """The contract form; `from_json` reads it back."""
        return {
            "schema": SCHEMA,
            "taken_at": show_time(self.taken_at or 0.0),
            "latches": {name: _show_latch(state) for name, state in self.latches.items()},
            "experiments": dict.fromkeys(sorted(self.stopped), "stopped"),
            "models": {
                name: {
                    "latches": {latch: _show_latch(state) for latch, state in model.latches.items()},
                    "lanes": {lane: _show_lane(state) for lane, state in model.lanes.items()},
                }
                for name, model in self.models.items()
            },
        }

    def lane(self, model: str, lane: str) -> LaneState:
        """What is known of a lane; nothing when it was not read."""
        return self.models.get(model, _NO_MODEL).lanes.get(lane, _NO_LANE)

    def latch(self, model: str, signal: str) -> LatchState | None:
        """The latch carried into the window, if any."""
        own = self.models.get(model, _NO_MODEL).latches.get(signal)
        return own if own is not None else self.latches.get(signal)

    def age_s(self, now: float) -> float | None:
        """How old the reading is."""
        return None if self.taken_at is None else max(0.0, now - self.taken_at)

    def known(self, model: str, lane: str, now: float) -> bool:
        """Whether the lane's metrics may be believed at `now`."""
        if self.taken_at is None or now - self.taken_at > STALE_S:
            return False
        stamp = self.lane(model, lane).newest_stamp(now)
        return stamp is not None and now - stamp <= STALE_S

    def with_in_flight(self, own: Mapping[tuple[str, str], int]) -> Snapshot:
        """The same with this instance's own requests in flight, by (model, lane), counted at least."""
        models = dict(self.models)
        for (model, lane), count in own.items():
            state = models.get(model, _NO_MODEL)
            known = state.lanes.get(lane, _NO_LANE)
            if count > (known.in_flight or 0):
                lanes = {**state.lanes, lane: replace(known, in_flight=count)}
                models[model] = replace(state, lanes=lanes)
        return replace(self, models=models)


def _model(fields: Fields) -> ModelState:
    lanes = fields.fields_or_empty("lanes")
    return ModelState({name: _lane(lanes.fields(name)) for name in lanes.values}, _latches(fields))


def _latches(fields: Fields) -> dict[str, LatchState]:
    found = fields.fields_or_empty("latches")
    return {name: _latch(found.fields(name)) for name in found.values}


def _stopped(fields: Fields) -> frozenset[str]:
    states = {name: as_choice(value, fields.at(name), _EXPERIMENTS, "state") for name, value in fields.values.items()}
    return frozenset(name for name, state in states.items() if state == "stopped")


def _latch(fields: Fields) -> LatchState:
    on = fields.require("on")
    if not isinstance(on, bool):
        raise DocumentError(fields.at("on"), "expected true or false")
    since = fields.get("since")
    return LatchState(on, None if since is None else as_time(since, fields.at("since")))


def _lane(fields: Fields) -> LaneState:
    period_s = fields.number_or("period_s", PERIOD_S, at_least=0.001)
    series = fields.fields_or_empty("series")
    return LaneState(
        series={name: _series(series.get(name), series.at(name), period_s) for name in series.values},
        instances=None if fields.get("instances") is None else fields.integer("instances", at_least=0),
        in_flight=None if fields.get("in_flight") is None else fields.integer("in_flight", at_least=0),
        breaker=cast(Breaker, as_choice(fields.text_or("breaker", "closed"), fields.at("breaker"), BREAKERS)),
    )


def _series(value: object, path: Path, period_s: float) -> Series:
    """A list of [time, value], or `{"period_s": 10, "points": [[time, value], …]}`."""
    if isinstance(value, Mapping):
        fields = Fields.of(value, path)
        period_s = fields.number_or("period_s", period_s, at_least=0.001)
        value, path = fields.require("points"), fields.at("points")
    points: list[Point] = []
    for i, item in enumerate(as_list(value, path)):
        pair = as_list(item, (*path, i))
        if len(pair) != 2:
            raise DocumentError((*path, i), f"expected [time, value], found {len(pair)} elements")
        points.append((as_time(pair[0], (*path, i, 0)), as_number(pair[1], (*path, i, 1))))
    return Series.of(points, period_s)


def _show_latch(state: LatchState) -> dict[str, object]:
    return {"on": state.on, "since": None if state.since is None else show_time(state.since)}


def _show_lane(state: LaneState) -> dict[str, object]:
    series = {name: _show_series(series) for name, series in state.series.items()}
    return {"series": series, "instances": state.instances, "in_flight": state.in_flight, "breaker": state.breaker}


def _show_series(series: Series) -> object:
    points = [[show_time(stamp), value] for stamp, value in series.points]
    return points if series.period_s == PERIOD_S else {"period_s": series.period_s, "points": points}
