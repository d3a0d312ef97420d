"""Hedging: a slow attempt is doubled once, the first answer wins, and the loser is paid for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from functions.core.outcome import Kind, Outcome
from functions.execute import Execution, execute
from functions.race import ThreadRace
from tests.unit.core.builders import MODEL, NOW, topology
from tests.unit.handlers.fakes import ANSWER, Behaviour, FakeClock, FakeInvoker, FakeRace, FakeWatch, failing, healthy
from tests.unit.handlers.test_execute import ORDER, PAYLOAD

OTHER = Outcome(Kind.OK, 200, b'{"label":"other"}', "application/json")


def run(
    dedicated: Behaviour, serverless: Behaviour, watch: FakeWatch, deadline_s: float = 8.0
) -> tuple[Execution, FakeInvoker, FakeClock]:
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": dedicated, "serverless": serverless})
    done = execute(
        ORDER,
        PAYLOAD,
        {},
        began=0.0,
        deadline=deadline_s,
        invoker=invoker,
        clock=clock,
        watch=watch,
        race=lambda: FakeRace(clock),
    )
    assert watch.inside == [], "every lane was given back"
    return done, invoker, clock


def test_an_attempt_within_its_p95_is_not_doubled() -> None:
    """The usual case costs nothing."""
    done, invoker, clock = run(healthy(0.05), healthy(), FakeWatch(hedges=1, after_s=0.1))
    assert ([seen.lane for seen in invoker.seen], clock.passed) == (["dedicated"], 0.05)
    assert done.outcome is ANSWER


def test_the_second_lane_answers_first() -> None:
    """Asked at the P95, it wins; the slow one is abandoned and its cost is in the receipt."""
    done, _, clock = run(healthy(5.0), healthy(0.3, OTHER), FakeWatch(hedges=1, after_s=0.1))
    assert done.outcome is OTHER
    assert clock.passed == pytest.approx(0.4)
    slow, winner = done.attempts
    assert (slow.kind, slow.hedge, winner.kind, winner.hedge) == (Kind.ABANDONED, False, Kind.OK, True)
    assert (slow.duration_s, winner.started_s) == pytest.approx((0.4, 0.1))
    assert done.served is winner
    assert slow.cost_usd is not None
    assert slow.cost_usd > 0


def test_the_first_lane_may_still_win() -> None:
    """The hedge is then the loser."""
    done, _, clock = run(healthy(0.2), healthy(3.0, OTHER), FakeWatch(hedges=1, after_s=0.1))
    assert done.outcome is ANSWER
    assert clock.passed == pytest.approx(0.2)
    assert [(item.lane, item.kind, item.hedge) for item in done.attempts] == [
        ("dedicated", Kind.OK, False),
        ("serverless", Kind.ABANDONED, True),
    ]


def test_a_loser_costs_what_its_lane_usually_takes() -> None:
    """It was watched for 0.1 s, and the model runs on for its usual two."""

    class Usual(FakeWatch):
        def typical_s(self, lane: str) -> float | None:
            return 2.0

    done, _, _ = run(healthy(0.2), healthy(9.0), Usual(hedges=1, after_s=0.1))
    assert done.attempts[1].cost_usd == pytest.approx(2.0 * 0.00008)


def test_without_budget_it_waits() -> None:
    """No hedge left: the slow answer is taken."""
    done, invoker, clock = run(healthy(2.0), healthy(), FakeWatch(hedges=0, after_s=0.1))
    assert len(invoker.seen) == 1
    assert (done.outcome, clock.passed) == (ANSWER, 2.0)


def test_a_broken_next_lane_is_no_hedge() -> None:
    """Its breaker refuses; it stays in line in case the first fails."""
    done, invoker, _ = run(healthy(2.0), healthy(), FakeWatch(refused={"serverless"}, hedges=1, after_s=0.1))
    assert (len(invoker.seen), done.refused) == (1, ())


def test_a_failed_hedge_leaves_the_first_running() -> None:
    """A throttled second lane ends nothing."""
    done, _, clock = run(healthy(2.0), failing(Kind.THROTTLED), FakeWatch(hedges=1, after_s=0.1))
    assert done.outcome is ANSWER
    assert clock.passed == pytest.approx(2.0)
    assert [item.kind for item in done.attempts] == [Kind.OK, Kind.THROTTLED]


def test_a_failed_first_leaves_the_hedge_running() -> None:
    """It is already the fallback."""
    done, _, clock = run(failing(Kind.LOST, 0.2), healthy(1.0), FakeWatch(hedges=1, after_s=0.1))
    assert done.outcome is ANSWER
    assert clock.passed == pytest.approx(1.1)


def test_both_hanging_end_at_the_deadline() -> None:
    """As timeouts, and not a moment later."""
    done, _, clock = run(healthy(90.0), healthy(90.0), FakeWatch(hedges=1, after_s=0.1), deadline_s=3.0)
    assert done.outcome is None
    assert clock.passed <= 3.0
    assert {item.kind for item in done.attempts} == {Kind.TIMEOUT}


def test_a_lane_of_unknown_speed_is_not_doubled() -> None:
    """Without a P95 nobody can say that it is late."""
    _, invoker, _ = run(healthy(2.0), healthy(), FakeWatch(hedges=1, after_s=None))
    assert len(invoker.seen) == 1


def test_an_invoker_that_raises_gives_both_lanes_back() -> None:
    """The error is ours to report, and no lane stays counted as busy."""

    def bug(_: object) -> tuple[Outcome, float]:
        raise KeyError("bug")

    watch = FakeWatch(hedges=1, after_s=0.1)
    with pytest.raises(KeyError):
        run(healthy(5.0), bug, watch)
    assert watch.inside == []


def test_threads_race_for_real() -> None:
    """The first to end is the first out, by number; the other is not waited for."""
    race, hold = ThreadRace(), threading.Event()

    def slow() -> Outcome:
        hold.wait(10)
        return ANSWER

    slow_number = race.start(slow)
    assert race.first(0.01) is None
    quick_number = race.start(lambda: OTHER)
    assert race.first(5) == (quick_number, OTHER)
    hold.set()
    assert race.first(5) == (slow_number, ANSWER)


def test_what_a_thread_raises_is_raised_where_it_is_waited_for() -> None:
    """Never lost in a thread."""
    race = ThreadRace()

    def bug() -> Outcome:
        raise KeyError("bug")

    race.start(bug)
    with pytest.raises(KeyError):
        race.first(5)


def test_a_hedged_request_is_answered_by_the_quick_lane_in_real_time() -> None:
    """Real threads, a real clock: far sooner than the slow lane."""

    class Clock:
        def now(self) -> float:
            return time.time()

        def monotonic(self) -> float:
            return time.monotonic()

    class Lanes:
        def invoke(self, lane: object, *_: object) -> Outcome:
            slow = lane is topology_lanes["dedicated"]
            time.sleep(3.0 if slow else 0.01)
            return ANSWER if slow else OTHER

    topology_lanes = topology().sync_lanes(MODEL)
    began = time.monotonic()
    done = execute(
        list(topology_lanes.values()),
        PAYLOAD,
        {},
        began=began,
        deadline=began + 10,
        invoker=Lanes(),
        clock=Clock(),
        watch=FakeWatch(hedges=1, after_s=0.05),
        race=ThreadRace,
    )
    assert done.outcome is OTHER
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("started", [0, 1])
def test_without_a_thread_every_lane_is_given_back(started: int) -> None:
    """Neither the lane whose thread could not be had stays taken, nor the one that runs already."""

    class Spent(FakeRace):
        def start(self, run: Callable[[], Outcome]) -> int:
            if self._count == started:
                raise RuntimeError("can't start new thread")
            return super().start(run)

    clock, watch = FakeClock(NOW), FakeWatch(hedges=1, after_s=0.1)
    invoker = FakeInvoker(clock, {"dedicated": healthy(5.0), "serverless": healthy()})
    with pytest.raises(RuntimeError, match="new thread"):
        execute(
            ORDER, PAYLOAD, {}, began=0.0, deadline=8.0, invoker=invoker, clock=clock, watch=watch,
            race=lambda: Spent(clock),
        )  # fmt: skip
    assert watch.inside == []
    assert len(watch.left) == started + 1
