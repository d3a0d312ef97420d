"""A real program on a real (offline) cloud: up, again, changed, broken, repaired, interrupted, destroyed."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.contract.deployer.conftest import Ended, Project, ended

RESOURCES = 29


def answer(up: Ended) -> dict[str, Any]:
    """What the deployed API answers."""
    with urlopen(up.result["outputs"]["url"] + "/hello", timeout=10) as response:
        document: dict[str, Any] = json.load(response)
        return document


def test_up_again_and_destroy(project: Project) -> None:
    """A deployed program answers over HTTP, a second deploy changes nothing, and destroy leaves nothing."""
    first = project.run("up")

    assert first.result["counts"] == {"create": RESOURCES}
    assert answer(first) == {"version": "1", "memory": "128", "variant": "one"}
    assert first.result["outputs"]["token"] == "[secret]"
    assert "hidden" not in project.state_file.read_text()
    assert project.run("outputs").result["outputs"] == first.result["outputs"]

    second = project.run("up")
    assert second.result["counts"] == {"same": RESOURCES}
    assert second.result["outputs"] == first.result["outputs"]

    assert project.run("destroy").result["counts"] == {"delete": RESOURCES}
    assert project.state()["resources"] == {}
    assert left_of(project) == []
    assert project.run("destroy").result["counts"] == {}


class Loop:
    """Sends requests one after another while the block runs."""

    def __init__(self, url: str) -> None:
        self.statuses: list[int] = []
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Loop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._ended.wait(0.02):
            try:
                with urlopen(self._url, timeout=10) as response:
                    self.statuses.append(response.status)
            except HTTPError as error:
                self.statuses.append(error.code)


def left_of(project: Project) -> list[str]:
    """What list calls still show of the stack."""
    name = f"sample-{project.stack}"
    lists: list[tuple[str, str, dict[str, Any], str]] = [
        ("lambda", "list_functions", {}, "Functions"),
        ("dynamodb", "list_tables", {}, "TableNames"),
        ("iam", "list_roles", {}, "Roles"),
        ("apigatewayv2", "get_apis", {}, "Items"),
        ("appconfig", "list_applications", {}, "Items"),
        ("appconfig", "list_deployment_strategies", {}, "Items"),
        ("s3", "list_buckets", {}, "Buckets"),
        ("logs", "describe_log_groups", {}, "logGroups"),
        ("cloudwatch", "describe_alarms", {}, "MetricAlarms"),
        ("kms", "list_aliases", {}, "Aliases"),
    ]
    found = [
        f"{service}: {item}"
        for service, operation, parameters, member in lists
        for item in getattr(project.client(service), operation)(**parameters)[member]
        if name in json.dumps(item, default=str)
    ]
    keys = [key["KeyId"] for key in project.client("kms").list_keys()["Keys"]]
    states = [project.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key in keys]
    fake = project.sagemaker
    return [*found, *(s for s in states if s == "Enabled"), *fake.models, *fake.configs, *fake.endpoints, *fake.targets]


def test_change_in_place(project: Project) -> None:
    """A changed setting updates in place and moves the alias to one new version, while every request is answered."""
    url = project.run("up").result["outputs"]["url"]

    with Loop(url + "/hello") as loop:
        changed = project.run("up", memory="256", extra="true")

    assert loop.statuses
    assert set(loop.statuses) == {200}
    assert changed.actions() == {"function": "update", "live": "update", "extra": "create"}
    assert answer(changed) == {"version": "2", "memory": "256", "variant": "one"}
    assert project.run("up", memory="256").actions() == {"extra": "delete"}


def test_preview_touches_nothing(project: Project) -> None:
    """A preview names what would happen, before anything stands and after, and calls nothing that changes."""
    before = project.run("preview")
    assert before.result["counts"] == {"create": RESOURCES}
    assert left_of(project) == []

    project.run("up")
    calls = len(project.sagemaker.calls)
    after = project.run("preview", memory="512")
    assert after.actions() == {"function": "update", "live": "update"}
    assert len(project.sagemaker.calls) == calls


def test_a_refused_document(project: Project) -> None:
    """What the profile's validator raises is the deploy's error; the version that stood still stands deployed."""
    project.run("up")
    before = project.state()["resources"]

    failed = project.run("up", said="refuse me")

    assert failed.code == 1
    assert 'HostedConfigurationVersion "document"' in failed.message
    cause = "refused by its validator sample-a-refused-document:live: rules[0].order: unknown lane 'gpu'; rules[1].id: "
    assert cause + "missing" in failed.message
    assert project.state()["resources"] == before
    assert project.run("up").result["counts"] == {"same": RESOURCES}
    # The last event of each: first replaced, then the old one deleted.
    assert project.run("up", said="fine").actions() == {"document": "delete", "rollout": "delete"}


def test_replace_order(project: Project) -> None:
    """A new configuration comes first, the endpoint moves to it with its scaled count, the old one goes last."""
    project.run("up")

    replaced = project.run("up", variant="two")

    assert replaced.actions()["configuration"] == "delete"  # its last event: first replaced, then the old one deleted
    assert replaced.actions()["endpoint"] == "update"
    assert project.sagemaker.names("CreateEndpointConfig", "UpdateEndpoint", "DeleteEndpointConfig") == [
        "CreateEndpointConfig",
        "CreateEndpointConfig",
        "UpdateEndpoint",
        "DeleteEndpointConfig",
    ]
    update = next(request for name, request in project.sagemaker.calls if name == "UpdateEndpoint")
    assert update["RetainAllVariantProperties"] is True
    assert answer(replaced)["variant"] == "two"
    body = project.client("s3").get_object(Bucket=replaced.result["outputs"]["bucket"], Key="note.txt")["Body"]
    assert body.read() == b"note two"


def test_instance_type_change(project: Project) -> None:
    """The scalable target and its policy are off while the instance type changes, and back as they were afterwards."""
    project.run("up")
    before = (dict(project.sagemaker.targets), dict(project.sagemaker.policies))
    project.sagemaker.calls.clear()

    assert project.run("up", instance_type="ml.m5.xlarge").code == 0

    watched = ("DeregisterScalableTarget", "UpdateEndpoint", "RegisterScalableTarget", "PutScalingPolicy")
    assert tuple(project.sagemaker.names(*watched)) == watched
    targets, policies = project.sagemaker.targets, project.sagemaker.policies
    assert (targets, {key: _without_arn(one) for key, one in policies.items()}) == before


def _without_arn(policy: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in policy.items() if not name.endswith("ARN")}


def test_failure_midway_and_rerun(project: Project) -> None:
    """A failed start is named with its reason, what stands is kept, and a rerun makes only what is missing."""
    failed = project.run("up", variant="broken")

    assert failed.code == 1
    assert 'Endpoint "endpoint"' in failed.message
    assert "the container did not pass its health check" in failed.message
    assert "resources stand" in failed.message
    standing = len(project.state()["resources"])
    assert 0 < standing < RESOURCES

    again = project.run("up", variant="broken")
    assert again.code == 1
    assert any("is broken" in notice for notice in again.notices())

    repaired = project.run("up", variant="good")
    assert repaired.code == 0
    assert len(project.state()["resources"]) == RESOURCES
    assert project.sagemaker.endpoints[f"sample-{project.stack}"]["EndpointStatus"] == "InService"
    assert project.run("up", variant="good").result["counts"] == {"same": RESOURCES}


def test_rollback_is_a_failure(project: Project) -> None:
    """An update that SageMaker rolled back fails the deploy, and going back to the old inputs needs no update."""
    project.run("up")

    failed = project.run("up", variant="broken")
    assert failed.code == 1
    assert "rolled back to" in failed.message

    restored = project.run("up")
    assert restored.code == 0
    assert project.sagemaker.names("UpdateEndpoint") == ["UpdateEndpoint"]
    assert len(project.sagemaker.configs) == 1


def test_interrupted(project: Project) -> None:
    """Ctrl-C during a wait ends with 130 and a state that the next run completes."""
    project.sagemaker.steps = 10_000
    process = project.start("up")
    name = f"sample-{project.stack}"
    deadline = time.monotonic() + 60
    while name not in project.sagemaker.endpoints:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    stopped = ended(process)

    assert stopped.code == 130
    records = project.state()["resources"]
    assert "endpoint" in [record["name"] for record in records.values() if not record["settled"]]

    project.sagemaker.endpoints[name]["left"] = 1
    assert project.run("up").code == 0
    assert project.sagemaker.names("CreateEndpoint") == ["CreateEndpoint"]


def test_vanished(project: Project) -> None:
    """What was deleted behind the deployer's back is made again."""
    project.run("up")
    project.client("cloudwatch").delete_alarms(
        AlarmNames=[record["id"] for record in project.state()["resources"].values() if record["name"] == "alarm"]
    )

    again = project.run("up")

    assert again.actions() == {"alarm": "create"}
    assert any("vanished" in notice for notice in again.notices())


def test_another_cloud(project: Project) -> None:
    """A state of an earlier life of the cloud is dropped, and said to be."""
    project.state_file.write_text(
        json.dumps(
            {
                "schema": "inferlane/deployer-state/v1",
                "project": "sample",
                "stack": project.stack,
                "cloud_id": "first",
                "resources": {"urn:pulumi:x::sample::aws:s3/bucket:Bucket::old": OLD},
                "retired": [],
                "outputs": {},
            }
        )
    )
    process = project.run("up", "--cloud-id", "second")

    assert process.notices() == ["the earlier cloud is gone; deploying anew"]
    assert process.result["counts"] == {"create": RESOURCES}
    assert project.state()["cloud_id"] == "second"
    assert "not deployed on this cloud" in project.run("outputs", "--cloud-id", "third").message


OLD = {
    "urn": "urn:pulumi:x::sample::aws:s3/bucket:Bucket::old",
    "type": "aws:s3/bucket:Bucket",
    "name": "old",
    "id": "old",
    "inputs": {"bucket": "old"},
    "outputs": {},
    "dependencies": [],
    "auto_named": False,
    "protect": False,
    "retain": False,
    "settled": True,
}
