"""The SageMaker emulator with an S3 beside it, to measure batch: real jobs, and the model processes themselves.

MiniStack is the S3. Both listen on sockets that are opened here, and are gone with the context. A model is served as
the stack serves it: by a serverless endpoint whose container has one worker, and by transform jobs whose container has
a worker for each core of this machine and is given that many calls at a time.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import boto3
import psutil
import urllib3

from workbench.bench.emulated import ROLE
from workbench.bench.processes import BenchError
from workbench.stack.cloud import offline_environment
from workbench.stack.layout import project_root
from workbench.stack.processes import listen

Strategy = Literal["MultiRecord", "SingleRecord"]
BUCKET: Final = "bench"
JSON, JSON_LINES = "application/json", "application/jsonlines"
PAYLOAD_MB: Final = 1
"""The least that MultiRecord can be held to: some thousand sentences a call."""
START_S, JOB_S = 60, 900
_POLL_S = 0.05
_HTTP = urllib3.PoolManager(retries=False, timeout=JOB_S)


@dataclass(frozen=True, slots=True)
class Job:
    """A transform job that has ended."""

    billed_s: float
    """TransformStartTime to TransformEndTime."""
    cpu_s: float
    """What the emulator and the job's container used of the cores, start-up included."""
    answers: tuple[bytes, ...]
    """A line each, in the order of the records."""


@dataclass(slots=True)
class Site:
    """What runs while the measurement lasts."""

    sagemaker_url: str
    process: psutil.Process
    """The emulator's; what it started and saw end counts as its own."""
    sagemaker: Any
    s3: Any
    cores: int
    _jobs: int = field(default=0, init=False)

    def add(self, name: str, archive: Path) -> None:
        """A model as the lanes have it: `-1` and `-2` serverless with so many threads a request, `-batch` for jobs."""
        key = f"models/{name}.tar.gz"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=archive.read_bytes())
        for suffix, workers, threads in (("-1", 1, 1), ("-2", 1, 2), ("-batch", self.cores, 1)):
            container = {
                "Image": "bench/model:1",
                "ModelDataUrl": f"s3://{BUCKET}/{key}",
                "Environment": {"SAGEMAKER_MODEL_SERVER_WORKERS": str(workers), "INFERLANE_THREADS": str(threads)},
            }
            self.sagemaker.create_model(ModelName=name + suffix, PrimaryContainer=container, ExecutionRoleArn=ROLE)

    def transform(self, model: str, records: Sequence[bytes], strategy: Strategy, at_once: int | None = None) -> Job:
        """Run a job over these JSON records to its end. Raises `BenchError` unless each one has an answer.

        Its input is several files, so that every worker has something to do to the end. `at_once` is how many calls the
        container is given at a time, as many as there are cores unless it says otherwise.
        """
        self._jobs += 1
        name = f"{model}-{self._jobs}"
        files = _dealt(records, min(len(records), 4 * self.cores))
        for number, lines in enumerate(files):
            body = b"".join(line + b"\n" for line in lines)
            self.s3.put_object(Bucket=BUCKET, Key=f"{name}/in/{number:03}.jsonl", Body=body)
        used_s = _cpu_s(self.process)
        self.sagemaker.create_transform_job(
            TransformJobName=name,
            ModelName=f"{model}-batch",
            BatchStrategy=strategy,
            MaxPayloadInMB=PAYLOAD_MB,
            MaxConcurrentTransforms=at_once or self.cores,
            ModelClientConfig={"InvocationsTimeoutInSeconds": JOB_S, "InvocationsMaxRetries": 0},
            TransformInput={
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{name}/in/"}},
                "ContentType": JSON_LINES,
                "SplitType": "Line",
            },
            TransformOutput={
                "S3OutputPath": f"s3://{BUCKET}/{name}/out/",
                "Accept": JSON_LINES,
                "AssembleWith": "Line",
            },
            TransformResources={"InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        )
        ended = self._ended(name)
        used_s = _cpu_s(self.process) - used_s
        answers = tuple(line for number in range(len(files)) for line in self._answers(name, number))
        if len(answers) != len(records):
            raise BenchError(f"{len(answers)} answers to {len(records)} records of {name}")
        return Job((ended["TransformEndTime"] - ended["TransformStartTime"]).total_seconds(), used_s, answers)

    def _ended(self, name: str) -> Mapping[str, Any]:
        deadline = time.monotonic() + JOB_S
        while time.monotonic() < deadline:
            seen: Mapping[str, Any] = self.sagemaker.describe_transform_job(TransformJobName=name)
            if seen["TransformJobStatus"] == "Completed":
                return seen
            if seen["TransformJobStatus"] != "InProgress":
                raise BenchError(f"{name} is {seen['TransformJobStatus']}: {seen.get('FailureReason')}")
            time.sleep(_POLL_S)
        raise BenchError(f"{name} has not ended after {JOB_S} s")

    def _answers(self, name: str, number: int) -> list[bytes]:
        """A file's; AssembleWith=Line adds a newline to those that the model's answer ends with."""
        body = self.s3.get_object(Bucket=BUCKET, Key=f"{name}/out/{number:03}.jsonl.out")["Body"].read()
        return [line for line in body.split(b"\n") if line]

    @contextmanager
    def serverless(self, model: str) -> Iterator[Container]:
        """The container of a serverless endpoint, warm, while the context lasts."""
        size = {"MemorySizeInMB": 4096, "MaxConcurrency": 1}
        variant = {"VariantName": "AllTraffic", "ModelName": model, "ServerlessConfig": size}
        self.sagemaker.create_endpoint_config(EndpointConfigName=model, ProductionVariants=[variant])
        self.sagemaker.create_endpoint(EndpointName=model, EndpointConfigName=model)
        waiter = self.sagemaker.get_waiter("endpoint_in_service")
        waiter.wait(EndpointName=model, WaiterConfig={"Delay": 1, "MaxAttempts": START_S})
        try:
            first = _HTTP.request(
                "POST", f"{self.sagemaker_url}/endpoints/{model}/invocations",
                body=b'{"text": "Thank you."}', headers={"Content-Type": JSON},
            )  # fmt: skip
            if first.status != 200:
                raise BenchError(f"{model} answered {first.status}: {first.data[:500]!r}")
            seen = _HTTP.request("GET", f"{self.sagemaker_url}/_inferlane/endpoints").json()["endpoints"]
            found = next(each for each in seen if each["name"] == model)
            replica = found["variants"][0]["replicas"][0]
            yield Container(f"{replica['url']}/invocations", replica["pid"])
        finally:
            self.sagemaker.delete_endpoint(EndpointName=model)


@dataclass(frozen=True, slots=True)
class Container:
    """A model process, called without anything in between."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """What its process has used of the cores so far."""
        return _cpu_s(psutil.Process(self.pid))

    def memory_mb(self) -> float:
        """What its process holds now."""
        return float(psutil.Process(self.pid).memory_info().rss) / 1e6

    def seconds(self, body: bytes, content_type: str) -> float:
        """How long one request takes, from sending to the last byte. Raises `BenchError` for any answer but a 200."""
        began = time.perf_counter()
        answer = _HTTP.request("POST", self.url, body=body, headers={"Content-Type": content_type})
        took_s = time.perf_counter() - began
        if answer.status != 200:
            raise BenchError(f"the model answered {answer.status}: {answer.data[:500]!r}")
        return took_s


@contextmanager
def site() -> Iterator[Site]:
    """MiniStack and the emulator, while the context lasts."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inferlane-bench-")))
        cloud = stack.enter_context(_ministack(folder))
        url, process = stack.enter_context(_emulator(folder, cloud))
        session: Any = boto3.Session("test", "test", region_name="us-east-1")
        s3 = session.client("s3", endpoint_url=cloud)
        s3.create_bucket(Bucket=BUCKET)
        yield Site(url, process, session.client("sagemaker", endpoint_url=url), s3, _cores())


