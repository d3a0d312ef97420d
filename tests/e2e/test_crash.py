"""Processes of the offline stack killed outright: told by status, put right by `up`, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import IMAGE, MODEL, ROLE, archive, eventually
from tests.e2e.test_cli import assert_one_line_error, cli, listeners, ours
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout, StackRecord
from workbench.stack.offline import BRIDGE, GATEWAY, NAMES, SAGEMAKER
from workbench.stack.processes import listen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state folder of a stack of this file's own, with an endpoint `e` on it; stopped at the end."""
    folder = tmp_path_factory.mktemp("crash")
    assert cli("up", "--port", "0", folder=folder).returncode == 0
    cloud = Cloud(record_of(folder).endpoint_url, "")
    s3, sagemaker = cloud.client("s3"), cloud.client("sagemaker")
    s3.create_bucket(Bucket="models")
    s3.put_object(Bucket="models", Key="m.tar.gz", Body=archive({"code/inference.py": MODEL.read_bytes()}))
    container = {"Image": IMAGE, "ModelDataUrl": "s3://models/m.tar.gz"}
    sagemaker.create_model(ModelName="m", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    variant = {"VariantName": "A", "ModelName": "m", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="c")
    eventually(lambda: answers(folder), 20)
    yield folder
    cli("down", folder=folder)


def record_of(folder: Path) -> StackRecord:
    record = Layout(folder).read_record()
    assert record is not None
    return record


def kill(folder: Path, name: str) -> None:
    """SIGKILL to one of the stack's processes, and wait until it is gone."""
    pid = next(process.pid for process in record_of(folder).processes if process.name == name)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def answers(folder: Path) -> bool:
    """Whether endpoint `e` serves a request."""
    runtime = Cloud(record_of(folder).endpoint_url, "").client("sagemaker-runtime")
    try:
        runtime.invoke_endpoint(EndpointName="e", Body=b"{}", ContentType="application/json")
    except ClientError:
        return False
    return True


def test_what_died_is_started_again_and_the_cloud_stays(folder: Path) -> None:
    """Emulator and bridge: status names them and the way out, `up` starts them, the emulator on its old port."""
    names = (SAGEMAKER, BRIDGE)
    before = record_of(folder)
    for name in names:
        kill(folder, name)
    done = cli("status", "--json", folder=folder)
    told = json.loads(done.stdout)
    assert (done.returncode, [n for n in NAMES if told["processes"][n] == "dead"]) == (1, list(names))
    assert [line.split()[0] for line in told["advice"]] == list(names)
    assert all(line.endswith("`inferlane up`") for line in told["advice"])
    assert_one_line_error(cli("deploy", folder=folder), f"({', '.join(names)} died)", "`inferlane up` repairs it")
    again = cli("up", "--json", folder=folder)
    assert again.returncode == 0, again.stderr
    after = record_of(folder)
    assert (after.cloud_id, after.endpoint_url, after.sagemaker_url) == (
        before.cloud_id,
        before.endpoint_url,
        before.sagemaker_url,
    )
    assert {p.name for p in set(after.processes) - set(before.processes)} == set(names)
    eventually(lambda: answers(folder), 20)
    assert cli("status", folder=folder).returncode == 0


def test_what_cannot_be_started_again_is_told(folder: Path) -> None:
    """The dead emulator's port is somebody else's: one line with the way out. MiniStack keeps nothing over a kill: that
    is said before and then, with what to deploy again, and the stack is blank.
    """
    before, layout = record_of(folder), Layout(folder)
    kill(folder, SAGEMAKER)
    port = int(before.sagemaker_url.rsplit(":", 1)[1])
    with listen("127.0.0.1", port, patience_s=5):
        assert_one_line_error(cli("up", folder=folder), f"port {port} is in use", "inferlane down")
    deployments = layout.deployments(before.endpoint_url)
    deployments.mkdir(parents=True)
    (deployments / "growth.json").write_text("{}")
    kill(folder, GATEWAY)
    (advice,) = json.loads(cli("status", "--json", folder=folder).stdout)["advice"]
    assert "all resources of growth are lost: `inferlane up`, then `inferlane deploy --stack growth`" in advice
    again = cli("up", "--json", folder=folder)
    assert again.returncode == 0, again.stderr
    assert "all resources of growth are lost: `inferlane deploy --stack growth`" in again.stderr
    after = record_of(folder)
    assert (after.endpoint_url, after.cloud_id == before.cloud_id) == (before.endpoint_url, False)
    assert Cloud(after.endpoint_url, "").client("sagemaker").list_endpoints()["Endpoints"] == []
    assert not deployments.exists()


def test_nothing_is_left(folder: Path) -> None:
    """All killed at once: no process of the stack and none of its ports outlive `down`."""
    record = record_of(folder)
    for name in NAMES:
        kill(folder, name)
    ports = {int(url.rsplit(":", 1)[1]) for url in (record.endpoint_url, record.sagemaker_url)}
    assert cli("down", folder=folder).returncode == 0
    deadline = time.monotonic() + 5
    while ours(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ours(folder) == []
    assert not ports & listeners()
    assert Layout(folder).read_record() is None
