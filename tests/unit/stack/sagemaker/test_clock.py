"""Emulated time."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path

import pytest

from workbench.stack.sagemaker.__main__ import parse
from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.settings import Settings


def test_durations_shrink_by_the_scale() -> None:
    """A minute takes a second at a scale of 60, a minute at 1, and two at a half."""
    assert [Clock(scale).real(60) for scale in (60, 1, 0.5)] == [1, 60, 120]


def test_emulated_time_runs_from_the_origin() -> None:
    """Ten real seconds after the origin, an hour has passed at a scale of 360."""
    clock = Clock(360, origin=1_000.0)
    assert (clock.at(1_000.0), clock.at(1_010.0)) == (1_000.0, 4_600.0)
    assert Clock(1).now() == pytest.approx(time.time(), abs=1)


def test_polls_have_a_floor() -> None:
    """Real processes are looked at no more than five times a second, unless somebody asked for more at scale one."""
    assert [Clock(s).poll_s(2.0) for s in (1, 4, 1_000)] == [2.0, 0.5, 0.2]
    assert Clock(10).poll_s(0.1) == 0.1


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf])
def test_a_scale_is_a_finite_number_above_zero(scale: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is refused, in the settings and on the command line."""
    with pytest.raises(ValueError, match="above zero"):
        Settings(state_dir=Path(), time_scale=scale)
    with pytest.raises(SystemExit):
        parse(["--state-dir", ".", "--time-scale", str(scale)])
    assert "--time-scale must be above zero" in capsys.readouterr().err


def test_waits_are_real_and_short() -> None:
    """A sleep of a minute ends within a real second at a scale of 1,000, and so does a time-out."""
    clock = parse(["--state-dir", ".", "--time-scale", "1000"]).settings.clock

    async def waits() -> None:
        await clock.sleep(60)
        with pytest.raises(TimeoutError):
            async with clock.timeout(60):
                await asyncio.sleep(30)
        async with clock.timeout(None):
            await asyncio.sleep(0)

    began = time.monotonic()
    asyncio.run(waits())
    assert 0.1 < time.monotonic() - began < 5
