"""The topology: every field of every lane, its default, its least value, and the words of a refusal."""

from __future__ import annotations

import pytest

from functions.core.topology import BatchLane, DedicatedLane, DeferredLane, ServerlessLane, Topology, TopologyError
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, SERVERLESS, topology, topology_document

LANES = {"dedicated": DEDICATED, "serverless": SERVERLESS, "batch": BATCH}
PLACE = f"models.{MODEL}.lanes"


def refusal(document: object) -> str:
    with pytest.raises(TopologyError) as refused:
        Topology.from_json(document)
    return str(refused.value)


def test_every_field_of_a_dedicated_lane_is_read() -> None:
    """None of them at its default."""
    told = {
        **DEDICATED,
        "variant": "Blue",
        "timeout_s": 59.5,
        "overhead_ms": 3,
        "expected_p99_ms": 180,
        "content_types": ["Image/*", "text/plain"],
    }
    assert topology(dedicated=told).models[MODEL]["dedicated"] == DedicatedLane(
        name="dedicated",
        endpoint="inferlane-test-moderation-dedicated",
        variant="Blue",
        instance_type="ml.g5.xlarge",
        vcpus=4,
        gpus=1,
        min_instances=1,
        max_instances=4,
        slots_per_instance=4,
        max_bytes=6_291_456,
        timeout_s=59.5,
        usd_per_instance_hour=1.408,
        overhead_ms=3.0,
        expected_p99_ms=180.0,
        content_types=("image/*", "text/plain"),
    )


def test_what_a_dedicated_lane_may_leave_out() -> None:
    """SageMaker's own variant and limit, no GPU, 10 ms of overhead, no price and no expectation."""
    optional = ("variant", "gpus", "timeout_s", "usd_per_instance_hour")
    lane = topology(dedicated={key: value for key, value in DEDICATED.items() if key not in optional})
    assert lane.models[MODEL]["dedicated"] == DedicatedLane(
        name="dedicated",
        endpoint="inferlane-test-moderation-dedicated",
        variant="AllTraffic",
        instance_type="ml.g5.xlarge",
        vcpus=4,
        gpus=0,
        min_instances=1,
        max_instances=4,
        slots_per_instance=4,
        max_bytes=6_291_456,
        timeout_s=60.0,
        usd_per_instance_hour=None,
        overhead_ms=10.0,
        expected_p99_ms=None,
        content_types=None,
    )


def test_every_field_of_a_serverless_lane_is_read() -> None:
    """None of them at its default."""
    told = {
        **SERVERLESS,
        "variant": "Blue",
        "timeout_s": 59.5,
        "overhead_ms": 3,
        "cold_start_ms": 8000,
        "expected_p99_ms": 420,
        "content_types": ["application/json"],
    }
    assert topology(serverless=told).models[MODEL]["serverless"] == ServerlessLane(
        name="serverless",
        endpoint="inferlane-test-moderation-serverless",
        variant="Blue",
        memory_mb=4096,
        max_concurrency=20,
        max_bytes=4_194_304,
        timeout_s=59.5,
        usd_per_s=0.00008,
        overhead_ms=3.0,
        cold_start_ms=8000.0,
        expected_p99_ms=420.0,
        content_types=("application/json",),
    )


def test_what_a_serverless_lane_may_leave_out() -> None:
    """Six seconds of cold start beside the defaults of a dedicated one."""
    optional = ("variant", "timeout_s", "usd_per_s")
    lane = topology(serverless={key: value for key, value in SERVERLESS.items() if key not in optional})
    assert lane.models[MODEL]["serverless"] == ServerlessLane(
        name="serverless",
        endpoint="inferlane-test-moderation-serverless",
        variant="AllTraffic",
        memory_mb=4096,
        max_concurrency=20,
        max_bytes=4_194_304,
        timeout_s=60.0,
        usd_per_s=None,
        overhead_ms=10.0,
        cold_start_ms=6000.0,
        expected_p99_ms=None,
        content_types=None,
    )


