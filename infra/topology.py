"""The generated half of what the router knows: lanes, their endpoints, hardware, limits and prices (DESIGN: contract
`inferlane/topology/v1`).

A lane's endpoint name comes from the endpoint resource, not from its wanted name, so whatever carries the topology is
updated only after the endpoints stand. Limits are SageMaker's own, with their sources below.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

from infra import naming
from infra.batch_config import BatchLaneConfig
from infra.config import DedicatedConfig, ServerlessConfig, StackConfig
from infra.pricebook import PriceBook

SCHEMA = "inferlane/topology/v1"
DEDICATED_MAX_BYTES = 6_291_456
"""BodyBlob.max (botocore sagemaker-runtime 2017-05-13). The developer guide says 25 MB; less always works."""
SERVERLESS_MAX_BYTES = 4_194_304
"""4 MB request and response (developer guide, serverless-endpoints-invoke)."""
MIB = 2**20
INVOCATION_TIMEOUT_S = 60
"""A container has 60 s to answer, on either kind of endpoint (developer guide, hosting FAQs)."""

Endpoints = Mapping[tuple[str, naming.Lane], str]
"""Endpoint names by model and lane."""


ModelNames = Mapping[str, str]
"""Names of the SageMaker Models that transform jobs run, by model."""


class EndpointEntry(TypedDict):
    """One lane with an endpoint, as in the contract file."""

    kind: naming.Lane
    endpoint: str
    variant: str
    max_bytes: int
    timeout_s: int
    instance_type: NotRequired[str]
    vcpus: NotRequired[int]
    gpus: NotRequired[int]
    min_instances: NotRequired[int]
    max_instances: NotRequired[int]
    slots_per_instance: NotRequired[int]
    usd_per_instance_hour: NotRequired[float]
    memory_mb: NotRequired[int]
    max_concurrency: NotRequired[int]
    usd_per_s: NotRequired[float]


class BatchEntry(TypedDict):
    """One batch lane: what a transform job is made with, and by what its plan is made."""

    kind: Literal["batch"]
    model_name: str
    instance_type: str
    instance_count: int
    max_bytes: int
    startup_s: int
    record_s: float
    usd_per_instance_hour: float
    max_jobs: int
    target_records: int
    max_wait_s: int
    strategy: str
    max_payload_mb: int
    max_concurrent: int
    content_types: NotRequired[list[str]]


class ModelEntry(TypedDict):
    """One model's lanes."""

    lanes: dict[str, EndpointEntry | BatchEntry]


class Topology(TypedDict):
    """The whole document."""

    schema: str
    region: str
    models: dict[str, ModelEntry]


def build(config: StackConfig, endpoints: Endpoints, models: ModelNames, prices: PriceBook) -> Topology:
    """The topology of a stack whose endpoints and transform models have these names.

    Raises `PriceError`; `KeyError` for a missing name.
    """
    entries: dict[str, ModelEntry] = {}
    for name, model in sorted(config.models.items()):
        lanes: dict[str, EndpointEntry | BatchEntry] = {}
        if model.dedicated:
            lanes["dedicated"] = _dedicated(model.dedicated, endpoints[name, "dedicated"], config.priced_as, prices)
        if model.serverless:
            lanes["serverless"] = _serverless(model.serverless, endpoints[name, "serverless"], config.priced_as, prices)
        if model.batch:
            lanes["batch"] = _batch(model.batch, models[name], config.priced_as, prices)
        entries[name] = {"lanes": lanes}
    return {"schema": SCHEMA, "region": config.region, "models": entries}


def dumps(topology: Topology) -> str:
    """The document's one JSON form: same topology, same bytes."""
    return json.dumps(topology, sort_keys=True, indent=1) + "\n"


def _dedicated(lane: DedicatedConfig, endpoint: str, region: str, prices: PriceBook) -> EndpointEntry:
    hardware = prices.hardware(lane.instance_type)
    return {
        "kind": "dedicated",
        "endpoint": endpoint,
        "variant": naming.VARIANT,
        "instance_type": lane.instance_type,
        "vcpus": hardware.vcpus,
        "gpus": hardware.gpus,
        "min_instances": lane.min_instances,
        "max_instances": lane.max_instances,
        "slots_per_instance": lane.slots_per_instance,
        "max_bytes": DEDICATED_MAX_BYTES,
        "timeout_s": INVOCATION_TIMEOUT_S,
        "usd_per_instance_hour": prices.hosting_per_hour(region, lane.instance_type),
    }


def _serverless(lane: ServerlessConfig, endpoint: str, region: str, prices: PriceBook) -> EndpointEntry:
    return {
        "kind": "serverless",
        "endpoint": endpoint,
        "variant": naming.VARIANT,
        "memory_mb": lane.memory_mb,
        "max_concurrency": lane.max_concurrency,
        "max_bytes": SERVERLESS_MAX_BYTES,
        "timeout_s": INVOCATION_TIMEOUT_S,
        "usd_per_s": prices.serverless_per_s(region, lane.memory_mb),
    }


def _batch(lane: BatchLaneConfig, model_name: str, region: str, prices: PriceBook) -> BatchEntry:
    hardware = prices.hardware(lane.instance_type)
    entry: BatchEntry = {
        "kind": "batch",
        "model_name": model_name,
        "instance_type": lane.instance_type,
        "instance_count": lane.instance_count,
        # A record is sent to the container whole: the largest is as large as one call may be.
        "max_bytes": lane.max_payload_mb * MIB,
        "startup_s": lane.startup_s,
        "record_s": lane.record_s,
        "usd_per_instance_hour": lane.usd_per_instance_hour or prices.transform_per_hour(region, lane.instance_type),
        "max_jobs": lane.max_jobs,
        "target_records": lane.target_records,
        "max_wait_s": lane.max_wait_s,
        "strategy": lane.strategy,
        "max_payload_mb": lane.max_payload_mb,
        "max_concurrent": lane.concurrent(hardware.vcpus, hardware.gpus),
    }
    if lane.content_types is not None:
        entry["content_types"] = lane.content_types
    return entry
