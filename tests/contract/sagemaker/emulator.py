"""Processes and requests of the contract tests: the emulator as a subprocess, MiniStack as its S3 and CloudWatch."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import psutil
import urllib3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
MODEL = Path(__file__).parent / "model" / "inference.py"
BUCKET = "models"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"
ROLE = "arn:aws:iam::000000000000:role/model"
VARIANT = "AllTraffic"
MOVING = ("Creating", "Updating", "SystemUpdating", "RollingBack")
HTTP = urllib3.PoolManager(retries=False, timeout=30)


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(condition: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """The condition's first true value; fails when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"still not true after {timeout_s} s")


@dataclass
class Emulator:
    """A running emulator and clients for it."""

    process: subprocess.Popen[str]
    url: str
    sagemaker: SageMakerClient
    runtime: SageMakerRuntimeClient
    autoscaling: ApplicationAutoScalingClient

    @classmethod
    def start(cls, state_dir: Path, aws_url: str, *options: str, **environment: str) -> Emulator:
        """Start one and wait for its `ready` line. It logs beside its state directory."""
        log = state_dir.with_suffix(".log")
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench.stack.sagemaker", "--port", "0", "--state-dir", str(state_dir), *options],
            env=os.environ | CREDENTIALS | {"AWS_ENDPOINT_URL": aws_url} | environment,
            stdout=subprocess.PIPE,
            stderr=log.open("wb"),
            text=True,
        )
        assert process.stdout is not None
        word, _, url = process.stdout.readline().strip().partition(" ")
        assert word == "ready", log.read_text()
        session = boto3.Session("test", "test", region_name="us-east-1")
        once = Config(retries={"total_max_attempts": 1}, max_pool_connections=50)
        return cls(
            process,
            url,
            session.client("sagemaker", endpoint_url=url),
            session.client("sagemaker-runtime", endpoint_url=url, config=once),
            session.client("application-autoscaling", endpoint_url=url),
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def children(self) -> list[psutil.Process]:
        """Its processes, and theirs."""
        return psutil.Process(self.process.pid).children(recursive=True)

    # Shorthand for resources

    def model(self, name: str, url: str = f"s3://{BUCKET}/model.tar.gz", **environment: str) -> str:
        """Create a model of the tests' archive."""
        container: Any = {"Image": IMAGE, "ModelDataUrl": url, "Environment": environment}
        self.sagemaker.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
        return name

    def config(self, name: str, model: str, *, serverless: int | None = None, instances: int = 1) -> str:
        """Create a configuration: serverless with that MaxConcurrency, or dedicated with that many instances.

        Of several instances the one with the fewest outstanding requests is taken.
        """
        variant: Any = {"VariantName": VARIANT, "ModelName": model}
        if serverless:
            variant["ServerlessConfig"] = {"MemorySizeInMB": 1024, "MaxConcurrency": serverless}
        else:
            variant |= {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": instances}
            variant |= {"RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}}
        self.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
        return name

    def endpoint(self, name: str, config: str) -> str:
        """Create an endpoint; `settled` waits for it."""
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)
        return name

    def settled(self, name: str) -> Any:
        """The endpoint's description once it is at rest."""

        def look() -> Any:
            seen = self.sagemaker.describe_endpoint(EndpointName=name)
            return None if seen["EndpointStatus"] in MOVING else seen

        return eventually(look, 20)

    def invoke(self, endpoint: str, body: bytes = b"{}", **more: Any) -> Any:
        """InvokeEndpoint with JSON; raises botocore's errors."""
        parameters = {"ContentType": "application/json"} | more
        return self.runtime.invoke_endpoint(EndpointName=endpoint, Body=body, **parameters)

    # Admin paths

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """A call of our admin paths, which must succeed."""
        response = HTTP.request(method, f"{self.url}/_inferlane{path}", json=body)
        assert response.status < 300, response.data
        return response.json()

    def fault(self, endpoint: str, kind: str, **params: float) -> str:
        """Inject a fault; returns its id."""
        body = {"endpoint": endpoint, "kind": kind, "params": params}
        return str(self.admin("POST", "/faults", body)["id"])

    def shown(self, endpoint: str) -> Any:
        """The endpoint's only variant as the admin path shows it."""
        found = next(e for e in self.admin("GET", "/endpoints")["endpoints"] if e["name"] == endpoint)
        return found["variants"][0]


@dataclass
class Aws:
    """MiniStack, with a bucket that holds the tests' model archive."""

    process: subprocess.Popen[bytes]
    url: str
    s3: S3Client
    cloudwatch: CloudWatchClient

    @classmethod
    def start(cls, folder: Path) -> Aws:
        """Start it and wait until it answers."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        own = {"IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "GATEWAY_PORT": str(port), "TMPDIR": str(folder)}
        process = subprocess.Popen(
            [sys.executable, "-m", "hypercorn", "ministack.app:app", "--bind", f"127.0.0.1:{port}"],
            env=os.environ | CREDENTIALS | own,
            stdout=(folder / "ministack.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        session = boto3.Session("test", "test", region_name="us-east-1")
        aws = cls(process, url, session.client("s3", endpoint_url=url), session.client("cloudwatch", endpoint_url=url))
        eventually(aws._answers, 30)
        aws.s3.create_bucket(Bucket=BUCKET)
        aws.s3.put_object(Bucket=BUCKET, Key="model.tar.gz", Body=archive({"code/inference.py": MODEL.read_bytes()}))
        return aws

    def _answers(self) -> bool:
        try:
            return HTTP.request("GET", f"{self.url}/_localstack/health").status == 200
        except urllib3.exceptions.HTTPError:
            return False


def archive(files: dict[str, bytes]) -> bytes:
    """A model.tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
