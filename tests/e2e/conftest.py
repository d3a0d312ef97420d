"""One offline stack for this folder's tests, with the `local` stack deployed on it.

The endpoint is chosen by the usual variables of LocalStack's client (AWS_ENDPOINT_URL, LOCALSTACK_HOST): where one is
set, the same tests run there; else the suite starts a stack of its own on a free port and stops it at the end.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from localstack_client.session import Session

from workbench import keys
from workbench.stack import deployment, offline
from workbench.stack.cloud import CREDENTIALS, REGION, Cloud, current, named_endpoint
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout, project_root
from workbench.stack.processes import StackError

MODEL = "moderation"
PATH = f"/v1/models/{MODEL}/invocations"
_BAD = re.compile(r'"level": ?"(ERROR|CRITICAL)"|Traceback|timed out|errorMessage')


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is an end-to-end test with time to start real processes."""
    for item in items:
        if "tests/e2e" in str(item.path):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(240))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """With a failure goes what the stack said meanwhile: the cause is seldom in the test."""
    report: Any = yield
    if report.failed and named_endpoint():
        report.sections += list(_said(call.start))
    return report


def _said(since: float) -> Iterator[tuple[str, str]]:
    """The gateway's warnings, and what the functions logged as worse than a warning."""
    log = Layout(Path(os.environ.get("INFERLANE_DIR", ""))).folder / "logs/gateway.log"
    if log.is_file():
        lines = log.read_text(errors="replace").splitlines()
        yield "the gateway", "\n".join([line[:500] for line in lines if "WARNING" in line or "ERROR" in line][-40:])
    logs: Any = Session(**CREDENTIALS, region_name=REGION).client("logs")
    try:
        groups = logs.describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]
        for name in (group["logGroupName"] for group in groups):
            found = logs.filter_log_events(logGroupName=name, startTime=int(since * 1000), limit=10_000)["events"]
            bad = [event["message"][:1000] for event in found if _BAD.search(event["message"])]
            if bad:
                yield name, "\n".join(bad[-20:])
    except (BotoCoreError, ClientError) as error:
        yield "the functions", f"their logs cannot be read: {error}"


@pytest.fixture(scope="package")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A state folder of the suite's own; Lambda workers and sockets like short paths, so it lies near the root."""
    made = Layout(tmp_path_factory.mktemp("il"))
    before = os.environ.get("INFERLANE_DIR")
    os.environ["INFERLANE_DIR"] = str(made.folder)
    yield made
    os.environ.pop("INFERLANE_DIR") if before is None else os.environ.update(INFERLANE_DIR=before)


@pytest.fixture(scope="package")
def cloud(layout: Layout) -> Iterator[Cloud]:
    """The emulated cloud that the suite runs on."""
    if named_endpoint():
        yield current(layout)
        return
    record = offline.up(layout, port=0, say=print)
    os.environ["AWS_ENDPOINT_URL"] = record.endpoint_url
    try:
        yield current(layout)
    finally:
        del os.environ["AWS_ENDPOINT_URL"]
        offline.down(layout)


@pytest.fixture(scope="package")
def client(cloud: Cloud) -> Callable[[str], Any]:
    """boto3 clients, built by LocalStack's own client library."""
    session = Session(**CREDENTIALS, region_name=REGION)
    return lambda service: session.client(service)


@pytest.fixture(scope="package")
def deployed(cloud: Cloud, layout: Layout) -> Iterator[Deployment]:
    """The `local` stack, deployed; removed again from a cloud that outlives the suite."""
    made = deployment.run("up", "local", cloud=cloud, layout=layout)
    yield made
    if layout.read_record() is None:
        deployment.run("destroy", "local", cloud=cloud, layout=layout)


@pytest.fixture(scope="package")
def api_key(deployed: Deployment, client: Callable[[str], Any]) -> Callable[[str], dict[str, str]]:
    """Headers that authenticate a caller: `api_key("demo-app")`."""
    made: dict[str, dict[str, str]] = {}

    def headers(key_id: str) -> dict[str, str]:
        if key_id not in made:
            key = keys.create(client("dynamodb"), deployed.stack, key_id, datetime.now(UTC)).key
            made[key_id] = {"X-Api-Key": key}
        return made[key_id]

    return headers


@pytest.fixture
def faults(cloud: Cloud) -> Iterator[Faults]:
    """Fault injection, cleared before and after; skipped where the endpoint has none."""
    made = Faults(cloud)
    try:
        made.clear()
    except StackError as error:
        pytest.skip(str(error))
    yield made
    made.clear()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project folder whose stack files a test may edit; the program and the models are the real ones."""
    for name in ("infra", "functions", "models", "policies"):
        (tmp_path / name).symlink_to(project_root() / name)
    shutil.copy(project_root() / "Pulumi.yaml", tmp_path)
    return tmp_path