def test_a_batch_lane_is_read_with_and_without_its_options() -> None:
    """A job begins after five minutes unless said otherwise, and a run has 20,000 records or half an hour."""
    told = {
        **BATCH,
        "startup_s": 240,
        "content_types": ["application/jsonl"],
        "model_name": "inferlane-test-moderation-0a1b2c3d",
        "instance_count": 3,
        "max_jobs": 5,
        "target_records": 100,
        "max_wait_s": 60.5,
        "strategy": "SingleRecord",
        "max_payload_mb": 20,
        "max_concurrent": 4,
        "record_s": 0.25,
    }
    assert topology(batch=told).models[MODEL]["batch"] == BatchLane(
        name="batch",
        kind="batch",
        max_bytes=104_857_600,
        startup_s=240.0,
        usd_per_instance_hour=0.204,
        content_types=("application/jsonl",),
        model_name="inferlane-test-moderation-0a1b2c3d",
        instance_type="ml.c5.xlarge",
        instance_count=3,
        max_jobs=5,
        target_records=100,
        max_wait_s=60.5,
        strategy="SingleRecord",
        max_payload_mb=20,
        max_concurrent=4,
        record_s=0.25,
    )
    least = topology(batch={"kind": "batch", "max_bytes": 9})
    assert least.models[MODEL]["batch"] == BatchLane(
        name="batch",
        kind="batch",
        max_bytes=9,
        startup_s=300.0,
        usd_per_instance_hour=None,
        content_types=None,
        model_name=None,
        instance_type=None,
        instance_count=1,
        max_jobs=2,
        target_records=20_000,
        max_wait_s=1800.0,
        strategy="MultiRecord",
        max_payload_mb=6,
        max_concurrent=0,
        record_s=0.05,
    )


def test_a_batch_lane_that_can_run_names_its_model_and_its_instances() -> None:
    """Without either, or without the lane, there is none to start a job on."""
    whole = {**BATCH, "model_name": "m"}
    assert topology(batch=whole).batch_lane(MODEL) == topology(batch=whole).models[MODEL]["batch"]
    assert topology(batch=BATCH).batch_lane(MODEL) is None
    assert topology(batch={**whole, "instance_type": None}).batch_lane(MODEL) is None
    assert topology(dedicated=DEDICATED).batch_lane(MODEL) is None
    assert topology(batch=whole).batch_lane("x") is None


def test_a_batch_strategy_is_one_of_two() -> None:
    """SageMaker's words."""
    document = topology_document(batch={**BATCH, "strategy": "Many"})
    assert refusal(document) == f"{PLACE}.batch.strategy: unknown strategy 'Many' (known: MultiRecord, SingleRecord)"


def test_an_external_lane_is_known_and_serves_nobody() -> None:
    """Neither synchronous nor chosen by a decision."""
    on = topology(external={"kind": "external"}, batch=BATCH, dedicated=DEDICATED)
    assert on.models[MODEL]["external"] == DeferredLane("external", "external")
    assert list(on.sync_lanes(MODEL)) == ["dedicated"]
    assert list(on.serving_lanes(MODEL)) == ["batch", "dedicated"]
    assert (on.sync_lanes("x"), on.serving_lanes("x")) == ({}, {})
    assert on.region == "us-east-1"


LEAST: list[tuple[str, str, float]] = [
    ("dedicated", "vcpus", 1),
    ("dedicated", "gpus", 0),
    ("dedicated", "min_instances", 0),
    ("dedicated", "slots_per_instance", 1),
    ("dedicated", "max_bytes", 1),
    ("dedicated", "timeout_s", 0.001),
    ("dedicated", "usd_per_instance_hour", 0),
    ("dedicated", "overhead_ms", 0),
    ("dedicated", "expected_p99_ms", 0),
    ("serverless", "memory_mb", 1),
    ("serverless", "max_concurrency", 1),
    ("serverless", "max_bytes", 1),
    ("serverless", "timeout_s", 0.001),
    ("serverless", "usd_per_s", 0),
    ("serverless", "overhead_ms", 0),
    ("serverless", "cold_start_ms", 0),
    ("serverless", "expected_p99_ms", 0),
    ("batch", "max_bytes", 1),
    ("batch", "startup_s", 0),
    ("batch", "usd_per_instance_hour", 0),
    ("batch", "instance_count", 1),
    ("batch", "max_jobs", 1),
    ("batch", "target_records", 1),
    ("batch", "max_wait_s", 0),
    ("batch", "max_payload_mb", 1),
    ("batch", "max_concurrent", 0),
    ("batch", "record_s", 0),
]


