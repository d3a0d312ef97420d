"""The front door's count of what it accepted, as `Acceptances`: the sum of a CloudWatch metric over whole hours."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from functions.aws.sdk_errors import translated
from functions.settings import JOBS_ACCEPTED

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_HOUR_S: Final = 3600


class MetricAcceptances:
    """`JobsAccepted` of one stack."""

    def __init__(self, client: CloudWatchClient, stack: str, namespace: str) -> None:
        """`namespace` is where the front door counts."""
        self._client = client
        self._stack = stack
        self._namespace = namespace

    def accepted(self, begin: float, end: float) -> float | None:
        """The sum between two whole hours (see `batch_ports.Acceptances`)."""
        metric = {
            "Namespace": self._namespace,
            "MetricName": JOBS_ACCEPTED,
            "Dimensions": [{"Name": "stack", "Value": self._stack}],
        }
        query = {"Id": "accepted", "MetricStat": {"Metric": metric, "Period": _HOUR_S, "Stat": "Sum"}}
        asked: Any = {
            "MetricDataQueries": [query],
            "StartTime": datetime.fromtimestamp(begin, UTC),
            "EndTime": datetime.fromtimestamp(end, UTC),
        }
        total: float | None = None
        while True:
            with translated():
                answer: Mapping[str, Any] = self._client.get_metric_data(**asked)
            for result in answer["MetricDataResults"]:
                if result.get("Values"):
                    total = (total or 0.0) + sum(result["Values"])
            if not answer.get("NextToken"):
                return total
            asked["NextToken"] = answer["NextToken"]
