"""The breaker: when it opens, how it closes, and that it makes no other turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.breaker import RULES, Breaker, Verdict, merged, verdict
from functions.core.outcome import Kind

A, F, N = Verdict.ANSWERED, Verdict.FAILED, Verdict.NOTHING
NOW = 1_796_000_400.0


def after(*verdicts: Verdict, every_s: float = 1.0, begin: Breaker | None = None) -> Breaker:
    breaker = begin or Breaker()
    for i, found in enumerate(verdicts):
        breaker = breaker.record(found, NOW + i * every_s)
    return breaker


def opened() -> Breaker:
    return after(*[F] * RULES.failures, every_s=0.0)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Kind.OK, A),
        (Kind.CALLER_ERROR, A),
        (Kind.THROTTLED, N),
        (Kind.NOT_READY, N),
        (Kind.BUSY, N),
        (Kind.TOO_LARGE, N),
        (Kind.UNREACHABLE, F),
        (Kind.MODEL_ERROR, N),
        (Kind.UPSTREAM_ERROR, F),
        (Kind.LOST, F),
        (Kind.TIMEOUT, F),
    ],
)
def test_only_faults_of_the_lane_count(kind: Kind, found: Verdict) -> None:
    """A full lane is no broken lane, and the caller's mistake no lane's."""
    assert verdict(kind, 10.0, 0.2) is found


def test_a_containers_own_failure_counts_when_another_lane_answered() -> None:
    """Then it was the lane's; else it may have been the request's. Nothing else depends on the other lane."""
    assert verdict(Kind.MODEL_ERROR, 10.0, 0.2, answered_elsewhere=True) is F
    assert verdict(Kind.THROTTLED, 10.0, 0.2, answered_elsewhere=True) is N
    assert verdict(Kind.LOST, 10.0, 0.2, answered_elsewhere=False) is F


@pytest.mark.parametrize(
    ("timeout_s", "p99_s", "found"),
    [
        (0.9, None, N),
        (1.0, None, F),
        (0.9, 0.03, N),
        (1.0, 0.03, F),
        (3.9, 1.0, N),
        (4.0, 1.0, F),
        (19.0, 20.0, N),
        (20.0, 20.0, F),
    ],
)
def test_a_timeout_counts_only_if_the_lane_had_a_fair_chance(
    timeout_s: float, p99_s: float | None, found: Verdict
) -> None:
    """A caller in a hurry must not shut a lane for everybody."""
    assert verdict(Kind.TIMEOUT, timeout_s, p99_s) is found


def test_five_failures_in_half_a_minute_open_it() -> None:
    """Four do not; five do."""
    assert after(*[F] * 4).state(NOW + 4) == "closed"
    assert after(*[F] * 5).state(NOW + 4) == "open"


def test_failures_that_are_old_are_forgotten() -> None:
    """One every ten seconds never is five in thirty."""
    assert after(*[F] * 50, every_s=10).state(NOW + 500) == "closed"


def test_a_lane_that_mostly_answers_stays_in_use() -> None:
    """Two answers to each failure, for as long as you like."""
    assert after(*[F, A, A] * 40, every_s=0.1).state(NOW + 12) == "closed"
    assert after(*[F, A] * 40, every_s=0.1).state(NOW + 8) != "closed"


def test_a_healthy_lanes_breaker_is_never_touched() -> None:
    """No history without a failure, and none left once the failures are old."""
    assert after(*[A, N] * 100) == Breaker()
    assert after(F, *[A] * 100) == Breaker()


def test_the_history_is_bounded() -> None:
    """Ten thousand outcomes in the window are eleven counts."""
    assert len(after(F, *[A] * 10_000, every_s=0.002).history) <= 11


def test_half_open_lets_exactly_one_through() -> None:
    """Refused while open; one probe after five seconds; the second is refused while it is out."""
    breaker = opened()
    assert breaker.admit(NOW + 4.9)[1] is False
    assert breaker.state(NOW + 5) == "half_open"
    breaker, first = breaker.admit(NOW + 5)
    breaker, second = breaker.admit(NOW + 6)
    assert (first, second) == (True, False)


def test_an_answered_probe_closes_it_and_a_failed_one_doubles_the_wait() -> None:
    """5, 10, 20, 40, 60, 60 seconds."""
    breaker, at, waits = opened(), NOW, []
    for _ in range(6):
        waits.append(breaker.open_s)
        at += breaker.open_s
        breaker, let = breaker.admit(at)
        assert let
        last = breaker
        breaker = breaker.record(F, at, probe=True)
    assert waits == [5, 10, 20, 40, 60, 60]
    assert last.record(A, at, probe=True) == Breaker(healthy_at=at)


def test_a_probe_that_says_nothing_frees_the_place() -> None:
    """A throttled probe: still half-open, and the next attempt is the probe."""
    breaker, _ = opened().admit(NOW + 5)
    breaker = breaker.record(N, NOW + 5.1, probe=True)
    assert breaker.state(NOW + 5.1) == "half_open"
    assert breaker.admit(NOW + 5.2)[1] is True


def test_a_probe_that_never_ends_is_given_up() -> None:
    """Its instance was frozen: after a minute another may try."""
    breaker, _ = opened().admit(NOW + 5)
    assert breaker.admit(NOW + 64.9)[1] is False
    assert breaker.admit(NOW + 65)[1] is True


def test_a_late_outcome_of_before_the_opening_changes_nothing() -> None:
    """Only the probe's counts."""
    breaker = opened()
    assert breaker.record(A, NOW + 1) is breaker
    probing, _ = breaker.admit(NOW + 6)
    assert probing.record(A, NOW + 6.1) is probing


