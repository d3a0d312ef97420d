"""Bins, datums, and how often each metric has one."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.metrics import catalogue
from workbench.stack.sagemaker.metrics.bins import Bins, Scope
from workbench.stack.sagemaker.metrics.catalogue import INFERENCE
from workbench.stack.sagemaker.metrics.frequency import Frequency, container_id, frequency
from workbench.stack.sagemaker.metrics.points import Point

SCOPE: Scope = (("EndpointName", "e"), ("VariantName", "v"))
INVOCATIONS = catalogue.INVOCATIONS


def test_bins_close_after_the_lag() -> None:
    """A bin is published once, `lag` after its end, stamped with its start; equal values are counted together."""
    bins = Bins()
    for at, value in ((101.0, 1.0), (109.9, 1.0), (105.0, 2.0), (110.0, 7.0)):
        bins.add(SCOPE, Point(INVOCATIONS, value), at, 10)
    assert bins.take(111.9, 2.0) == {}
    (datum,) = bins.take(112.0, 2.0)[INFERENCE]
    assert datum == {
        "MetricName": "Invocations",
        "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}],
        "Timestamp": 100,
        "Unit": "None",
        "Values": [1.0, 2.0],
        "Counts": [2.0, 1.0],
        "StorageResolution": 1,
    }
    assert bins.take(112.0, 2.0) == {}


@pytest.mark.fidelity(
    "metrics", "a dedicated variant without traffic publishes zeros", source="developer guide: endpoint-auto-scaling"
)
def test_idle_bins() -> None:
    """A touched bin without values is one zero; one with values stays as it is."""
    bins = Bins()
    bins.touch(SCOPE, INVOCATIONS, 30.0, 60)
    bins.add(SCOPE, Point(INVOCATIONS, 1.0), 61.0, 60)
    bins.touch(SCOPE, INVOCATIONS, 62.0, 60)
    taken = bins.take(180.0, 0.0)[INFERENCE]
    assert [(d["Timestamp"], d["Values"], d["Counts"]) for d in taken] == [(0, [0.0], [1.0]), (60, [1.0], [1.0])]
    assert taken[0]["StorageResolution"] == 60


@pytest.mark.fidelity(
    "metrics",
    "A datum of PutMetricData has at most 150 values",
    source="botocore: PutMetricData Values",
)
def test_many_values_make_several_datums() -> None:
    """A datum has at most 150 values, and none is lost."""
    bins = Bins()
    for number in range(400):
        bins.add(SCOPE, Point(catalogue.MODEL_LATENCY, float(number)), 1.0, 60)
    sizes = [len(d["Values"]) for d in bins.take(60.0, 0.0)[INFERENCE]]
    assert sizes == [150, 150, 100]


@pytest.mark.fidelity(
    "metrics",
    "MetricPublishFrequencyInSeconds is for utilization, with enhanced metrics for all; concurrency has 10 s always",
    source="botocore MetricsConfig; developer guide: monitoring-cloudwatch-enhanced-metrics",
)
@pytest.mark.parametrize(
    ("config", "cpu", "invocations"),
    [
        ({}, 60, 60),
        ({"MetricPublishFrequencyInSeconds": 10}, 10, 60),
        ({"MetricPublishFrequencyInSeconds": 300, "EnableEnhancedMetrics": True}, 300, 300),
        ({"EnableEnhancedMetrics": True}, 60, 60),
    ],
)
def test_periods(config: dict[str, Any], cpu: float, invocations: float) -> None:
    """By kind of metric, divided by the time scale."""
    how = frequency({"MetricsConfig": config})
    for scale in (1.0, 10.0):
        periods = [
            how.period_s(m, 60, Clock(scale)) for m in (catalogue.CPU, INVOCATIONS, catalogue.CONCURRENT_REQUESTS)
        ]
        assert periods == [cpu / scale, invocations / scale, 10 / scale]
    assert how.period_s(catalogue.CONCURRENT_REQUESTS, 1, Clock()) == 1


@pytest.mark.fidelity(
    "metrics",
    "enhanced metrics come again by InstanceId, of requests with ContainerId, of GPUs with AcceleratorId",
    source="developer guide: monitoring-cloudwatch-enhanced-metrics",
)
def test_enhanced_dimensions() -> None:
    """In addition to the variant's own, and only when asked for and known."""
    more = {"InstanceId": "i-1"}
    enhanced = Frequency(enhanced=True)
    expected: dict[catalogue.Metric, dict[str, str]] = {
        catalogue.CPU: more,
        catalogue.GPU: more | {"AcceleratorId": "0"},
        INVOCATIONS: more | {"ContainerId": container_id("i-1")},
    }
    for metric, dimensions in expected.items():
        assert [dict(s) for s in enhanced.scopes(metric, SCOPE, "i-1")] == [dict(SCOPE), dict(SCOPE) | dimensions]
        assert list(enhanced.scopes(metric, SCOPE, None)) == [SCOPE]
        assert list(Frequency().scopes(metric, SCOPE, "i-1")) == [SCOPE]
