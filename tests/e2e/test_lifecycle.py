"""A stack's life: deployed, deployed again, changed under traffic, removed without a trace. With IAM at the door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.e2e.conftest import MODEL, PATH
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root

STACK = "lifecycle"
USER = "lifecycle-caller"
MAY_INVOKE = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:execute-api:*:*:*"}],
}
BODY = json.dumps({"text": "hello"}).encode()


@pytest.fixture
def stack_file(project: Path) -> Path:
    """A stack like `local`, with IAM at the door, in a project folder of the test's own."""
    data = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())
    data["config"]["inferlane:auth"] = "iam"
    file = project / f"Pulumi.{STACK}.yaml"
    file.write_text(yaml.safe_dump(data))
    return file


def set_serverless_memory(file: Path, memory_mb: int) -> None:
    data = yaml.safe_load(file.read_text())
    data["config"]["inferlane:models"][MODEL]["serverless"]["memory_mb"] = memory_mb
    file.write_text(yaml.safe_dump(data))


@pytest.fixture
def user(client: Callable[[str], Any]) -> Iterator[Credentials]:
    """The keys of an IAM user who may not do anything yet."""
    iam = client("iam")
    iam.create_user(UserName=USER)
    key = iam.create_access_key(UserName=USER)["AccessKey"]
    yield Credentials(key["AccessKeyId"], key["SecretAccessKey"])
    iam.delete_access_key(UserName=USER, AccessKeyId=key["AccessKeyId"])
    for policy in iam.list_user_policies(UserName=USER)["PolicyNames"]:
        iam.delete_user_policy(UserName=USER, PolicyName=policy)
    iam.delete_user(UserName=USER)


def invoke(url: str, keys: Credentials | None) -> urllib3.BaseHTTPResponse:
    """Call the model, signed with the keys, or unsigned with None."""
    request = AWSRequest("POST", url + PATH, data=BODY, headers={"Content-Type": "application/json"})
    if keys is not None:
        SigV4Auth(keys, "execute-api", "us-east-1").add_auth(request)
    return urllib3.request("POST", url + PATH, body=BODY, headers=dict(request.headers.items()), retries=False)


async def loop_until(done: asyncio.Event, url: str, keys: Credentials) -> list[tuple[int, bytes]]:
    """Signed requests, one after another, until `done`."""
    answers = []
    while not done.is_set():
        response = await asyncio.to_thread(invoke, url, keys)
        answers.append((response.status, response.data))
    return answers


async def test_a_stacks_life(
    cloud: Cloud, layout: Layout, stack_file: Path, project: Path, client: Callable[[str], Any], user: Credentials
) -> None:
    """Up; again without a change; memory changed in place while every request is answered; gone without a trace."""

    def run(action: deployment.Action) -> Deployment:
        return deployment.run(action, STACK, cloud=cloud, layout=layout, project=project)

    first = run("up")
    assert first.counts["create"] == first.changed
    assert invoke(first.url, None).status == 403
    assert invoke(first.url, user).status == 403, "a user without execute-api:Invoke got in"
    client("iam").put_user_policy(UserName=USER, PolicyName="invoke", PolicyDocument=json.dumps(MAY_INVOKE))
    assert invoke(first.url, Credentials(user.access_key, "guessed")).status == 403, "a forged signature got in"
    assert invoke(first.url, user).status == 200

    again = run("up")
    assert again.changed == 0, again.counts
    assert again.outputs["topology"] == first.outputs["topology"]

    memory_before = int(first.lane("serverless", MODEL)["memory_mb"])
    created_before = describe(client, first, "serverless")["CreationTime"]
    set_serverless_memory(stack_file, memory_before + 1024)
    done = asyncio.Event()
    traffic = asyncio.create_task(loop_until(done, first.url, user))
    changed = await asyncio.to_thread(run, "up")
    await asyncio.sleep(2)
    done.set()
    answers = await traffic
    assert [answer for answer in answers if answer[0] != 200] == []
    assert len(answers) > 20
    live = describe(client, changed, "serverless")
    assert live["CreationTime"] == created_before, "the endpoint was made anew instead of updated in place"
    variant = live["ProductionVariants"][0]
    assert variant["CurrentServerlessConfig"]["MemorySizeInMB"] == memory_before + 1024
    assert changed.lane("serverless", MODEL)["memory_mb"] == memory_before + 1024
    assert changed.url == first.url
    assert sum(STACK in c["EndpointConfigName"] for c in configs(client)) == 2, (
        "the old endpoint config was left behind"
    )

    gone = run("destroy")
    assert gone.counts["delete"] >= first.counts["create"]
    assert leftovers(client) == {}


def describe(client: Callable[[str], Any], deployed: Deployment, lane: str) -> Any:
    return client("sagemaker").describe_endpoint(EndpointName=deployed.lane(lane, MODEL)["endpoint"])


def configs(client: Callable[[str], Any]) -> list[Any]:
    return list(client("sagemaker").list_endpoint_configs(MaxResults=100)["EndpointConfigs"])


def leftovers(client: Callable[[str], Any]) -> dict[str, list[str]]:
    """Everything of the stack that list calls still show, by kind."""
    sagemaker, iam, s3 = client("sagemaker"), client("iam"), client("s3")
    listed = {
        "endpoints": [e["EndpointName"] for e in sagemaker.list_endpoints(MaxResults=100)["Endpoints"]],
        "endpoint configs": [c["EndpointConfigName"] for c in configs(client)],
        "models": [m["ModelName"] for m in sagemaker.list_models(MaxResults=100)["Models"]],
        "scalable targets": [
            t["ResourceId"]
            for t in client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")[
                "ScalableTargets"
            ]
        ],
        "functions": [f["FunctionName"] for f in client("lambda").list_functions()["Functions"]],
        "apis": [a["Name"] for a in client("apigatewayv2").get_apis()["Items"]],
        "tables": client("dynamodb").list_tables()["TableNames"],
        "buckets": [b["Name"] for b in s3.list_buckets()["Buckets"]],
        "roles": [r["RoleName"] for r in iam.list_roles()["Roles"]],
        "log groups": [g["logGroupName"] for g in client("logs").describe_log_groups()["logGroups"]],
        "alarms": [a["AlarmName"] for a in client("cloudwatch").describe_alarms()["MetricAlarms"]],
        "configurations": [a["Name"] for a in client("appconfig").list_applications()["Items"]],
        "key aliases": [a["AliasName"] for a in client("kms").list_aliases()["Aliases"]],
    }
    ours = {kind: [name for name in names if STACK in name] for kind, names in listed.items()}
    return {kind: names for kind, names in ours.items() if names}