def test_a_clock_set_back_does_not_keep_a_lane_shut() -> None:
    """An opening in the future is half-open at once."""
    assert opened().state(NOW - 3600) == "half_open"


def test_one_other_instances_mark_opens_with_the_first_failure_here() -> None:
    """It need not learn for itself what another has paid for, and need not believe it alone."""
    assert merged(Breaker(), [NOW - 1], NOW) == Breaker()
    assert merged(after(F), [NOW - 1], NOW).state(NOW) == "open"
    assert merged(after(F), [NOW + 59], NOW + 60).state(NOW + 60) == "closed", "that failure is old"


def test_two_others_marks_open_at_once_and_then_it_looks_for_itself() -> None:
    """Open for what is left of a first opening, then half-open; an answered probe outweighs the marks."""
    marks = [NOW - 2, NOW - 1]
    breaker = merged(Breaker(), marks, NOW)
    assert (breaker.state(NOW), breaker.state(NOW + 4)) == ("open", "half_open")
    breaker = breaker.admit(NOW + 4)[0].record(A, NOW + 4, probe=True)
    assert merged(breaker, marks, NOW + 5).state(NOW + 5) == "closed"


@pytest.mark.parametrize("marks", [[], [NOW - 31, NOW - 40], [NOW + 31, NOW + 300]])
def test_old_and_impossible_marks_say_nothing(marks: list[float]) -> None:
    """Beyond the window, before or after."""
    assert merged(Breaker(), marks, NOW) == Breaker()


def test_marks_do_not_prolong_an_opening() -> None:
    """An open breaker keeps its own time."""
    breaker = opened()
    assert merged(breaker, [NOW + 1, NOW + 2], NOW + 3) is breaker


events = st.lists(
    st.tuples(st.sampled_from(["attempt", "outcome", "marks"]), st.sampled_from([A, F, N]), st.floats(0, 20)),
    max_size=80,
)
LEGAL = {
    "closed": {"closed", "open", "half_open"},
    "open": {"open", "half_open"},
    "half_open": {"half_open", "closed", "open"},
}


@given(events)
def test_under_any_events_only_legal_turns_and_one_probe_at_a_time(steps: list[tuple[str, Verdict, float]]) -> None:
    """Open leads to half-open by time alone; half-open leaves only by its probe; one probe is out at most."""
    breaker, now, out = Breaker(), NOW, 0
    for step, found, passed in steps:
        before_time = breaker.state(now)
        now += passed
        before = breaker.state(now)
        if before_time == "open":
            assert before in ("open", "half_open")
        else:
            assert before == before_time, "time alone turns nothing but open"
        if step == "marks":
            breaker = merged(breaker, [now - passed, now], now)
            if before != "closed":
                assert breaker.state(now) == before
        elif step == "attempt":
            given_up = not breaker.probing(now)
            breaker, let = breaker.admit(now)
            assert let is (before == "closed" or (before == "half_open" and given_up))
            out = out + 1 if let and before == "half_open" and not given_up else int(let and before == "half_open")
            assert out <= 1
        else:
            probe = out == 1 and found is not N
            breaker = breaker.record(found, now, probe=out == 1)
            out = 0
            if before == "half_open" and breaker.state(now) != "half_open":
                assert probe
        assert breaker.state(now) in LEGAL[before]


def test_rules_can_be_others() -> None:
    """Thresholds are data."""
    strict = replace(RULES, failures=1)
    assert Breaker().record(F, NOW, rules=strict).state(NOW) == "open"


