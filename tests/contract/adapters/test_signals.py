"""The SignalSource contract: CloudWatch through moto, and what a failing reading does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from functions.aws.cloudwatch import CloudWatchSignals
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from functions.ports import SignalSource
from tests.contract.adapters.stub import unused_url
from tests.unit.core.builders import DEDICATED, IDLE, MODEL, SERVERLESS, topology, topology_document
from tests.unit.handlers.fakes import FakeLog, FakeSignals

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

REGION = "us-east-1"
CALLS, HOSTS = "AWS/SageMaker", "/aws/sagemaker/Endpoints"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


@pytest.fixture
def cloudwatch() -> Iterator[CloudWatchClient]:
    with mock_aws():
        yield boto3.client("cloudwatch", region_name=REGION)


@pytest.fixture
def now() -> float:
    """A whole minute, just past."""
    return datetime.now(UTC).replace(second=0, microsecond=0).timestamp()


def put(
    client: CloudWatchClient, namespace: str, metric: str, at: float, *values: float, lane: dict[str, Any] = DEDICATED
) -> None:
    client.put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": metric,
                "Timestamp": datetime.fromtimestamp(at, UTC),
                "Value": value,
                "Dimensions": [
                    {"Name": "EndpointName", "Value": lane["endpoint"]},
                    {"Name": "VariantName", "Value": lane["variant"]},
                ],
            }
            for value in values
        ],
    )


def read(client: CloudWatchClient, now: float, *, on: Topology | None = None, period_s: int = 60) -> Snapshot:
    source = CloudWatchSignals(lambda: client, on or topology(), period_s=period_s, ttl_s=15, log=FakeLog())
    return source.snapshot(now)


def newest(snapshot: Snapshot, lane: str, now: float) -> dict[str, float]:
    series = snapshot.lane(MODEL, lane).series
    return {name: point[1] for name in series if (point := series[name].newest(now)) is not None}


def test_sagemakers_units_become_the_contracts(cloudwatch: CloudWatchClient, now: float) -> None:
    """CPU and GPU per core, instances from the per-instance count, faults without 4xx."""
    at = now - 60
    put(cloudwatch, HOSTS, "CPUUtilization", at, 340.0)
    put(cloudwatch, HOSTS, "GPUUtilization", at, 55.0)
    put(cloudwatch, HOSTS, "MemoryUtilization", at, 40.0)
    put(cloudwatch, CALLS, "ConcurrentRequestsPerModel", at, 1.0, 3.0)
    put(cloudwatch, CALLS, "Invocations", at, 1.0, 1.0, 1.0, 1.0)
    put(cloudwatch, CALLS, "InvocationsPerInstance", at, 0.5, 0.5, 0.5, 0.5)
    put(cloudwatch, CALLS, "Invocation5XXErrors", at, 1.0)
    put(cloudwatch, CALLS, "InvocationModelErrors", at, 1.0, 1.0, 1.0, 1.0)
    put(cloudwatch, CALLS, "Invocation4XXErrors", at, 1.0)
    snapshot = read(cloudwatch, now)
    assert newest(snapshot, "dedicated", now) == {
        "cpu_percent": 85.0,
        "gpu_percent": 55.0,
        "memory_percent": 40.0,
        "concurrency": 3.0,
        "invocations": 4.0,
        "errors": 3.0,
        "instances": 2.0,
    }
    assert (snapshot.taken_at, snapshot.lane(MODEL, "dedicated").in_flight) == (now, 0)


class Scripted:
    """A client that answers percentiles, which moto cannot, and in pages."""

    def get_metric_data(self, **asked: Any) -> Any:
        wanted = {query["MetricStat"]["Stat"]: query["Id"] for query in asked["MetricDataQueries"]}
        at = datetime.fromtimestamp(asked["EndTime"].timestamp() - 60, UTC)
        if "NextToken" not in asked:
            answer = {"Id": wanted["p50"], "Timestamps": [at], "Values": [80_000.0], "StatusCode": "PartialData"}
            return {"MetricDataResults": [answer], "NextToken": "more"}
        return {"MetricDataResults": [{"Id": wanted["p99"], "Timestamps": [at], "Values": [900_000.0]}]}


def test_latency_is_in_milliseconds_and_every_page_is_read(now: float) -> None:
    """SageMaker's microseconds; an answer may come in parts."""
    client: Any = Scripted()
    found = newest(read(client, now, on=topology(dedicated=DEDICATED)), "dedicated", now)
    assert found == {"model_latency_p50_ms": 80.0, "model_latency_p99_ms": 900.0}


def test_serverless_concurrency_is_its_utilization_of_the_maximum(cloudwatch: CloudWatchClient, now: float) -> None:
    """A quarter of 20 is five."""
    put(cloudwatch, CALLS, "ServerlessConcurrentExecutionsUtilization", now - 60, 0.25, lane=SERVERLESS)
    assert newest(read(cloudwatch, now), "serverless", now) == {"concurrency": 5.0}


