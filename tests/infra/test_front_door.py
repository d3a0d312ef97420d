"""The gateway's own alarm: failures of which the router could tell nothing."""

from __future__ import annotations

from tests.infra.capture import Program
from tests.infra.conftest import TOPIC, named

ALARM = "front-door-errors"


def test_what_the_router_cannot_count_is_heard_of(programs: dict[str, Program]) -> None:
    """The share of 5xx among all calls, as API Gateway counts them for this API; who is told is the stack file's."""
    alarm = named(programs["growth"], ALARM)
    *counts, share = alarm["metricQueries"]

    assert {query["id"]: query["metric"] for query in counts} == {
        id_: {
            "namespace": "AWS/ApiGateway",
            "metricName": metric,
            "dimensions": {"ApiId": "api1"},
            "stat": "Sum",
            "period": 60,
        }
        for id_, metric in (("calls", "Count"), ("failed", "5xx"))
    }
    assert share["expression"] == "IF(calls >= 20, 100 * failed / calls, 0)"
    assert (alarm["name"], alarm["threshold"]) == ("inferlane-growth-front-door-errors", 2)
    assert (alarm["evaluationPeriods"], alarm["datapointsToAlarm"], alarm["treatMissingData"]) == (
        *(5, 3, "notBreaching"),
    )
    assert alarm["alarmActions"] == []
    told = named(programs["growth-topic"], ALARM)
    assert told["alarmActions"] == told["okActions"] == [TOPIC]
