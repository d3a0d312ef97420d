"""What a process learns of its lanes, and how it merges that into the snapshot."""

from __future__ import annotations

import pytest

from functions.core.breaker import RULES
from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, Kind
from functions.core.receipt import Attempt
from functions.health import Alone, Health
from tests.unit.core.builders import IDLE, MODEL, NOW
from tests.unit.handlers.fakes import FakeClock, FakeMarks

KEY = (MODEL, "dedicated")


class Scene:
    """One process on a fake clock."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.marks = FakeMarks()
        self.health = Health(self.marks, self.clock)
        self.predicted = {"dedicated": Prediction(200.0, None)}

    def attempt(self, kind: Kind, took_s: float = 0.05, timeout_s: float = 5.0) -> bool:
        """Whether it was let through."""
        watch = self.health.watch(MODEL, self.predicted)
        ticket = watch.enter("dedicated")
        if ticket is None:
            return False
        self.clock.advance(took_s)
        watch.leave(ticket, Attempt("dedicated", kind, None, 0.0, took_s, timeout_s, None))
        return True

    def request(self, dedicated: Kind, serverless: Kind | None = None, *, gap_s: float = 0.0) -> None:
        """One request on dedicated first, then on serverless if there is one, unless dedicated answered."""
        watch = self.health.watch(MODEL, self.predicted)
        answered = False
        for lane, kind in (("dedicated", dedicated), ("serverless", serverless)):
            if kind is None or answered or (ticket := watch.enter(lane)) is None:
                continue
            watch.leave(ticket, Attempt(lane, kind, None, 0.0, 0.05, 5.0, None))
            self.clock.advance(gap_s)
            answered = kind in FINAL
        watch.conclude(answered=Kind.OK in (dedicated, serverless))

    def breaker(self, lane: str = "dedicated") -> str:
        return self.health.seen(IDLE, self.clock.now()).lane(MODEL, lane).breaker


def test_a_healthy_process_changes_nothing() -> None:
    """The very same snapshot, so that what was worked out for it holds."""
    scene = Scene()
    for _ in range(100):
        scene.attempt(Kind.OK)
    assert scene.health.seen(IDLE, scene.clock.now()) is IDLE


def test_a_dead_lane_is_open_half_open_and_closed_again() -> None:
    """Five failures, five seconds, one answered probe."""
    scene = Scene()
    for _ in range(RULES.failures):
        assert scene.attempt(Kind.UNREACHABLE)
    assert (scene.breaker(), scene.attempt(Kind.OK)) == ("open", False)
    scene.clock.advance(RULES.open_s)
    assert scene.breaker() == "half_open"
    assert scene.attempt(Kind.OK)
    assert scene.breaker() == "closed"
    scene.clock.advance(61)
    assert scene.health.seen(IDLE, scene.clock.now()) is IDLE, "and in the end it is forgotten"


def test_a_snapshot_with_an_open_lane_is_the_same_object_until_something_turns() -> None:
    """Made once for each state."""
    scene = Scene()
    for _ in range(RULES.failures):
        scene.attempt(Kind.LOST)
    first = scene.health.seen(IDLE, scene.clock.now())
    assert scene.health.seen(IDLE, scene.clock.now() + 1) is first
    assert scene.health.seen(IDLE, scene.clock.now() + RULES.open_s) is not first


def test_an_opening_is_published_once() -> None:
    """With its time, and only by the instance that saw it."""
    scene = Scene()
    for _ in range(RULES.failures):
        scene.health.publish(scene.clock.now())
        scene.attempt(Kind.TIMEOUT)
    scene.health.publish(scene.clock.now())
    scene.health.publish(scene.clock.now())
    assert scene.marks.published == [{KEY: pytest.approx(scene.clock.now())}]


def test_others_marks_are_taken_in() -> None:
    """Two open at once; one makes the first failure do it."""
    scene = Scene()
    scene.marks.others = {KEY: [NOW - 1, NOW - 2]}
    assert scene.breaker() == "open"
    other = Scene()
    other.marks.others = {KEY: [NOW - 1]}
    assert other.breaker() == "closed"
    other.attempt(Kind.UNREACHABLE)
    assert other.health.seen(IDLE, other.clock.now()) is not IDLE
    assert other.breaker() == "open"


def test_an_opening_by_others_marks_is_not_published_again() -> None:
    """Marks must not keep each other alive."""
    scene = Scene()
    scene.marks.others = {KEY: [NOW - 1, NOW - 2]}
    assert scene.breaker() == "open"
    scene.health.publish(scene.clock.now())
    assert scene.marks.published == []


def test_in_flight_counts_while_the_attempt_lasts() -> None:
    """Also one that ends in an error of ours."""
    scene = Scene()
    watch = scene.health.watch(MODEL, {})
    ticket = watch.enter("dedicated")
    assert ticket is not None
    assert scene.health.seen(IDLE, NOW).lane(MODEL, "dedicated").in_flight == 1
    watch.leave(ticket, None)
    assert scene.health.seen(IDLE, NOW) is IDLE


def test_a_hedge_waits_for_the_p95_of_own_outcomes_and_before_that_for_the_predicted_p99() -> None:
    """Twenty make a P95."""
    scene = Scene()
    watch = scene.health.watch(MODEL, scene.predicted)
    assert watch.hedge_after_s("dedicated") == pytest.approx(0.2)
    for _ in range(40):
        scene.attempt(Kind.OK, took_s=0.03)
    assert watch.hedge_after_s("dedicated") == pytest.approx(0.03, rel=0.06)
    assert watch.hedge_after_s("serverless") is None


def test_hedges_are_a_twentieth_of_the_requests_that_may_be_hedged() -> None:
    """The budget refuses the rest."""
    scene = Scene()
    watch = scene.health.watch(MODEL, {})
    granted = 0
    for _ in range(200):
        scene.health.hedge_requested()
        granted += watch.enter("serverless", hedge=True) is not None
    assert granted == 10


def test_predictions_are_no_better_than_what_was_seen() -> None:
    """CloudWatch's P99 is minutes old; a lane that became slow since is known here at once."""
    scene = Scene()
    assert scene.health.corrected(MODEL, scene.predicted, ["dedicated"]) is scene.predicted
    for _ in range(40):
        scene.attempt(Kind.OK, took_s=3.0)
    found = scene.health.corrected(MODEL, scene.predicted, ["dedicated"])["dedicated"]
    assert found.p99_ms == pytest.approx(3000, rel=0.06)