def test_ten_second_utilization_keeps_its_period(cloudwatch: CloudWatchClient, now: float) -> None:
    """Utilization at the stack's period, invocation metrics each minute."""
    for k in range(1, 7):
        put(cloudwatch, HOSTS, "CPUUtilization", now - 10 * k, 400.0)
        put(cloudwatch, CALLS, "Invocations", now - 10 * k, 1.0)
    series = read(cloudwatch, now, period_s=10).lane(MODEL, "dedicated").series
    assert series["cpu_percent"].period_s == 10
    assert [value for _, value in series["cpu_percent"].points] == [100.0] * 6
    assert series["invocations"].period_s == 60
    assert sum(value for _, value in series["invocations"].points) == 6.0


def test_a_silent_lane_is_unknown_not_zero(cloudwatch: CloudWatchClient, now: float) -> None:
    """No points, no series."""
    snapshot = read(cloudwatch, now)
    assert snapshot.lane(MODEL, "dedicated").series == {}
    assert snapshot.known(MODEL, "dedicated", now) is False


class Counting:
    """A client that counts its calls, fails when told to, and hands on to another."""

    def __init__(self, client: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self.broken = False
        self._client = client

    def get_metric_data(self, **asked: Any) -> Any:
        self.calls.append(asked)
        if self.broken:
            raise ConnectionError("no CloudWatch; account 123456789012")
        return self._client.get_metric_data(**asked)


def counting(client: Any, on: Topology, log: FakeLog) -> tuple[Counting, CloudWatchSignals]:
    counted: Any = Counting(client)
    return counted, CloudWatchSignals(lambda: counted, on, period_s=60, ttl_s=15, log=log)


def test_one_call_reads_every_lane_once_per_time_to_live(cloudwatch: CloudWatchClient, now: float) -> None:
    """Raw series only, newest first, and nothing that serverless does not publish."""
    client, source = counting(cloudwatch, topology(), FakeLog())
    for later in (0, 5, 14, 16):
        source.snapshot(now + later)
    assert len(client.calls) == 2
    asked = client.calls[0]
    assert asked["ScanBy"] == "TimestampDescending"
    assert not any("Expression" in query for query in asked["MetricDataQueries"])
    serverless = {
        query["MetricStat"]["Metric"]["MetricName"]
        for query in asked["MetricDataQueries"]
        if query["MetricStat"]["Metric"]["Dimensions"][0]["Value"] == SERVERLESS["endpoint"]
    }
    assert not {"CPUUtilization", "InvocationsPerInstance", "ConcurrentRequestsPerModel"} & serverless


def test_many_models_are_split_at_the_services_limit(cloudwatch: CloudWatchClient, now: float) -> None:
    """Never more than 500 queries a call."""
    document = topology_document()
    lanes = {"lanes": {"dedicated": DEDICATED, "serverless": SERVERLESS}}
    document["models"] = {f"m{i}": lanes for i in range(40)}
    client, source = counting(cloudwatch, Topology.from_json(document), FakeLog())
    source.snapshot(now)
    sizes = [len(call["MetricDataQueries"]) for call in client.calls]
    assert len(sizes) == 2
    assert max(sizes) == 500


def test_a_failing_reading_keeps_the_old_snapshot_and_its_age(cloudwatch: CloudWatchClient, now: float) -> None:
    """Logged once a minute, without the account id; never raised; aged into unknown."""
    put(cloudwatch, HOSTS, "CPUUtilization", now - 60, 100.0)
    log = FakeLog()
    client, source = counting(cloudwatch, topology(), log)
    first = source.snapshot(now)
    client.broken = True
    assert all(source.snapshot(now + later) is first for later in range(1, 59))
    assert len(client.calls) == 1 + 3
    assert [line[0] for line in log.lines] == ["warning"]
    assert "123456789012" not in str(log.lines)
    assert first.known(MODEL, "dedicated", now + 700) is False


@pytest.fixture(params=["fake", "working", "unreachable"])
def source(request: pytest.FixtureRequest) -> Iterator[SignalSource]:
    """Every kind of source: the fake, one that reads, one that never could."""
    if request.param == "fake":
        yield FakeSignals(IDLE)
        return
    with mock_aws():
        client = boto3.client("cloudwatch", region_name=REGION)
        if request.param == "working":
            yield CloudWatchSignals(lambda: client, topology(), period_s=60, ttl_s=15, log=FakeLog())
            return
    config = Config(connect_timeout=1, read_timeout=1, retries={"total_max_attempts": 1})
    dead = boto3.client("cloudwatch", region_name=REGION, endpoint_url=unused_url(), config=config)
    yield CloudWatchSignals(lambda: dead, topology(), period_s=60, ttl_s=15, log=FakeLog())


def test_a_source_always_has_a_snapshot_and_the_same_within_a_moment(source: SignalSource, now: float) -> None:
    """The fake's promise and the adapter's."""
    first = source.snapshot(now)
    assert isinstance(first, Snapshot)
    assert source.snapshot(now + 0.1) is first or first.taken_at is None
    assert isinstance(first.known(MODEL, "dedicated", now), bool)