@pytest.mark.parametrize(("lane", "key", "least"), LEAST)
def test_every_number_has_its_least_value(lane: str, key: str, least: float) -> None:
    """That one is read, and what lies below it is refused."""
    found = topology(**{lane: {**LANES[lane], key: least}}).models[MODEL][lane]
    assert getattr(found, key) == least
    below = least - 1
    assert refusal(topology_document(**{lane: {**LANES[lane], key: below}})) == (
        f"{PLACE}.{lane}.{key}: must be at least {least:g}, found {below:g}"
    )


def test_the_most_instances_are_one_at_least_and_not_below_the_fewest() -> None:
    """Equal is a lane of fixed size."""
    fixed = topology(dedicated={**DEDICATED, "min_instances": 1, "max_instances": 1}).models[MODEL]["dedicated"]
    assert isinstance(fixed, DedicatedLane)
    assert (fixed.min_instances, fixed.max_instances) == (1, 1)
    for fewest, most, cause in (
        (0, 0, "must be at least 1, found 0"),
        (3, 2, "2 is below min_instances 3"),
    ):
        document = topology_document(dedicated={**DEDICATED, "min_instances": fewest, "max_instances": most})
        assert refusal(document) == f"{PLACE}.dedicated.max_instances: {cause}"


REQUIRED = [
    *(("dedicated", key) for key in ("kind", "endpoint", "instance_type", "vcpus", "min_instances", "max_instances")),
    *(("dedicated", key) for key in ("slots_per_instance", "max_bytes")),
    *(("serverless", key) for key in ("kind", "endpoint", "memory_mb", "max_concurrency", "max_bytes")),
    *(("batch", key) for key in ("kind", "max_bytes")),
]


@pytest.mark.parametrize(("lane", "key"), REQUIRED)
def test_what_a_lane_must_say(lane: str, key: str) -> None:
    """The error names the lane's place and the key."""
    document = topology_document(**{lane: {name: value for name, value in LANES[lane].items() if name != key}})
    assert refusal(document) == f"{PLACE}.{lane}: key {key!r} is missing"


KNOWN = "(known: dedicated, serverless, batch, external)"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected a mapping, found a list"),
        ({}, "key 'schema' is missing"),
        (
            {"schema": "inferlane/topology/v2"},
            "schema: expected 'inferlane/topology/v1', found 'inferlane/topology/v2'",
        ),
        ({"schema": "inferlane/topology/v1"}, "key 'models' is missing"),
        ({"schema": "inferlane/topology/v1", "models": []}, "models: expected a mapping, found a list"),
        ({"schema": "inferlane/topology/v1", "models": {}}, "key 'region' is missing"),
        ({"schema": "inferlane/topology/v1", "models": {"m": {}}, "region": "r"}, "models.m: key 'lanes' is missing"),
        (topology_document(gpu=DEDICATED), f"{PLACE}: unknown lane 'gpu' {KNOWN}"),
        (topology_document(batch={**BATCH, "kind": "queue"}), f"{PLACE}.batch.kind: unknown kind 'queue' {KNOWN}"),
        (
            topology_document(dedicated={**SERVERLESS}),
            f"{PLACE}.dedicated.kind: lane 'dedicated' cannot be of kind 'serverless'",
        ),
        (
            topology_document(serverless={**DEDICATED}),
            f"{PLACE}.serverless.kind: lane 'serverless' cannot be of kind 'dedicated'",
        ),
        (
            topology_document(dedicated={**DEDICATED, "content_types": "image/*"}),
            f"{PLACE}.dedicated.content_types: expected a list, found text",
        ),
        (
            topology_document(dedicated={**DEDICATED, "content_types": ["image/*", ""]}),
            f"{PLACE}.dedicated.content_types[1]: expected text, found an empty one",
        ),
    ],
)
def test_what_is_no_topology_is_refused_in_these_words(document: object, message: str) -> None:
    """Place and cause."""
    assert refusal(document) == message
