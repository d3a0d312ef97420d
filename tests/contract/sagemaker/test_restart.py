"""The emulator killed and started again on the same folder: its state comes back, or it says what does not."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.contract.sagemaker.emulator import BUCKET, CREDENTIALS, IMAGE, ROLE, VARIANT, Aws, Emulator, eventually

TAGS: Any = [{"Key": "team", "Value": "ml"}]
DIMENSION = "sagemaker:variant:DesiredInstanceCount"


def inhabited(folder: Path, aws: Aws) -> Emulator:
    """An emulator with two endpoints, a scalable target, a policy, a job that runs and a quota that was set."""
    emulator = Emulator.start(folder / "state", aws.url, "--ping-interval", "0.3", "--transform-start", "60")
    emulator.model("model")
    emulator.endpoint("dedicated", emulator.config("dedicated", "model"))
    emulator.endpoint("serverless", emulator.config("serverless", "model", serverless=2))
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/dedicated/variant/{VARIANT}",
        "ScalableDimension": DIMENSION,
    }
    for name in ("dedicated", "serverless"):
        assert emulator.settled(name)["EndpointStatus"] == "InService"
    arn = emulator.sagemaker.describe_endpoint(EndpointName="dedicated")["EndpointArn"]
    emulator.sagemaker.add_tags(ResourceArn=arn, Tags=TAGS)
    emulator.autoscaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=3)  # type: ignore[arg-type]
    emulator.autoscaling.put_scaling_policy(
        **target,  # type: ignore[arg-type]
        PolicyName="by-requests",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 1000.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        },
    )
    emulator.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName="dedicated", DesiredWeightsAndCapacities=[{"VariantName": VARIANT, "DesiredInstanceCount": 2}]
    )
    assert emulator.settled("dedicated")["ProductionVariants"][0]["CurrentInstanceCount"] == 2
    aws.s3.put_object(Bucket=BUCKET, Key="restart/in.txt", Body=b"{}")
    emulator.sagemaker.create_transform_job(
        TransformJobName="job",
        ModelName="model",
        TransformInput={"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/restart/"}}},
        TransformOutput={"S3OutputPath": f"s3://{BUCKET}/restarted/"},
        TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
    )
    emulator.admin("PUT", "/quotas", {"ml.g5.xlarge for endpoint usage": 2})
    return emulator


def code_of(emulator: Emulator, endpoint: str) -> str:
    try:
        emulator.invoke(endpoint)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "OK"


def test_everything_comes_back(aws: Aws, tmp_path: Path) -> None:
    """Killed, the next one serves the same endpoints with the same counts; the cut-off job says why."""
    first = inhabited(tmp_path, aws)
    before = first.sagemaker.describe_endpoint(EndpointName="dedicated")
    policies = first.autoscaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    children = first.children()
    first.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []

    again = Emulator.start(tmp_path / "state", aws.url)
    try:
        assert code_of(again, "dedicated") in ("OK", "ServiceUnavailable")
        for name in ("dedicated", "serverless"):
            assert again.settled(name)["EndpointStatus"] == "InService"
            assert code_of(again, name) == "OK"
        seen = again.sagemaker.describe_endpoint(EndpointName="dedicated")
        assert (seen["CreationTime"], seen["EndpointConfigName"]) == (before["CreationTime"], "dedicated")
        assert seen["ProductionVariants"][0]["CurrentInstanceCount"] == 2
        assert again.sagemaker.list_tags(ResourceArn=seen["EndpointArn"])["Tags"] == TAGS
        assert [m["ModelName"] for m in again.sagemaker.list_models()["Models"]] == ["model"]
        kept = again.autoscaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
        assert kept == policies
        job = again.sagemaker.describe_transform_job(TransformJobName="job")
        assert job["TransformJobStatus"] == "Failed"
        assert "The emulator was restarted" in job["FailureReason"]
        quota = next(q for q in again.admin("GET", "/quotas")["quotas"] if q["set"])
        assert (quota["value"], quota["used"]) == (2, 2)
        assert "2 endpoints start anew (dedicated, serverless)" in (tmp_path / "state.log").read_text()
    finally:
        assert again.stop() == 0


def test_what_cannot_start_again_says_why(aws: Aws, tmp_path: Path) -> None:
    """Stopped and started: an endpoint whose model data is gone is Failed with the reason; the others are there."""
    aws.s3.put_object(
        Bucket=BUCKET, Key="gone.tar.gz", Body=aws.s3.get_object(Bucket=BUCKET, Key="model.tar.gz")["Body"].read()
    )
    first = Emulator.start(tmp_path / "state", aws.url)
    first.endpoint("stays", first.config("stays", first.model("stays")))
    first.endpoint("gone", first.config("gone", first.model("gone", f"s3://{BUCKET}/gone.tar.gz")))
    for name in ("stays", "gone"):
        first.settled(name)
    first.stop()
    aws.s3.delete_object(Bucket=BUCKET, Key="gone.tar.gz")
    again = Emulator.start(tmp_path / "state", aws.url)
    try:
        assert again.settled("stays")["EndpointStatus"] == "InService"
        failed = again.settled("gone")
        assert failed["EndpointStatus"] == "Failed"
        assert "could not be started again" in failed["FailureReason"]
        assert "gone.tar.gz" in failed["FailureReason"]
        again.sagemaker.delete_endpoint(EndpointName="gone")
    finally:
        again.stop()


def test_a_call_that_was_answered_is_kept(aws: Aws, tmp_path: Path) -> None:
    """Killed the moment after the answer, it has not forgotten what it answered."""
    first = Emulator.start(tmp_path / "state", aws.url)
    for number in range(20):
        first.sagemaker.create_model(ModelName=f"m-{number}", PrimaryContainer={"Image": IMAGE}, ExecutionRoleArn=ROLE)
    first.process.kill()
    first.process.wait()
    again = Emulator.start(tmp_path / "state", aws.url)
    try:
        assert len(again.sagemaker.list_models(MaxResults=100)["Models"]) == 20
    finally:
        again.stop()


def test_asynchronous_requests_are_served_by_the_next(aws: Aws, tmp_path: Path) -> None:
    """Of three that were taken, one in the model and two waiting, each has its answer in S3 after a kill."""
    emulator = Emulator.start(tmp_path / "state", aws.url)
    emulator.sagemaker.create_endpoint_config(
        EndpointConfigName="async",
        ProductionVariants=[
            {
                "VariantName": VARIANT,
                "ModelName": emulator.model("model"),
                "InstanceType": "ml.m5.large",
                "InitialInstanceCount": 1,
            }
        ],
        AsyncInferenceConfig={
            "OutputConfig": {"S3OutputPath": f"s3://{BUCKET}/after-a-kill/"},
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 1},
        },
    )
    emulator.endpoint("async", "async")
    emulator.settled("async")
    for number in range(3):
        body = json.dumps({"number": number, "sleep_s": 0.7}).encode()
        emulator.runtime.invoke_endpoint_async(EndpointName="async", Body=body, ContentType="application/json")
    time.sleep(0.2)
    emulator.stop(signal.SIGKILL)
    emulator = Emulator.start(tmp_path / "state", aws.url)

    def answered() -> set[int]:
        found = aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="after-a-kill/").get("Contents", ())
        bodies = [aws.s3.get_object(Bucket=BUCKET, Key=o["Key"])["Body"].read() for o in found]
        return {json.loads(body)["input"]["number"] for body in bodies}

    try:
        eventually(lambda: answered() == {0, 1, 2}, 15)
        assert "3 asynchronous requests of an earlier run are served now" in (tmp_path / "state.log").read_text()
        emulator.stop()
        emulator = Emulator.start(tmp_path / "state", aws.url)
        assert "asynchronous requests of an earlier run" not in (tmp_path / "state.log").read_text()
    finally:
        emulator.stop()


@pytest.mark.skipif(not hasattr(psutil.Process, "rlimit"), reason="limits of another process are Linux's")
def test_a_state_that_cannot_be_kept_is_told(aws: Aws, tmp_path: Path) -> None:
    """A disk without room fails no call; health and log say that changes would not survive, until they would again."""
    emulator = Emulator.start(tmp_path / "state", aws.url)
    try:
        process = psutil.Process(emulator.process.pid)
        _, most = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, ((tmp_path / "state" / "state.db-wal").stat().st_size, most))
        emulator.model("first")
        assert "cannot write" in emulator.admin("GET", "/health")["unsaved"]
        assert "changes will not survive" in (tmp_path / "state.log").read_text()
        process.rlimit(psutil.RLIMIT_FSIZE, (most, most))
        emulator.model("second")
        assert "unsaved" not in emulator.admin("GET", "/health")
        emulator.stop(signal.SIGKILL)
        emulator = Emulator.start(tmp_path / "state", aws.url)
        assert {m["ModelName"] for m in emulator.sagemaker.list_models()["Models"]} == {"first", "second"}
    finally:
        emulator.stop()


def started(state_dir: Path, aws: Aws) -> subprocess.CompletedProcess[str]:
    """A start that is to fail."""
    command = [sys.executable, "-m", "workbench.stack.sagemaker", "--port", "0", "--state-dir", str(state_dir)]
    env = os.environ | CREDENTIALS | {"AWS_ENDPOINT_URL": aws.url}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=20, check=False)


def test_two_on_one_folder(aws: Aws, tmp_path: Path) -> None:
    """A second emulator on the same folder is one line that says so; the first is not disturbed."""
    first = Emulator.start(tmp_path / "state", aws.url)
    try:
        second = started(tmp_path / "state", aws)
        assert (second.returncode, second.stderr.count("\n")) == (1, 1)
        assert "another emulator uses" in second.stderr
        first.model("model")
    finally:
        first.stop()
    (tmp_path / "state" / "state.db").write_bytes(b"no database at all " * 100)
    broken = started(tmp_path / "state", aws)
    assert (broken.returncode, broken.stderr.count("\n")) == (1, 1)
    assert "remove it to start without its state" in broken.stderr


def test_a_killed_model_process_is_replaced_and_leaves_no_port(emulator: Emulator) -> None:
    """An instance killed from outside is replaced by another process, nobody listens where it did, requests go on."""
    replica = emulator.shown("dedicated")["replicas"][0]
    process = psutil.Process(replica["pid"])
    (port,) = [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    process.kill()
    eventually(lambda: replica["id"] not in {r["id"] for r in emulator.shown("dedicated")["replicas"]})
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert code_of(emulator, "dedicated") == "OK"


class Customer(threading.Thread):
    """Makes, changes and deletes endpoints for as long as it is answered, and remembers what it was answered."""

    def __init__(self, emulator: Emulator, round_: int, serving: list[str]) -> None:
        super().__init__(daemon=True)
        self.made: set[str] = set()
        self.leaving: set[str] = set()
        self.gone: set[str] = set()
        self._emulator, self._round, self._serving = emulator, round_, serving

    def run(self) -> None:
        """Until the emulator is gone."""
        with contextlib.suppress(BotoCoreError):
            for number in itertools.count():
                with contextlib.suppress(ClientError):  # still in progress, most likely
                    self._do(f"r{self._round}-{number}")

    def _do(self, name: str) -> None:
        config = self._emulator.config(name, self._emulator.model(name))
        if len(self._serving) + len(self.made) < 3:
            self._emulator.endpoint(name, config)
            self.made.add(name)
        elif self._serving and random.random() < 0.3:
            victim = self._serving.pop()
            self.leaving.add(victim)
            self._emulator.sagemaker.delete_endpoint(EndpointName=victim)
            self.gone.add(victim)
        elif self._serving:
            self._emulator.sagemaker.update_endpoint(
                EndpointName=random.choice(self._serving), EndpointConfigName=config
            )


@pytest.mark.drill
def test_killed_at_any_moment(aws: Aws, tmp_path: Path) -> None:
    """Killed ten times amid creations, updates and deletions: what was answered holds, all that is left serves."""
    random.seed(4)
    serving: list[str] = []
    gone: set[str] = set()
    for round_ in range(10):
        emulator = Emulator.start(tmp_path / "state", aws.url)
        try:
            names = {e["EndpointName"] for e in emulator.sagemaker.list_endpoints(MaxResults=100)["Endpoints"]}
            assert names >= set(serving)
            assert not names & gone
            for name in names:
                assert emulator.settled(name)["EndpointStatus"] == "InService"
                assert code_of(emulator, name) == "OK"
            customer = Customer(emulator, round_, sorted(names))
            customer.start()
            time.sleep(random.uniform(0.2, 2.0))
            children = emulator.children()
        finally:
            emulator.stop(signal.SIGKILL)
        # Not waited for: its client tries again for a while, and nobody answers any more.
        assert psutil.wait_procs(children, timeout=5)[1] == []
        serving = sorted((names | customer.made) - customer.leaving)
        gone = customer.gone