@pytest.mark.parametrize(
    ("breaker", "since"),
    [(after(F), NOW), (Breaker(healthy_at=NOW), NOW), (after(F, begin=Breaker(healthy_at=NOW + 5)), NOW + 5)],
)
def test_what_is_of_the_past_may_be_forgotten(breaker: Breaker, since: float) -> None:
    """A minute after the last failure or proof; nothing of an open one ever."""
    assert breaker.settled(since + 59.9) is False
    assert breaker.settled(since + 60) is True
    assert breaker.settled(since - 66) is True, "of a clock that was set back"


def test_an_open_breaker_is_not_forgotten_and_a_new_one_has_nothing_to_forget() -> None:
    """However long ago."""
    assert opened().settled(NOW + 10_000) is False
    assert Breaker().settled(NOW) is True


def test_exactly_half_is_enough_and_less_is_not() -> None:
    """Five of ten open; five of eleven do not."""
    assert after(F, *[A] * 5, *[F] * 4, every_s=0.1).state(NOW + 1) == "open"
    assert after(F, *[A] * 6, *[F] * 4, every_s=0.1).state(NOW + 1) == "closed"


def test_the_window_ends_where_it_ends() -> None:
    """A failure of 30 s ago does not count; one of a moment less does."""
    assert after(*[F] * 4, every_s=0).record(F, NOW + 30).state(NOW + 30) == "closed"
    assert after(*[F] * 4, every_s=0).record(F, NOW + 29.9).state(NOW + 29.9) == "open"


def test_outcomes_are_counted_by_tenths_of_the_window() -> None:
    """Three seconds share a count."""
    assert after(F, F, F, every_s=1.4).history == ((NOW, 0, 3),)
    assert after(F, A, F, every_s=3).history == ((NOW, 0, 1), (NOW + 3, 1, 0), (NOW + 6, 0, 1))


def test_a_mark_speaks_for_the_window_and_not_before_the_own_proof() -> None:
    """At its edges."""
    assert merged(Breaker(), [NOW - 29.9, NOW - 29.9], NOW).opened_at == NOW - 29.9
    assert merged(Breaker(), [NOW - 30, NOW - 29.9], NOW) == Breaker()
    assert merged(Breaker(healthy_at=NOW - 2), [NOW - 2, NOW - 1], NOW).opened_at is None
    assert merged(Breaker(), [NOW + 1, NOW + 2], NOW).opened_at == NOW, "a clock ahead opens now, not later"
    kept = merged(Breaker(healthy_at=NOW - 9), [NOW - 2, NOW - 1], NOW)
    assert (kept.open_s, kept.healthy_at, kept.probe_at) == (RULES.open_s, NOW - 9, None)


def test_a_failed_probe_keeps_the_last_proof() -> None:
    """So that marks from before it stay history."""
    breaker = replace(opened(), healthy_at=NOW - 50)
    failed = breaker.admit(NOW + 5)[0].record(F, NOW + 6, probe=True)
    assert (failed.opened_at, failed.open_s, failed.healthy_at, failed.probe_at) == (NOW + 6, 10, NOW - 50, None)


def test_a_closed_breaker_lets_everything_through_and_stays_as_it_is() -> None:
    """The very same object."""
    breaker = after(F)
    assert breaker.admit(NOW) == (breaker, True)


def test_a_probe_is_out_from_its_first_moment_for_its_time() -> None:
    """By the rules that are asked; of a clock that was set back it is not."""
    breaker, _ = opened().admit(NOW + 5)
    assert breaker.admit(NOW + 5)[1] is False
    assert breaker.probing(NOW + 5) is True
    assert breaker.probing(NOW + 4.9) is False
    assert breaker.admit(NOW + 6, replace(RULES, probe_s=1))[1] is True
    assert breaker.admit(NOW + 5.9, replace(RULES, probe_s=1))[1] is False


def test_an_opening_lasts_as_its_rules_say_and_keeps_the_last_proof() -> None:
    """By an own failure, and by the marks of others."""
    rules = replace(RULES, failures=1, open_s=7.0)
    begun = Breaker(healthy_at=NOW - 50)
    assert begun.record(F, NOW, rules=rules) == Breaker(opened_at=NOW, open_s=7.0, healthy_at=NOW - 50)
    marked = merged(begun, [NOW - 2, NOW - 1], NOW, rules)
    assert marked == Breaker(opened_at=NOW - 1, open_s=7.0, healthy_at=NOW - 50)


def test_beside_one_mark_a_failure_counts_for_the_window() -> None:
    """One of 30 s ago does not; one of a moment less does."""
    assert merged(after(F), [NOW + 29], NOW + 30).state(NOW + 30) == "closed"
    assert merged(after(F), [NOW + 29], NOW + 29.9).state(NOW + 29.9) == "open"
