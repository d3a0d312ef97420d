"""How fast the offline stack's SageMaker is told to be."""

from __future__ import annotations

import pytest

from workbench.stack.offline import Pace


@pytest.mark.parametrize(
    ("pace", "period", "lag"),
    [
        (Pace(), "10", "1.0"),
        (Pace(60), "60", "60.0"),
        (Pace(metric_period_s=60, metric_lag_s=90), "60", "90"),
        (Pace(60, metric_lag_s=0), "60", "0"),
    ],
)
def test_metrics_keep_awss_rhythm_when_time_is_sped_up(pace: Pace, period: str, lag: str) -> None:
    """Bins are short and early at AWS's own speed, AWS's at any other, and what somebody asks for in either case."""
    options = dict(zip(pace.options()[::2], pace.options()[1::2], strict=True))
    assert options["--time-scale"] == str(pace.time_scale)
    assert (options["--metric-period"], options["--metric-lag"]) == (period, lag)
