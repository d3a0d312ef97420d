"""The shared snapshot: DynamoDB through moto, a fake CloudWatch, and everything that can go wrong between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from functions.aws.direct import ConditionalCheckFailedError, Dynamo, Items, Service
from functions.aws.snapshot_codec import CodecError, decode, encode
from functions.aws.snapshot_store import LEASE_S, SharedSignals
from functions.carry import carried
from functions.core.latches import Signal, replay
from functions.core.snapshot import LaneState, LatchState, ModelState, Series, Snapshot
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_policies import KEYS
from tests.unit.core.builders import MODEL, NOW, lane, points, snapshot
from tests.unit.handlers.fakes import FakeLog

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLE = "inferlane-test-snapshot"
TTL_S = 15.0
APART_S = 2.0
"""Instances look up to this much after a snapshot has become old."""


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def client() -> Iterator[DynamoDBClient]:
    with mock_aws():
        made = boto3.client("dynamodb", region_name="us-east-1")
        made.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield made


@dataclass
class Metrics:
    """CloudWatch: counts its readings, and fails or dawdles when told to."""

    reads: int = 0
    broken: bool = False
    meanwhile: Any = None
    last: list[Snapshot | None] = field(default_factory=list)

    def read(self, now: float, last: Snapshot | None) -> Snapshot:
        self.reads += 1
        self.last.append(last)
        if self.broken:
            raise OSError("CloudWatch of account 123456789012 is down")
        if self.meanwhile is not None:
            self.meanwhile()
        return snapshot(taken_at=now, dedicated=lane({"cpu_percent": points(80.0 + self.reads, now=now)}))


class Watched:
    """boto3's client as `Items`, which counts its calls and breaks when told to."""

    def __init__(self, inner: DynamoDBClient) -> None:
        self._inner = inner
        self.calls: list[str] = []
        self.broken = False

    def __getattr__(self, name: str) -> Any:
        def call(**asked: Any) -> Any:
            self.calls.append(name)
            if self.broken:
                raise ConnectionError("no answer from the table of account 123456789012")
            try:
                return getattr(self._inner, name)(**asked)
            except self._inner.exceptions.ConditionalCheckFailedException as error:
                raise ConditionalCheckFailedError(str(error)) from error

        return call


def direct(url: str) -> Dynamo:
    """The client that the router uses."""
    return Dynamo(Service("dynamodb", "dynamodb", "us-east-1", KEYS, url=url, timeout_s=1))


def items(client: Any) -> Items:
    """As the adapters take it."""
    found: Items = Watched(client) if hasattr(client, "meta") else client
    return found


def instance(client: Any, metrics: Metrics, owner: str = "one", log: FakeLog | None = None) -> SharedSignals:
    return SharedSignals(
        items(client), TABLE, metrics.read, owner=owner, ttl_s=TTL_S, log=log if log is not None else FakeLog()
    )


def cpu(found: Snapshot) -> float:
    return found.lane(MODEL, "dedicated").series["cpu_percent"].points[-1][1]


def test_a_thousand_seconds_of_fifty_instances_read_cloudwatch_as_often_as_one(client: DynamoDBClient) -> None:
    """Once per time to live (and spread) in all; everyone sees the same, never older than that and a moment."""
    metrics = Metrics()
    instances = [instance(client, metrics, f"i-{i}") for i in range(50)]
    for second in range(150):
        now = NOW + second
        found = {cpu(one.snapshot(now)) for one in instances if one.snapshot(now).taken_at is not None}
        assert len(found) <= 2
        ages = [one.snapshot(now).age_s(now) for one in instances]
        assert all(age is not None and age <= TTL_S + APART_S + 1 for age in ages[1 if second == 0 else 0 :] if age)
    assert metrics.reads <= 150 / TTL_S + 1


