"""The whole program, for each stack file: names, addresses, tags, outputs, and what changes when one value does."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pulumi_aws
import pytest

from functions import settings
from infra.components.front_door import ACCESS_LOG
from infra.policies.rules import TAGGABLE
from tests.infra.capture import Program
from tests.infra.conftest import named, of_type, one

STACKS = ("local", "growth", "prototype", "mature")
ALL = (*STACKS, "mature-plain", "mature-told")
"""With the cases of a stack that has more or less."""

_KNOWING = ("route", "jobs", "collect", "settle", "promote", "audit", "prepare", "report")
KNOW_THE_LANES = {f"{name}-function" for name in _KNOWING}
"""What ships with the topology, and so changes with a lane."""


def nulls(value: Any, path: str = "") -> list[str]:
    """Paths of all nulls in a JSON value."""
    match value:
        case None:
            return [path]
        case dict():
            return [hit for key, item in value.items() for hit in nulls(item, f"{path}.{key}")]
        case list():
            return [hit for index, item in enumerate(value) for hit in nulls(item, f"{path}[{index}]")]
    return []


@pytest.mark.parametrize("stack", ALL)
def test_no_value_is_missing(programs: dict[str, Program], stack: str) -> None:
    """Every input and export has a value: no output is used that its resource does not have."""
    program = programs[stack]
    found = [f"{resource['name']}{hit}" for resource in program["resources"] for hit in nulls(resource["inputs"])]

    assert found + nulls(program["exports"], "exports") == []


@pytest.mark.parametrize("stack", ALL)
def test_every_resource_has_an_address_of_its_own(programs: dict[str, Program], stack: str) -> None:
    """No two resources share a URN, and each belongs to one of our components."""
    resources = programs[stack]["resources"]
    urns = [resource["urn"] for resource in resources]

    assert len(set(urns)) == len(urns)
    assert all("$inferlane:infra:" in f"${resource['parent']}" for resource in resources)


@pytest.mark.parametrize("stack", STACKS)
def test_what_others_refer_to_has_a_stable_name(programs: dict[str, Program], stack: str) -> None:
    """Endpoints and functions are called after the stack; nothing random is in their names."""
    program = programs[stack]
    endpoints = {resource["inputs"]["name"] for resource in of_type(program, "Endpoint")}
    lanes = {"serverless"} if stack == "prototype" else {"serverless", "dedicated"}

    assert endpoints == {f"inferlane-{stack}-moderation-{lane}" for lane in lanes}
    assert named(program, "route-function")["name"] == f"inferlane-{stack}-route"


@pytest.mark.parametrize("kind", ["Model", "EndpointConfiguration"])
def test_what_sagemaker_cannot_change_is_named_by_its_content(programs: dict[str, Program], kind: str) -> None:
    """Models and endpoint configurations are their endpoint's name and a hash, within 63 characters."""
    for resource in of_type(programs["local"], kind):
        name = resource["inputs"]["name"]

        assert re.fullmatch(r"inferlane-local-moderation(-heavy)?-(dedicated|serverless|batch)-[0-9a-f]{10}", name)
        assert len(name) <= 63


def test_the_artifact_is_named_by_its_bytes(programs: dict[str, Program]) -> None:
    """The object's key carries the hash of the file it holds."""
    artifact = named(programs["local"], "moderation-artifact")

    assert artifact["key"] == f"models/moderation/{artifact['source']['sha256'][:10]}/model.tar.gz"


def test_the_same_inputs_give_the_same_resources(programs: dict[str, Program]) -> None:
    """A second run asks for exactly what the first one did, hashes and archives included."""
    assert programs["local-again"] == programs["local"]


def changed(before: Program, after: Program) -> set[str]:
    """Names of the resources whose inputs differ."""
    old = {resource["urn"]: resource for resource in before["resources"]}
    new = {resource["urn"]: resource for resource in after["resources"]}
    assert old.keys() == new.keys()
    return {new[urn]["name"] for urn in new if new[urn]["inputs"] != old[urn]["inputs"]}


def test_more_serverless_memory_moves_only_the_serverless_endpoint(programs: dict[str, Program]) -> None:
    """The serverless configuration, the endpoint that names it and the functions' packages change; nothing else."""
    before, after = programs["local"], programs["local-3072-mb"]

    assert changed(before, after) == {
        "moderation-serverless-config",
        "moderation-serverless-endpoint",
        *KNOW_THE_LANES,
    }
    name = "moderation-serverless-endpoint"
    assert {key for key, value in named(after, name).items() if named(before, name)[key] != value} == {
        "endpointConfigName"
    }
    old, new = (named(program, "route-function")["code"]["archive"] for program in (before, after))
    assert {file for file in new if new[file] != old[file]} == {"topology.json"}


def test_a_changed_model_reaches_its_endpoint(programs: dict[str, Program]) -> None:
    """More workers a container: model, configuration and endpoint change in a chain, and only in that lane."""
    assert changed(programs["local"], programs["local-8-slots"]) == {
        "moderation-dedicated-model",
        "moderation-dedicated-config",
        "moderation-dedicated-endpoint",
        "moderation-dedicated-scaling-policy",
        *KNOW_THE_LANES,
    }


