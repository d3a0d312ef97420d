"""The router's choice changes with CloudWatch: real load in a real process, a published metric, a rule that turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.conftest import MODEL, PATH
from tests.e2e.test_front_door import post
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults

LIMIT_S = 90.0


def test_low_priority_follows_the_dedicated_lanes_cpu(
    deployed: Deployment, api_key: Callable[[str], dict[str, str]], faults: Faults, client: Callable[[str], Any]
) -> None:
    """While the dedicated CPU is above the rule, low priority goes to serverless and normal stays; then it is back."""

    def lane(priority: str) -> str:
        response = post(
            deployed.url + PATH, {"text": "hello"}, api_key("internal-backfill") | {"X-Inferlane-Priority": priority}
        )
        assert response.status == 200, response.data
        return str(response.headers["x-inferlane-lane"])

    def wait_for(wanted: str) -> float:
        began = time.monotonic()
        while lane("low") != wanted:
            assert time.monotonic() - began < LIMIT_S, f"low priority never went to {wanted}"
            time.sleep(1)
        return time.monotonic() - began

    wait_for("dedicated")
    faults.inject(str(deployed.lane("dedicated", MODEL)["endpoint"]), "stress", {"cores": 2})
    wait_for("serverless")
    normal = post(deployed.url + PATH, {"text": "hello"}, api_key("demo-app"))
    assert normal.headers["x-inferlane-lane"] == "dedicated"
    peak = cpu_percent(client("cloudwatch"), deployed)
    assert peak > 75, "the rule turned although CloudWatch never showed the load"
    faults.clear()
    wait_for("dedicated")


def cpu_percent(cloudwatch: Any, deployed: Deployment) -> float:
    """Highest CPU of the dedicated lane in CloudWatch in the last two minutes, 0-100 over all cores."""
    lane = deployed.lane("dedicated", MODEL)
    now = datetime.now(UTC)
    points = cloudwatch.get_metric_statistics(
        Namespace="/aws/sagemaker/Endpoints",
        MetricName="CPUUtilization",
        Dimensions=[
            {"Name": "EndpointName", "Value": lane["endpoint"]},
            {"Name": "VariantName", "Value": lane["variant"]},
        ],
        StartTime=now - timedelta(minutes=2),
        EndTime=now,
        Period=10,
        Statistics=["Maximum"],
    )["Datapoints"]
    return max(float(point["Maximum"]) for point in points) / float(lane["vcpus"])