def test_between_looks_dynamodb_is_not_asked(client: DynamoDBClient) -> None:
    """A fresh snapshot costs its holder nothing; another instance one read."""
    metrics = Metrics()
    first, second = Watched(client), Watched(client)
    a, b = instance(first, metrics, "a"), instance(second, metrics, "b")
    held = a.snapshot(NOW)
    assert first.calls == ["get_item", "update_item", "put_item"]
    assert all(a.snapshot(NOW + later) is held for later in (1, 5, 14))
    assert b.snapshot(NOW + 1) == held
    assert all(b.snapshot(NOW + later) == held for later in (2, 8, 14))
    assert (len(first.calls), second.calls, metrics.reads) == (3, ["get_item"], 1)


def test_who_does_not_get_the_lease_serves_the_old_one_and_soon_looks_again(client: DynamoDBClient) -> None:
    """While the holder reads CloudWatch, the other neither waits nor reads."""
    metrics, others = Metrics(), Metrics()
    b = instance(client, others, "b")
    a = instance(client, metrics, "a")
    old = a.snapshot(NOW)
    assert b.snapshot(NOW) == old
    later = NOW + TTL_S + APART_S
    seen: list[Snapshot] = []
    metrics.meanwhile = lambda: seen.append(b.snapshot(later))
    new = a.snapshot(later)
    assert seen == [old]
    assert others.reads == 0
    assert b.snapshot(later + 1) == new


def test_a_holder_that_dies_is_replaced_when_its_lease_ends(client: DynamoDBClient) -> None:
    """Five seconds later another reads; nobody before."""
    dying, metrics = Metrics(), Metrics()

    def dies() -> None:
        raise SystemExit

    dying.meanwhile = dies
    with pytest.raises(SystemExit):
        instance(client, dying, "dead").snapshot(NOW)
    b = instance(client, metrics, "b")
    ages = [b.snapshot(NOW + tenth / 10).taken_at for tenth in range(71)]
    assert metrics.reads == 1
    assert ages[int(LEASE_S * 10) - 1] is None
    assert ages[-1] is not None


def test_what_an_overtaken_holder_writes_is_refused(client: DynamoDBClient) -> None:
    """It was frozen while it held the lease; the later epoch stays, whatever the stamps."""
    slow, quick = Metrics(), Metrics()
    b = instance(client, quick, "b")
    slow.meanwhile = lambda: b.snapshot(NOW + LEASE_S + 1)
    instance(client, slow, "a").snapshot(NOW)
    assert quick.reads == 1
    found = instance(client, Metrics(), "c").snapshot(NOW + LEASE_S + 2)
    assert found.taken_at == pytest.approx(NOW + LEASE_S + 1)


def test_a_failing_cloudwatch_is_asked_once_a_lease_by_all_together(client: DynamoDBClient) -> None:
    """The old one serves on and ages; one line a minute, without the account."""
    metrics, log = Metrics(), FakeLog()
    instances = [instance(client, metrics, f"i-{i}", log) for i in range(10)]
    old = instances[0].snapshot(NOW)
    metrics.broken = True
    for second in range(60):
        for one in instances:
            assert one.snapshot(NOW + second) == old or second == 0
    assert metrics.reads - 1 <= (60 - TTL_S) / LEASE_S + 1
    assert "123456789012" not in str(log.lines)


def test_without_dynamodb_the_last_one_serves_and_cloudwatch_rests(client: DynamoDBClient) -> None:
    """Down for nine minutes: its age tells. It is asked after pauses that double up to a minute."""
    metrics, log = Metrics(), FakeLog()
    broken = Watched(client)
    one = instance(broken, metrics, "a", log)
    old = one.snapshot(NOW)
    broken.broken, calls = True, len(broken.calls)
    assert all(one.snapshot(NOW + second) is old for second in range(0, 540, 5))
    assert metrics.reads == 1
    assert len(broken.calls) - calls == 10  # at 20, 35, 65, 125 s, and each minute from then on
    assert [line[0] for line in log.lines].count("warning") <= 10
    broken.broken = False
    assert one.snapshot(NOW + 600).taken_at == pytest.approx(NOW + 600)
    assert one.snapshot(NOW + 620).taken_at == pytest.approx(NOW + 620)
    broken.broken, calls = True, len(broken.calls)
    assert all(one.snapshot(NOW + 620 + second) for second in range(0, 60, 5))
    assert len(broken.calls) - calls == 2  # the first pause is short again


