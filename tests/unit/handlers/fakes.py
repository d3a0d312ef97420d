"""Fakes of the ports: a lane that does what it is told, a clock that stands until it is moved, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from functions.core.outcome import Kind, Outcome
from functions.core.policy import Policy
from functions.core.receipt import Attempt, Receipt
from functions.core.snapshot import Snapshot
from functions.core.topology import SyncLane
from functions.execute import Ticket
from functions.ports import KeyRecord, LaneKey


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
    patience_s: float | None = None
    """What the last caller had."""

    def policy(self, now: float, patience_s: float = 0.0) -> Policy | None:
        self.patience_s = patience_s
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


class FakeFunctionLog(FakeLog):
    """Takes what is well, too."""

    def info(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        self.lines.append(("info", msg, extra or {}))

    def levels(self) -> list[str]:
        return [level for level, _, _ in self.lines]


@dataclass
class FakeKeys:
    """Keys by hash."""

    rows: dict[str, KeyRecord]

    def find(self, key_hash: str) -> KeyRecord | None:
        return self.rows.get(key_hash)


class FakeRace:
    """Attempts side by side on one fake clock: each runs at once, and its end is put where it belongs."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._ends: list[tuple[float, int, Outcome | Exception]] = []
        self._count = 0

    def start(self, run: Callable[[], Outcome]) -> int:
        began = self._clock.passed
        try:
            outcome: Outcome | Exception = run()
        except Exception as error:
            outcome = error
        self._ends.append((self._clock.passed, self._count, outcome))
        self._clock.passed = began
        self._count += 1
        return self._count - 1

    def first(self, timeout_s: float) -> tuple[int, Outcome] | None:
        limit = self._clock.passed + max(0.0, timeout_s)
        due = [end for end in self._ends if end[0] <= limit + 1e-9]
        if not due:
            self._clock.passed = limit
            return None
        end = min(due, key=lambda item: item[:2])
        self._ends.remove(end)
        self._clock.passed = max(self._clock.passed, end[0])
        if isinstance(end[2], Exception):
            raise end[2]
        return end[1], end[2]


@dataclass
class FakeWatch:
    """Lets every attempt through but on the lanes it is told, and keeps what came of each."""

    refused: set[str] = field(default_factory=set)
    hedges: int = 0
    after_s: float | None = None
    inside: list[str] = field(default_factory=list)
    left: list[tuple[Ticket, Attempt | None]] = field(default_factory=list)
    concluded: list[bool] = field(default_factory=list)

    def enter(self, lane: str, *, hedge: bool = False) -> Ticket | None:
        if lane in self.refused or (hedge and self.hedges < 1):
            return None
        self.hedges -= hedge
        self.inside.append(lane)
        return Ticket(lane)

    def leave(self, ticket: Ticket, attempt: Attempt | None) -> None:
        self.inside.remove(ticket.lane)
        self.left.append((ticket, attempt))

    def conclude(self, *, answered: bool) -> None:
        assert not self.inside, "a request is over after its attempts"
        self.concluded.append(answered)

    def hedge_after_s(self, lane: str) -> float | None:
        return self.after_s

    def typical_s(self, lane: str) -> float | None:
        return None


@dataclass
class FakeMarks:
    """Other instances' marks, and what this one published."""

    others: dict[LaneKey, Sequence[float]] = field(default_factory=dict)
    published: list[Mapping[LaneKey, float]] = field(default_factory=list)

    def marks(self, now: float, *, urgent: bool) -> Mapping[LaneKey, Sequence[float]]:
        return self.others

    def publish(self, opened: Mapping[LaneKey, float], now: float) -> None:
        self.published.append(opened)


@dataclass
class FakeContext:
    """Lambda's context."""

    aws_request_id: str = "lambda-1"
    remaining_ms: int = 30_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms
