"""The attempt loop over fake lanes and a fake clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, Kind, Outcome, failure_of
from functions.core.plan import usable_s
from functions.execute import Execution, Payload, execute
from tests.unit.core.builders import MODEL, NOW, topology
from tests.unit.handlers.fakes import (
    ANSWER,
    Behaviour,
    FakeClock,
    FakeInvoker,
    FakeWatch,
    Invocation,
    failing,
    hanging,
    healthy,
)

LANES = topology().sync_lanes(MODEL)
ORDER = [LANES["dedicated"], LANES["serverless"]]
PAYLOAD = Payload(b"body", "application/json", "*/*", {"x-amzn-sagemaker-inference-id": "r-1"})


def run(
    lanes: dict[str, Behaviour], deadline_s: float = 8.0, predicted: dict[str, Prediction] | None = None
) -> tuple[Execution, FakeInvoker, FakeClock]:
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, lanes)
    done = execute(
        ORDER,
        PAYLOAD,
        predicted or {},
        began=0.0,
        deadline=usable_s(deadline_s),
        invoker=invoker,
        clock=clock,
        watch=FakeWatch(),
    )
    return done, invoker, clock


def test_the_first_lane_that_answers_is_the_last_one_asked() -> None:
    """A healthy first lane: one attempt, the payload untouched."""
    done, invoker, _ = run({"dedicated": healthy(), "serverless": healthy()})
    assert [attempt.lane for attempt in done.attempts] == ["dedicated"]
    assert done.outcome is ANSWER
    seen = invoker.seen[0]
    assert (seen.body, seen.content_type, seen.accept) == (b"body", "application/json", "*/*")


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in {*FINAL, Kind.ABANDONED}])
def test_every_failure_tries_the_next_lane(kind: Kind) -> None:
    """Whatever went wrong on one lane, the other is asked; each lane once."""
    done, invoker, _ = run({"dedicated": failing(kind), "serverless": healthy()})
    assert [attempt.kind for attempt in done.attempts] == [kind, Kind.OK]
    assert [seen.lane for seen in invoker.seen] == ["dedicated", "serverless"]


def test_the_callers_error_is_never_retried() -> None:
    """A container's 4xx ends it."""
    refused = Outcome(Kind.CALLER_ERROR, 415, b"no", "text/plain")
    done, invoker, _ = run({"dedicated": healthy(0.01, refused), "serverless": healthy()})
    assert done.outcome is refused
    assert len(invoker.seen) == 1


def test_a_hanging_lane_leaves_time_for_the_fallback() -> None:
    """A cold serverless lane behind a hanging one still gets its reserve, and the answer is in time."""
    done, invoker, clock = run(
        {"dedicated": hanging(), "serverless": healthy(3.0)}, 10.0, {"serverless": Prediction(3_500.0, None)}
    )
    assert done.outcome is ANSWER
    assert invoker.seen[0].timeout_s == pytest.approx(usable_s(10.0) - 3.5)
    assert clock.passed < 10.0


def test_a_quick_failure_leaves_the_fallback_all_that_is_left() -> None:
    """Planned anew before each attempt."""
    _, invoker, _ = run({"dedicated": failing(Kind.THROTTLED, 0.01), "serverless": healthy()}, 8.0)
    assert invoker.seen[1].timeout_s == pytest.approx(usable_s(8.0) - 0.01)


def test_both_lanes_dead_is_answered_before_the_deadline() -> None:
    """Two hanging lanes use up the deadline and not a moment more."""
    done, _, clock = run({"dedicated": hanging(), "serverless": hanging()}, 8.0)
    assert done.outcome is None
    assert failure_of(attempt.kind for attempt in done.attempts).status == 504
    assert clock.passed <= usable_s(8.0)


def test_no_attempt_begins_without_time() -> None:
    """A deadline that has passed: nothing is tried."""
    done, invoker, _ = run({"dedicated": healthy(), "serverless": healthy()}, 0.001)
    assert (done.attempts, invoker.seen) == ((), [])