def test_without_dynamodb_and_without_a_believable_snapshot_it_reads_for_itself() -> None:
    """Once per time to live, and once again once the last one has become unknown."""
    dead = direct(unused_url())
    metrics = Metrics()
    one = instance(dead, metrics)
    assert one.snapshot(NOW).taken_at == NOW
    assert one.snapshot(NOW + 20).taken_at == NOW
    assert one.snapshot(NOW + 620).taken_at == NOW + 620
    assert metrics.reads == 2


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "ThrottlingException", "InternalServerError"]
)
def test_a_throttled_table_slows_nobody(code: str) -> None:
    """As if it were gone."""
    body = b'{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"slow down"}' % code.encode()
    with Stub(Reply(400, body, {"content-type": "application/x-amz-json-1.0"})) as stub:
        assert instance(direct(stub.url), Metrics()).snapshot(NOW).taken_at == NOW
        assert len(stub.received) == 1


def test_clocks_a_few_seconds_apart_change_nothing_but_the_moment(client: DynamoDBClient) -> None:
    """Three instances, 3 s apart: still about one reading per time to live."""
    metrics = Metrics()
    instances = [(instance(client, metrics, f"i-{skew}"), skew) for skew in (-3, 0, 3)]
    for second in range(300):
        for one, skew in instances:
            one.snapshot(NOW + second + skew)
    assert metrics.reads <= 300 / (TTL_S - 6) + 2


def test_a_clock_an_hour_ahead_is_overruled(client: DynamoDBClient) -> None:
    """Neither its snapshot nor its lease keeps the others from theirs."""
    instance(client, Metrics(), "wrong").snapshot(NOW + 3600)
    found = instance(client, Metrics(), "right").snapshot(NOW)
    assert found.taken_at == pytest.approx(NOW)


def test_a_clock_set_back_here_does_not_stop_the_looking(client: DynamoDBClient) -> None:
    """An hour back: looked at anew."""
    metrics = Metrics()
    one = instance(client, metrics)
    one.snapshot(NOW)
    assert one.snapshot(NOW - 3600).taken_at == pytest.approx(NOW - 3600)


def test_an_item_of_another_form_is_replaced(client: DynamoDBClient) -> None:
    """Written by another version, say."""
    client.put_item(
        TableName=TABLE,
        Item={"pk": {"S": "snapshot"}, "body": {"B": b"?"}, "epoch": {"N": "3"}, "taken_at": {"N": "1"}},
    )
    log = FakeLog()
    assert instance(client, Metrics(), "a", log).snapshot(NOW).taken_at == NOW
    assert instance(client, Metrics(), "b").snapshot(NOW + 1).taken_at == NOW
    assert log.lines[0][0] == "warning"


