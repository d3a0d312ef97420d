"""Fakes of the ports: a lane that does what it is told, a clock that stands until it is moved, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from functions.core.outcome import Kind, Outcome
from functions.core.policy import Policy
from functions.core.receipt import Receipt
from functions.core.snapshot import Snapshot
from functions.core.topology import SyncLane
from functions.ports import KeyRecord


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.passed = 0.0

    def now(self) -> float:
        return self._now + self.passed

    def monotonic(self) -> float:
        return self.passed

    def advance(self, seconds: float) -> None:
        self.passed += seconds


@dataclass(frozen=True)
class Invocation:
    """One recorded attempt."""

    lane: str
    body: bytes
    content_type: str | None
    accept: str | None
    timeout_s: float
    headers: Mapping[str, str]


Behaviour = Callable[[Invocation], tuple[Outcome, float]]
"""What a lane does: its outcome, and how long it takes if it is let."""

ANSWER = Outcome(Kind.OK, 200, b'{"label":"ok"}', "application/json")


def healthy(took_s: float = 0.05, outcome: Outcome = ANSWER) -> Behaviour:
    """A lane that answers."""
    return lambda _: (outcome, took_s)


def failing(kind: Kind, took_s: float = 0.01, status: int | None = None) -> Behaviour:
    """A lane that fails in one way."""
    return lambda _: (Outcome(kind, status, detail="Endpoint inferlane-test of account 123456789012"), took_s)


def hanging() -> Behaviour:
    """A lane that never answers."""
    return lambda _: (Outcome(Kind.OK, 200), float("inf"))


class FakeInvoker:
    """Lanes by name. Keeps the port's promise: no attempt outlives its timeout."""

    def __init__(self, clock: FakeClock, lanes: dict[str, Behaviour]) -> None:
        self.lanes = lanes
        self.seen: list[Invocation] = []
        self._clock = clock

    def invoke(
        self,
        lane: SyncLane,
        body: bytes,
        content_type: str | None,
        accept: str | None,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> Outcome:
        invocation = Invocation(lane.name, body, content_type, accept, timeout_s, headers)
        self.seen.append(invocation)
        outcome, took_s = self.lanes[lane.name](invocation)
        self._clock.advance(min(took_s, timeout_s))
        return outcome if took_s <= timeout_s else Outcome(Kind.TIMEOUT, detail="the attempt's time was over")


@dataclass
class FakeSignals:
    """A snapshot to hand out."""

    seen: Snapshot

    def snapshot(self, now: float) -> Snapshot:
        return self.seen


@dataclass
class FakePolicies:
    """A policy to hand out, or none."""

    current: Policy | None

    def policy(self, now: float) -> Policy | None:
        return self.current


@dataclass
class FakeTelemetry:
    """Keeps receipts; fails when told to."""

    receipts: list[Receipt] = field(default_factory=list)
    broken: bool = False

    def record(self, receipt: Receipt) -> None:
        if self.broken:
            raise OSError("disk full")
        self.receipts.append(receipt)


@dataclass
class FakeLog:
    """Keeps lines as (level, message, extra)."""

    lines: list[tuple[str, str, Mapping[str, object]]] = field(default_factory=list)

    def warning(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        self.lines.append(("warning", msg, extra or {}))

    def error(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        self.lines.append(("error", msg, extra or {}))

    def exception(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        self.lines.append(("exception", msg, extra or {}))


@dataclass
class FakeKeys:
    """Keys by hash."""

    rows: dict[str, KeyRecord]

    def find(self, key_hash: str) -> KeyRecord | None:
        return self.rows.get(key_hash)


class NoCount:
    """In-flight credit that nobody reads."""

    @contextmanager
    def holding(self, lane: str) -> Iterator[None]:
        yield


@dataclass
class FakeContext:
    """Lambda's context."""

    aws_request_id: str = "lambda-1"
    remaining_ms: int = 30_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms
