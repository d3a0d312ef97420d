"""LastGood: one reading per time to live, and the last good value whatever comes."""

from __future__ import annotations

import pytest

from functions.refresh import LastGood


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.broken = False
        self.failures: list[str] = []

    def read(self, now: float, _within_s: float | None) -> str:
        self.reads += 1
        if self.broken:
            raise OSError("down")
        return f"read at {now:g}"

    def told(self, error: Exception) -> None:
        self.failures.append(str(error))


def test_it_reads_once_per_time_to_live() -> None:
    """Every call in between gets the same value."""
    source = Source()
    kept = LastGood(source.read, 15, source.told)
    assert [kept.get(now) for now in (0, 14.9, 15, 20)] == ["read at 0", "read at 0", "read at 15", "read at 15"]
    assert source.reads == 2


def test_a_failed_reading_keeps_the_last_good_value() -> None:
    """It is tried again once per time to live and told once a minute."""
    source = Source()
    kept = LastGood(source.read, 15, source.told)
    kept.get(0)
    source.broken = True
    assert {kept.get(float(now)) for now in range(1, 70)} == {"read at 0"}
    assert source.reads == 1 + 4
    assert source.failures == ["down"]
    kept.get(90)
    assert source.failures == ["down", "down"]


def test_without_any_value_it_tries_sooner() -> None:
    """Five seconds, not the whole time to live."""
    source = Source()
    source.broken = True
    kept = LastGood(source.read, 60, source.told)
    assert [kept.get(now) for now in (0, 4, 5)] == [None, None, None]
    source.broken = False
    assert kept.get(10) == "read at 10"


class Watch:
    """A stopwatch that pauses and slow readings move."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s

    def pass_by(self, seconds: float) -> None:
        self.s += seconds


class Slow:
    """Fails `failing` times, each after what it was given or `takes_s`; then reads."""

    def __init__(self, watch: Watch, failing: int, takes_s: float, error: Exception | None = None) -> None:
        self.given: list[float | None] = []
        self._watch, self._failing, self._takes_s = watch, failing, takes_s
        self._error = error or TimeoutError("slow")

    def read(self, now: float, within_s: float | None) -> str:
        self.given.append(within_s)
        self._watch.pass_by(self._takes_s if within_s is None else min(self._takes_s, within_s))
        if len(self.given) <= self._failing:
            raise self._error
        return f"read at {now:g}"


def waiting(source: Slow, watch: Watch) -> LastGood[str]:
    return LastGood(source.read, 15, lambda _: None, hopeless=(ValueError,), stopwatch=watch, pause=watch.pass_by)


def test_a_caller_who_waits_gets_the_first_value() -> None:
    """Three tries fail; the fourth one's value is as old as it is, so the next reading is a time to live after it."""
    watch = Watch()
    source = Slow(watch, failing=3, takes_s=0.5)
    kept = waiting(source, watch)
    assert kept.get(100, patience_s=10) == "read at 102.2"
    assert watch.s == pytest.approx(4 * 0.5 + 0.1 + 0.2 + 0.4)
    assert source.given == [pytest.approx(given) for given in (5.0, 4.7, 4.35, 3.9)]
    assert kept.get(117.6) == "read at 102.2"
    assert kept.get(117.8) == "read at 117.8"
    assert source.given[4] is None


def test_patience_ends() -> None:
    """However the tries end, the caller is not kept longer; the callers of the next five seconds not at all."""
    for takes_s in (0.01, 1.0, 60.0):
        watch = Watch()
        source = Slow(watch, failing=1000, takes_s=takes_s)
        kept = waiting(source, watch)
        assert kept.get(100, patience_s=10) is None
        assert 8.9 <= watch.s <= 10
        tries, ended = len(source.given), 100 + watch.s
        assert tries >= 4
        assert kept.get(ended + 4.9, patience_s=10) is None
        assert len(source.given) == tries
        kept.get(ended + 5, patience_s=10)
        assert len(source.given) > tries


def test_waiting_is_for_what_it_can_cure() -> None:
    """A hopeless error is told at once; without patience there is one try."""
    watch = Watch()
    assert waiting(Slow(watch, 9, 0.5, ValueError("bad")), watch).get(0, patience_s=10) is None
    assert watch.s == 0.5
    once = Slow(watch, 9, 0.5)
    assert waiting(once, watch).get(0) is None
    assert once.given == [None]


def test_with_a_value_nobody_waits() -> None:
    """Patience is for the first value only: the last good one serves a caller at once."""
    watch = Watch()
    source = Slow(watch, 0, 0.5)
    kept = waiting(source, watch)
    kept.get(0, patience_s=10)
    source._failing = 9
    assert kept.get(20, patience_s=10) == "read at 0"
    assert source.given == [5.0, None]