def test_a_snapshot_too_large_for_an_item_serves_the_one_who_read_it(
    client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is said, instead of failing a request."""
    log = FakeLog()
    lanes = {f"m{i}": ModelState({"dedicated": noisy(i)}) for i in range(200)}
    one = SharedSignals(items(client), TABLE, lambda now, _: Snapshot(now, lanes), owner="a", ttl_s=TTL_S, log=log)
    assert one.snapshot(NOW).taken_at == NOW
    assert "does not fit" in str(log.lines[0][2])


def noisy(seed: int) -> LaneState:
    values = [((seed * 7919 + i * 104729) % 999_983) / 7 for i in range(60)]
    return LaneState({f"s{k}": points(*(value / (k + 1) for value in values)) for k in range(10)})


def test_latches_are_carried_by_whoever_reads(client: DynamoDBClient) -> None:
    """The refresher begins where the one before it, another instance, left off."""
    signals = {"hot": Signal("dedicated", "cpu_percent", 50, 60, 10, 60)}

    def reading(now: float, last: Snapshot | None) -> Snapshot:
        hot = last is None
        fresh = snapshot(taken_at=now, dedicated=lane({"cpu_percent": points(90.0 if hot else 30.0, now=now)}))
        return carried(fresh, last, signals, now)

    def made(owner: str) -> SharedSignals:
        return SharedSignals(items(client), TABLE, reading, owner=owner, ttl_s=TTL_S, log=FakeLog())

    since = made("a").snapshot(NOW).latch(MODEL, "hot")
    again = made("b").snapshot(NOW + 3 * TTL_S).latch(MODEL, "hot")
    assert since == again == LatchState(on=True, since=NOW)


values = st.lists(st.one_of(st.floats(0, 100), st.none()), min_size=1, max_size=180)


@given(values, st.integers(1, 60))
def test_carrying_the_state_of_now_is_as_good_as_replaying_everything(seen: list[float | None], step: int) -> None:
    """Three hours of points read by the hour, now and then, and carried: the state that the whole history gives."""
    signal = Signal("dedicated", "cpu_percent", above=85, for_s=180, until_below=60, until_for_s=120)
    every = [(NOW + 60.0 * i, value) for i, value in enumerate(seen) if value is not None]
    last: Snapshot | None = None
    state = LatchState(on=False)
    for upto in range(step, len(seen) + 1, step):
        now = NOW + 60.0 * upto
        window = [point for point in every if now - 3600 <= point[0] < now]
        fresh = snapshot(taken_at=now, dedicated=lane({"cpu_percent": Series.of(window)}))
        last = carried(fresh, last, {"hot": signal}, now)
        found = last.latch(MODEL, "hot")
        assert found is not None
        state = replay_all(signal, every, now)
        assert found.on == state.on


def replay_all(signal: Signal, every: list[tuple[float, float]], now: float) -> LatchState:
    """As `replay`, from the first point on: an hour at a time would lose what was before."""
    state = LatchState(on=False)
    upto = NOW + 60.0
    while upto <= now:
        window = [point for point in every if upto - 3600 <= point[0] < upto]
        state = replay(signal, Series.of(window), state, upto)
        upto += 60.0
    return state


series = st.builds(
    lambda stamps, period, seed: Series.of([(NOW + s * period, (seed * (s + 1)) % 97.3) for s in stamps], period),
    st.lists(st.integers(0, 400), max_size=80),
    st.sampled_from([1.0, 10.0, 60.0]),
    st.floats(0, 1000),
)


@given(series)
def test_the_item_holds_what_was_read(one: Series) -> None:
    """Stamps exactly, values to six digits; twice is as once."""
    before = Snapshot(NOW, {MODEL: ModelState({"dedicated": LaneState({"cpu_percent": one}, in_flight=0)})})
    once = decode(encode(before))
    found = once.lane(MODEL, "dedicated").series["cpu_percent"]
    assert found.period_s == one.period_s or not one.points
    assert [at for at, _ in found.points] == pytest.approx([at for at, _ in one.points], abs=1e-6)
    assert [value for _, value in found.points] == pytest.approx([value for _, value in one.points], rel=1e-5, abs=1e-9)
    assert decode(encode(once)) == once


def test_points_off_the_grid_keep_their_stamps() -> None:
    """Whatever a metric's publisher does."""
    odd = Series.of([(NOW, 1.0), (NOW + 61.5, 2.0), (NOW + 1e6, 3.0)], 60.0)
    before = Snapshot(NOW, {MODEL: ModelState({"dedicated": LaneState({"cpu_percent": odd})})})
    assert decode(encode(before)).lane(MODEL, "dedicated").series["cpu_percent"] == odd


@pytest.mark.parametrize("body", [b"", b"x", b"x\x9c", encode(snapshot())[:-3]])
def test_what_is_no_snapshot_is_said_so(body: bytes) -> None:
    """Cut off, or something else."""
    with pytest.raises(CodecError):
        decode(body)


def test_an_item_of_twenty_lanes_is_small() -> None:
    """An hour of ten noisy series for each: well within DynamoDB's 400 KB."""
    lanes = {f"m{i}": ModelState({"dedicated": noisy(i), "serverless": noisy(i + 50)}) for i in range(10)}
    assert len(encode(Snapshot(NOW, lanes))) < 80_000
