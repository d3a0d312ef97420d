"""A policy on its way up: what the router could not use never reaches it, and the deploy says why."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.e2e.conftest import PATH
from tests.e2e.test_jwt import serverless_project
from workbench import keys
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout
from workbench.stack.processes import StackError

STACK = "reform"
TAKE_UP_LIMIT_S = 30.0
HTTP = urllib3.PoolManager(retries=False, timeout=40)
GOOD = """\
schema: inferlane/policy/v1
version: reform.1
defaults: {order: [serverless]}
rules:
  - {id: first, when: {priority: low}, order: [serverless]}
"""
BROKEN = (
    GOOD.replace("reform.1", "reform.2")
    .replace("order: [serverless]}\nrules", "order: [serverless], deadline_ms: soon}\nrules")
    .replace("id: first, when: {priority: low}", "id: first, when: {priority: urgent}")
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose policy the tests write."""
    return serverless_project(tmp_path_factory.mktemp(STACK), STACK, GOOD, {})


@pytest.fixture(scope="module")
def deploy(cloud: Cloud, layout: Layout, project: Path) -> Iterator[Callable[[str], Deployment]]:
    """Deploys the stack with a policy text."""

    def with_policy(text: str) -> Deployment:
        (project / f"policies/{STACK}.yaml").write_text(text)
        return deployment.run("up", STACK, cloud=cloud, layout=layout, project=project)

    yield with_policy
    deployment.run("destroy", STACK, cloud=cloud, layout=layout, project=project)


def served_by(url: str, key: str) -> str:
    """The policy version that a request was decided by."""
    sent = {"Content-Type": "application/json", "X-Api-Key": key}
    answer = HTTP.request("POST", url + PATH, body=json.dumps({"text": "hello"}).encode(), headers=sent)
    assert answer.status == 200, answer.data
    return answer.headers["x-inferlane-policy"]


def test_a_broken_policy_changes_nothing(
    deploy: Callable[[str], Deployment], client: Callable[[str], Any], cloud: Cloud, layout: Layout
) -> None:
    """The deploy fails with the document's own problems and leaves all as it was; the old policy serves on, the mended
    one is taken up without a restart."""
    first = deploy(GOOD)
    key = keys.create(client("dynamodb"), STACK, "demo-reform", datetime.now(UTC)).key
    assert served_by(first.url, key) == "reform.1"
    state = (layout.deployments(cloud.endpoint_url) / f"{STACK}.json").read_text()

    with pytest.raises(StackError) as refused:
        deploy(BROKEN)

    assert "refused by its validator inferlane-reform-validate:live" in str(refused.value)
    assert "deadline_ms" in str(refused.value)
    assert "rules[0].when.priority" in str(refused.value)
    assert (layout.deployments(cloud.endpoint_url) / f"{STACK}.json").read_text() == state
    policy = first.outputs["policy"]
    versions = client("appconfig").list_hosted_configuration_versions(
        ApplicationId=policy["application"], ConfigurationProfileId=policy["profile"]
    )["Items"]
    assert [version["VersionNumber"] for version in versions] == [1]
    assert served_by(first.url, key) == "reform.1"

    mended = deploy(GOOD.replace("reform.1", "reform.3"))
    assert mended.url == first.url
    deadline = time.monotonic() + TAKE_UP_LIMIT_S
    while served_by(first.url, key) != "reform.3":
        assert time.monotonic() < deadline, "the mended policy was not taken up"
        time.sleep(0.5)