@contextmanager
def _ministack(folder: Path) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        own = {"IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "GATEWAY_PORT": str(port), "TMPDIR": str(folder)}
        command = ["-m", "hypercorn", "ministack.app:app", "--bind", f"fd://{listener.fileno()}"]
        with _process(command, offline_environment(url) | own, folder / "ministack", fd=listener.fileno()) as process:
            deadline = time.monotonic() + START_S
            while not _healthy(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (folder / "ministack").read_text()[-1500:].strip()
                    raise BenchError(f"MiniStack did not start: {said}")
                time.sleep(_POLL_S)
            yield url


def _healthy(url: str) -> bool:
    try:
        return _HTTP.request("GET", f"{url}/_localstack/health", timeout=1).status == 200
    except urllib3.exceptions.HTTPError:
        return False


@contextmanager
def _emulator(folder: Path, cloud: str) -> Iterator[tuple[str, psutil.Process]]:
    command = ["-m", "workbench.stack.sagemaker", "--port", "0", "--json", "--state-dir", str(folder / "state")]
    with _process(command, offline_environment(cloud), folder / "emulator") as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise BenchError(f"the emulator did not start: {(folder / 'emulator').read_text()[-1500:].strip()}")
        yield str(json.loads(line)["url"]), psutil.Process(process.pid)


@contextmanager
def _process(
    arguments: list[str], env: Mapping[str, str], errors: Path, fd: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    with errors.open("w") as stderr:
        process = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, *arguments], cwd=project_root(), env=dict(env), text=True,
            stdin=subprocess.DEVNULL, stderr=stderr, stdout=subprocess.PIPE if fd is None else stderr,
            pass_fds=[] if fd is None else [fd],
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout:
            process.stdout.close()


def _cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system + used.children_user + used.children_system)


def _dealt(records: Sequence[bytes], files: int) -> list[Sequence[bytes]]:
    """The records in their order, in so many parts that differ by one at most."""
    bounds = [len(records) * number // files for number in range(files + 1)]
    return [records[begin:end] for begin, end in itertools.pairwise(bounds)]


def _cores() -> int:
    """Those that this process may use. macOS does not tell, and gives all."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