def test_quick_errors_do_not_make_a_lane_look_fast() -> None:
    """An error says nothing of how long an answer takes."""
    scene = Scene()
    for _ in range(40):
        scene.attempt(Kind.CALLER_ERROR, took_s=0.001)
    assert scene.health.watch(MODEL, {}).typical_s("dedicated") is None


def test_alone_there_is_nobody_to_tell() -> None:
    """No marks in, none out."""
    alone = Alone()
    alone.publish({KEY: NOW}, NOW)
    assert alone.marks(NOW, urgent=True) == {}


def test_a_lane_that_hangs_opens_however_long_it_hangs() -> None:
    """Two hundred quick answers, then timeouts of five seconds: its own slowness is no excuse for it."""
    scene = Scene()
    for _ in range(200):
        scene.attempt(Kind.OK, took_s=0.05)
    for _ in range(RULES.failures):
        assert scene.attempt(Kind.TIMEOUT, took_s=5.0, timeout_s=5.0)
    assert scene.breaker() == "open"


def test_poison_opens_nothing() -> None:
    """Requests on which every container fails are at fault themselves, however many, with or without a fallback."""
    scene = Scene()
    for _ in range(100):
        scene.request(Kind.MODEL_ERROR, Kind.MODEL_ERROR)
        scene.request(Kind.MODEL_ERROR, Kind.CALLER_ERROR)
        scene.request(Kind.MODEL_ERROR, Kind.THROTTLED)
        scene.request(Kind.MODEL_ERROR)
    assert (scene.breaker(), scene.breaker("serverless")) == ("closed", "closed")
    scene.health.publish(scene.clock.now())
    assert scene.marks.published == []


def test_a_model_that_fails_where_another_answers_opens() -> None:
    """The other lane proves the requests good; five such failures, as of any other fault."""
    scene = Scene()
    for _ in range(RULES.failures - 1):
        scene.request(Kind.MODEL_ERROR, Kind.OK, gap_s=0.01)
    assert scene.breaker() == "closed"
    scene.request(Kind.MODEL_ERROR, Kind.OK, gap_s=0.01)
    assert (scene.breaker(), scene.breaker("serverless")) == ("open", "closed")
    scene.health.publish(scene.clock.now())
    assert scene.marks.published == [{KEY: pytest.approx(scene.clock.now())}]


def test_poison_neither_ends_nor_prolongs_an_opening() -> None:
    """As a half-open lane's probe it says nothing, and the next is the probe; one answered elsewhere fails it."""
    scene = Scene()
    for _ in range(RULES.failures):
        scene.attempt(Kind.LOST)
    scene.clock.advance(RULES.open_s)
    for _ in range(3):
        scene.request(Kind.MODEL_ERROR, Kind.MODEL_ERROR)
        assert scene.breaker() == "half_open"
    scene.request(Kind.MODEL_ERROR, Kind.OK)
    assert scene.breaker() == "open"
    scene.clock.advance(2 * RULES.open_s)
    scene.request(Kind.OK)
    assert scene.breaker() == "closed"


def test_nothing_stays_in_flight_while_a_failure_is_unproven() -> None:
    """The lane is free at once; only the verdict waits."""
    scene = Scene()
    watch = scene.health.watch(MODEL, {})
    ticket = watch.enter("dedicated")
    assert ticket is not None
    watch.leave(ticket, Attempt("dedicated", Kind.MODEL_ERROR, 500, 0.0, 0.05, 5.0, None))
    assert scene.health.seen(IDLE, NOW) is IDLE