def test_what_did_not_run_costs_nothing() -> None:
    """A throttle is free; the answer is charged on its own lane."""
    done, _, _ = run({"dedicated": failing(Kind.THROTTLED), "serverless": healthy(2.0)})
    assert done.attempts[0].cost_usd == 0.0
    assert done.attempts[1].cost_usd == pytest.approx(2.0 * 0.00008)


def test_two_hundred_requests_survive_a_lane_that_dies() -> None:
    """Dead from the 50th to the 150th: every request is answered, and the lane is used again afterwards."""
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": healthy(), "serverless": healthy(0.3)})
    served = []
    for i in range(200):
        dead = 50 <= i < 150
        invoker.lanes["dedicated"] = failing(Kind.UNREACHABLE) if dead else healthy()
        start = clock.monotonic()
        done = execute(
            ORDER, PAYLOAD, {}, began=start, deadline=start + 8, invoker=invoker, clock=clock, watch=FakeWatch()
        )
        assert done.outcome is ANSWER
        served.append(done.attempts[-1].lane)
    assert served == ["dedicated"] * 50 + ["serverless"] * 100 + ["dedicated"] * 50


behaviours = st.one_of(
    st.builds(healthy, st.floats(0, 40)),
    st.builds(
        failing, st.sampled_from([kind for kind in Kind if kind not in {*FINAL, Kind.ABANDONED}]), st.floats(0, 40)
    ),
    st.builds(hanging),
)


@given(behaviours, behaviours, st.floats(0.01, 29), st.floats(0, 60_000))
def test_nothing_outlives_the_deadline(first: Behaviour, second: Behaviour, deadline_s: float, p99_ms: float) -> None:
    """Under any behaviour of the lanes: in time, each lane at most once, none begun after the deadline."""
    done, _, clock = run(
        {"dedicated": first, "serverless": second}, deadline_s, {"serverless": Prediction(p99_ms, None)}
    )
    assert clock.passed <= deadline_s
    names = [attempt.lane for attempt in done.attempts]
    assert len(set(names)) == len(names)
    assert all(attempt.started_s < deadline_s for attempt in done.attempts)
    if done.outcome is None:
        assert failure_of(attempt.kind for attempt in done.attempts).status in (413, 429, 502, 503, 504)


@pytest.mark.parametrize(
    ("dedicated", "serverless", "answered"),
    [
        (healthy(), healthy(), True),
        (failing(Kind.MODEL_ERROR), healthy(), True),
        (failing(Kind.MODEL_ERROR), failing(Kind.MODEL_ERROR), False),
        (failing(Kind.MODEL_ERROR), healthy(0.01, Outcome(Kind.CALLER_ERROR, 415)), False),
    ],
)
def test_the_watch_is_told_once_how_the_request_ended(
    dedicated: Behaviour, serverless: Behaviour, answered: bool
) -> None:
    """Only a good answer proves that the request was good: a lane that refuses it proves nothing."""
    clock, watch = FakeClock(NOW), FakeWatch()
    invoker = FakeInvoker(clock, {"dedicated": dedicated, "serverless": serverless})
    execute(ORDER, PAYLOAD, {}, began=0.0, deadline=8.0, invoker=invoker, clock=clock, watch=watch)
    assert watch.concluded == [answered]


def test_an_error_of_ours_ends_the_request_for_the_watch_too() -> None:
    """Nothing that it holds back until the end is held forever."""

    def broken(_: Invocation) -> tuple[Outcome, float]:
        raise ValueError("a bug")

    clock, watch = FakeClock(NOW), FakeWatch()
    invoker = FakeInvoker(clock, {"dedicated": failing(Kind.MODEL_ERROR), "serverless": broken})
    with pytest.raises(ValueError, match="a bug"):
        execute(ORDER, PAYLOAD, {}, began=0.0, deadline=8.0, invoker=invoker, clock=clock, watch=watch)
    assert watch.concluded == [False]