@pytest.mark.filterwarnings(
    "ignore:.*has been deprecated in favor of:DeprecationWarning"
)  # pulumi-aws's own modules, on import
@pytest.mark.parametrize("stack", ALL)
def test_whatever_can_carry_tags_does(programs: dict[str, Program], stack: str) -> None:
    """Each resource whose class takes tags has project, stack, component and the stack file's own tags."""
    for resource in programs[stack]["resources"]:
        _, module, kind = re.fullmatch(r"(aws):([a-z0-9]+)/\w+:(\w+)", resource["type"]).groups()  # type: ignore[union-attr]
        constructor = getattr(getattr(pulumi_aws, "lambda_" if module == "lambda" else module), kind)._internal_init
        if "tags" not in inspect.signature(constructor).parameters:
            assert resource["type"] not in TAGGABLE
            continue
        assert resource["type"] in TAGGABLE, "the policy pack must know this type"
        tags = resource["inputs"]["tags"]
        assert (tags["project"], tags["stack"], tags["team"]) == ("inferlane", programs[stack]["stack"], "ml")
        assert tags["component"]


def test_data_is_protected_unless_the_stack_says_otherwise(programs: dict[str, Program]) -> None:
    """Key, bucket and table refuse deletion in a stack that keeps the default, and in no other."""
    data = {"Key", "Bucket", "Table"}
    for stack, kept in (("local", False), ("prototype", True)):
        protected = {
            resource["type"].rsplit(":", 1)[1] for resource in programs[stack]["resources"] if resource["protect"]
        }
        assert protected == (data if kept else set())
    for table in ("job-store-jobs", "job-store-runs"):
        assert one(programs["mature"], table)["protect"]
        assert named(programs["mature"], table)["deletionProtectionEnabled"] is True
    assert not one(programs["prototype"], "snapshot-table")["protect"], "a snapshot is worth seconds"
    assert named(programs["prototype"], "key-auth-keys")["deletionProtectionEnabled"] is True
    assert one(programs["local"], "inferlane-local-artifacts")["inputs"]["forceDestroy"] is True


@pytest.mark.parametrize("stack", STACKS)
def test_what_the_stack_gives_out(programs: dict[str, Program], stack: str) -> None:
    """Address, topology, policy ids and function names are exported; the keys table where there is one."""
    exports = programs[stack]["exports"]

    assert exports["url"] == "https://api1.execute-api.us-east-1.amazonaws.com"
    assert exports["policy"] == {"application": "app1", "environment": "env1", "profile": "pro1"}
    assert exports["functions"]["route"] == f"inferlane-{stack}-route"
    assert exports["functions"]["validate"] == f"inferlane-{stack}-validate"
    assert exports.get("keys_table") == (None if stack in {"growth", "mature"} else f"inferlane-{stack}-keys")


def test_the_function_carries_the_topology_that_is_exported(programs: dict[str, Program]) -> None:
    """`topology.json` in the package and output `topology` are one document, and it names every lane."""
    program = programs["growth"]
    shipped = json.loads(named(program, "route-function")["code"]["archive"][settings.TOPOLOGY_FILE]["text"])

    assert shipped == program["exports"]["topology"]
    assert shipped["schema"] == "inferlane/topology/v1"
    lanes = shipped["models"]["moderation"]["lanes"]
    assert {lane: entry["endpoint"] for lane, entry in lanes.items()} == {
        "dedicated": "inferlane-growth-moderation-dedicated",
        "serverless": "inferlane-growth-moderation-serverless",
    }


def test_the_function_is_updated_after_endpoints_and_policy(programs: dict[str, Program]) -> None:
    """The route function waits for both endpoints and the policy's deployment: it is built from their outputs."""
    program = programs["local"]
    waits_for = one(program, "route-function")["depends_on"]

    for first in (*of_type(program, "Endpoint"), *of_type(program, "Deployment")):
        assert first["urn"] in waits_for


def test_the_prototype_runs_nothing_of_its_own(programs: dict[str, Program]) -> None:
    """Stage prototype has no instances: no dedicated endpoint, no scaling."""
    kinds = {resource["type"].rsplit(":", 1)[1] for resource in programs["prototype"]["resources"]}

    assert kinds.isdisjoint({"Target", "Policy"})
    variants = [
        resource["inputs"]["productionVariants"] for resource in of_type(programs["prototype"], "EndpointConfiguration")
    ]
    assert all("serverlessConfig" in variant for (variant,) in variants)


@pytest.mark.parametrize("stack", STACKS)
def test_logs_end(programs: dict[str, Program], stack: str) -> None:
    """Each function, endpoint and delivery stream, and the gateway, has a log group with the stack's retention."""
    program = programs[stack]
    groups = {
        resource["inputs"]["name"]: resource["inputs"]["retentionInDays"] for resource in of_type(program, "LogGroup")
    }
    writers = {
        *(f"/aws/lambda/{resource['inputs']['name']}" for resource in of_type(program, "Function")),
        *(f"/aws/sagemaker/Endpoints/{resource['inputs']['name']}" for resource in of_type(program, "Endpoint")),
        *(f"/aws/kinesisfirehose/{each['inputs']['name']}" for each in of_type(program, "FirehoseDeliveryStream")),
        f"/aws/vendedlogs/apigateway/inferlane-{stack}",
    }

    assert groups.keys() == writers
    assert set(groups.values()) == {{"local": 1, "growth": 90, "prototype": 14, "mature": 90}[stack]}


def test_access_logs_tell_no_secrets() -> None:
    """The access log names neither headers, keys, addresses, nor who called."""
    assert not [value for value in ACCESS_LOG.values() if re.search(r"header|identity|apiKey|principal|claims", value)]
