"""LastGood: one reading per time to live, and the last good value whatever comes."""

from __future__ import annotations

from functions.refresh import LastGood


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.broken = False
        self.failures: list[str] = []

    def read(self, now: float) -> str:
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
