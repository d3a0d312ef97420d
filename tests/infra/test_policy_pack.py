"""The CrossGuard pack: each rule finds what it is for, and the pack itself passes our stacks."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import grpc  # type: ignore[import-untyped]  # no stubs; used here only
import pytest
from google.protobuf import struct_pb2  # type: ignore[import-untyped]  # no stubs; used here only
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from infra.policies.rules import RULES, Resource
from tests.infra.capture import ROOT, Program

Change = Callable[[dict[str, Any]], object]


def resources_of(program: Program) -> list[Resource]:
    """A captured program as the rules see it: outputs included, as the engine gives them."""
    return [Resource(r["type"], r["name"], {**r["inputs"], **r["outputs"]}) for r in program["resources"]]


def without(resources: Sequence[Resource], name: str) -> list[Resource]:
    """All resources but one."""
    assert any(resource.name == name for resource in resources)
    return [resource for resource in resources if resource.name != name]


def altered(resources: Sequence[Resource], name: str, change: Change) -> list[Resource]:
    """The resources with one's properties changed in place."""

    def alter(resource: Resource) -> Resource:
        properties = copy.deepcopy(dict(resource.properties))
        change(properties)
        return replace(resource, properties=properties)

    assert any(resource.name == name for resource in resources)
    return [alter(resource) if resource.name == name else resource for resource in resources]


def granting(action: str, resource: str = "*") -> Change:
    """Adds a statement to a role policy."""

    def change(properties: dict[str, Any]) -> None:
        document = json.loads(properties["policy"])
        document["Statement"].append({"Effect": "Allow", "Action": action, "Resource": resource})
        properties["policy"] = json.dumps(document)

    return change


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("stack", ["local", "growth", "prototype", "mature", "mature-plain", "mature-told"])
def test_our_stacks_hold_every_rule(programs: dict[str, Program], stack: str, rule: str) -> None:
    """No rule has anything to say about a stack as it is."""
    assert RULES[rule](resources_of(programs[stack])) == []


@pytest.mark.parametrize(
    ("rule", "name", "change", "line"),
    [
        (
            "buckets-are-closed",
            "storage-public-access",
            lambda p: p.update(blockPublicAcls=False),
            "open to the public",
        ),
        ("buckets-refuse-plain-http", "storage-tls-only", lambda p: p.update(policy="{}"), "answers plain HTTP"),
        (
            "data-is-encrypted-with-our-key",
            "storage-encryption",
            lambda p: p.update(rules=[]),
            "bucket is not encrypted",
        ),
        (
            "data-is-encrypted-with-our-key",
            "key-auth-keys",
            lambda p: p.update(serverSideEncryption={"enabled": True}),
            "table is not encrypted",
        ),
        ("logs-end", "route-logs", lambda p: p.update(retentionInDays=0), "route-logs: the log group keeps its logs"),
        (
            "functions-are-called-by-version",
            "route-function",
            lambda p: p.update(publish=False),
            "publishes no version",
        ),
        ("everything-is-tagged", "storage-key", lambda p: p["tags"].pop("stack"), "storage-key: aws:kms/key:Key lacks"),
        ("everything-is-tagged", "route-role", lambda p: p.pop("tags"), "lacks the tags project, stack, component"),
        ("fleets-are-bounded", "moderation-dedicated-scaling", lambda p: p.update(maxCapacity=21), "21 is above 20"),
        ("grants-are-scoped", "route-grants", granting("s3:*", "arn:x"), "route-grants: allows s3:*: name each action"),
        ("grants-are-scoped", "route-grants", granting("*"), "allows *: name each action"),
        ("grants-are-scoped", "route-grants", granting("s3:GetObject"), "allows s3:GetObject on every resource"),
        ("grants-are-scoped", "route-grants", granting("cloudwatch:PutMetricData"), "in every namespace"),
        (
            "data-is-encrypted-with-our-key",
            "work",
            lambda p: p.pop("kmsMasterKeyId"),
            "work: the queue is not encrypted",
        ),
        (
            "data-is-encrypted-with-our-key",
            "capture-stream",
            lambda p: p.pop("serverSideEncryption"),
            "the stream is not encrypted",
        ),
        ("queues-refuse-plain-http", "work-tls-only", lambda p: p.update(policy="{}"), "work: the queue answers"),
        (
            "tables-can-be-restored",
            "job-store-jobs",
            lambda p: p.update(pointInTimeRecovery={"enabled": False}),
            "job-store-jobs: the table cannot be restored",
        ),
        ("failures-are-kept", "notices", lambda p: p.pop("redrivePolicy"), "notices: what nobody could do is tried"),
        (
            "failures-are-kept",
            "settle-async",
            lambda p: p.pop("destinationConfig"),
            "settle-target: an event that the function could not handle is lost",
        ),
    ],
)
def test_a_rule_finds_what_it_is_for(
    programs: dict[str, Program], rule: str, name: str, change: Change, line: str
) -> None:
    """One property out of order: that rule says so, naming the resource, and no other rule does."""
    resources = altered(resources_of(programs["mature-told"]), name, change)
    found = {other: RULES[other](resources) for other in RULES}

    assert any(line in said for said in found.pop(rule))
    assert not any(found.values())


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("buckets-are-closed", "storage-public-access"),
        ("buckets-refuse-plain-http", "storage-tls-only"),
        ("data-is-encrypted-with-our-key", "storage-encryption"),
        ("functions-are-called-by-version", "route-live"),
        ("queues-refuse-plain-http", "promote-dead-tls-only"),
        ("failures-are-kept", "settle-async"),
    ],
)
def test_a_rule_misses_what_is_not_there(programs: dict[str, Program], rule: str, name: str) -> None:
    """Leaving the guarding resource out is found as well."""
    assert RULES[rule](without(resources_of(programs["mature-told"]), name))


@pytest.fixture(scope="module")
def analyzer() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    """The pack, running as the engine would start it."""
    process = subprocess.Popen(
        [sys.executable, "-u", str(ROOT / "infra/policies/__main__.py")],  # -u as the engine: the port is read at once
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield analyzer_pb2_grpc.AnalyzerStub(channel)
    finally:
        process.terminate()
        process.communicate(timeout=10)


def verdict(analyzer: analyzer_pb2_grpc.AnalyzerStub, resources: Sequence[Resource]) -> list[tuple[str, str]]:
    """What the pack says about a stack: policy and message."""

    def properties(resource: Resource) -> struct_pb2.Struct:
        struct = struct_pb2.Struct()
        struct.update({key: value for key, value in resource.properties.items() if key not in {"code", "source"}})
        return struct

    request = analyzer_pb2.AnalyzeStackRequest(
        resources=[
            analyzer_pb2.AnalyzerResource(
                urn=f"urn:pulumi:local::inferlane::{resource.type}::{resource.name}",
                type=resource.type,
                name=resource.name,
                properties=properties(resource),
            )
            for resource in resources
        ]
    )
    return [(found.policyName, found.message.strip()) for found in analyzer.AnalyzeStack(request).diagnostics]


def test_the_pack_passes_and_stops_a_stack(
    programs: dict[str, Program], analyzer: analyzer_pb2_grpc.AnalyzerStub
) -> None:
    """Run as CrossGuard runs it, the pack is silent about our stack, and names rule and resource when one is broken."""
    resources = resources_of(programs["local"])
    assert verdict(analyzer, resources) == []

    broken = altered(resources, "route-logs", lambda properties: properties.pop("retentionInDays"))
    ((rule, message),) = verdict(analyzer, broken)

    assert rule == "logs-end"
    assert "route-logs: the log group keeps its logs for ever" in message
