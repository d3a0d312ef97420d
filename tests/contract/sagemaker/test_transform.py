"""Batch transform over HTTP: real model processes, S3 and EventBridge of the host, boto3's own waiter and paginator."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError, WaiterError

from tests.contract.sagemaker.emulator import BUCKET, Aws, Emulator, archive, eventually

GUIDE = "developer guide: batch-transform"
# Adds up each row of numbers; or answers JSON with what it was sent, and what it was told by its environment.
MODEL = b"""
import json, os, sys, time

def model_fn(model_dir):
    return {k: v for k, v in os.environ.items() if k.startswith("SAGEMAKER_") and "BASE_DIR" not in k}

def input_fn(body, content_type):
    return body, content_type

def predict_fn(data, environment, context):
    body, content_type = data
    if content_type == "text/csv":
        rows = [row.split(",") for row in body.splitlines()]
        return [sum(map(int, row)) for row in rows]
    if content_type == "application/x-crash":
        os._exit(3)
    seen = json.loads(body)
    if seen.get("poison"):
        raise ValueError("poison")
    time.sleep(seen.get("sleep_s", 0))
    headers = {n: context.get_request_header(0, n) for n in ("content-type", "accept", "transfer-encoding")}
    return {"got": seen, "environment": environment, "headers": headers, "pid": os.getpid()}

def output_fn(prediction, accept):
    if isinstance(prediction, list):
        return "\\n".join(map(str, prediction)), "text/csv"
    return json.dumps(prediction)

def execution_parameters():
    offer = os.environ.get("OFFER")
    return json.loads(offer) if offer else {}
"""


class Jobs:
    """Objects and jobs of a test."""

    def __init__(self, emulator: Emulator, aws: Aws, name: str) -> None:
        self.emulator, self.aws, self.name = emulator, aws, name
        self.sagemaker = emulator.sagemaker

    def put(self, **objects: bytes) -> None:
        """Input objects under the test's own prefix; `__` is a slash and `_` a dot."""
        for key, content in objects.items():
            path = key.replace("__", "/").replace("_", ".")
            self.aws.s3.put_object(Bucket=BUCKET, Key=f"{self.name}/in/{path}", Body=content)

    def create(self, job: str, kind: str = "text/csv", model: str = "summing", **more: Any) -> str:
        """A job over those objects; dictionaries are merged into its request."""
        request: dict[str, Any] = {
            "TransformJobName": f"{self.name}-{job}",
            "ModelName": model,
            "TransformInput": {
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{self.name}/in/"}},
                "ContentType": kind,
                "SplitType": "Line",
            },
            "TransformOutput": {
                "S3OutputPath": f"s3://{BUCKET}/{self.name}/out/{job}",
                "Accept": kind,
                "AssembleWith": "Line",
            },
            "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
        }
        for key, value in more.items():
            request[key] = request.get(key, {}) | value if isinstance(value, dict) else value
        self.sagemaker.create_transform_job(**request)
        return str(request["TransformJobName"])

    def done(self, job: str) -> Any:
        """The job's description once it has ended."""

        def look() -> Any:
            seen = self.sagemaker.describe_transform_job(TransformJobName=job)
            return seen if seen["TransformJobStatus"] in ("Completed", "Failed", "Stopped") else None

        return eventually(look, 30)

    def stored(self, job: str) -> dict[str, bytes]:
        """The job's output objects by their keys relative to its output path."""
        prefix = f"{self.name}/out/{job}/"
        rows = self.aws.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        get = self.aws.s3.get_object
        return {r["Key"][len(prefix) :]: get(Bucket=BUCKET, Key=r["Key"])["Body"].read() for r in rows}


@pytest.fixture(scope="module")
def summing(running: Emulator, aws: Aws) -> Iterator[Emulator]:
    """The emulator with the model `summing`, for as long as a module of tests needs it."""
    aws.s3.put_object(Bucket=BUCKET, Key="summing.tar.gz", Body=archive({"code/inference.py": MODEL}))
    running.model("summing", f"s3://{BUCKET}/summing.tar.gz")
    yield running
    running.sagemaker.delete_model(ModelName="summing")


@pytest.fixture
def jobs(summing: Emulator, aws: Aws, request: pytest.FixtureRequest) -> Jobs:
    """Jobs under the test's own name."""
    return Jobs(summing, aws, request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").rstrip("]"))


def logs(emulator: Emulator) -> Path:
    """Where the emulator keeps the logs of model processes."""
    arguments = emulator.process.args
    assert isinstance(arguments, list)
    return Path(str(arguments[arguments.index("--state-dir") + 1])) / "logs"


def quotas_in_use(emulator: Emulator) -> dict[str, int]:
    """What of each quota is used."""
    return {row["name"]: row["used"] for row in emulator.admin("GET", "/quotas")["quotas"]}


def processes(emulator: Emulator) -> set[int]:
    """The emulator's process ids."""
    return {child.pid for child in emulator.children()}


@pytest.mark.fidelity(
    "batch transform", "An object's records come out in order, one .out for each object", source=GUIDE
)
def test_a_job(jobs: Jobs) -> None:
    """Two instances take three objects through; everything of the job is gone when it is Completed, but its outputs."""
    before = processes(jobs.emulator)
    jobs.put(a_csv=b"1,2\n3,4\n", set1__b_csv=b"5,6\n", c_csv=b"".join(b"%d,1\n" % n for n in range(500)))
    name = jobs.create("job", TransformResources={"InstanceCount": 2}, DataProcessing={"JoinSource": "Input"})
    jobs.sagemaker.get_waiter("transform_job_completed_or_stopped").wait(
        TransformJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    seen = jobs.sagemaker.describe_transform_job(TransformJobName=name)
    assert seen["CreationTime"] <= seen["TransformStartTime"] <= seen["TransformEndTime"]
    assert seen["DataProcessing"] == {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "Input"}
    assert jobs.stored("job") == {
        "a.csv.out": b"1,2,3\n3,4,7\n",
        "set1/b.csv.out": b"5,6,11\n",
        "c.csv.out": b"".join(b"%d,1,%d\n" % (n, n + 1) for n in range(500)),
    }
    assert processes(jobs.emulator) <= before


@pytest.mark.fidelity(
    "batch transform",
    "A bad record fails its own object only; the others' outputs stay and the job is Failed",
    source=GUIDE,
)
def test_a_poison_record(jobs: Jobs) -> None:
    """The job goes on after a bad record, is Failed in the end, and says where the cause is written."""
    jobs.put(a_csv=b"1,2\n", b_csv=b"3,4\nfive\n", c_csv=b"6,7\n")
    name = jobs.create("job", BatchStrategy="SingleRecord", ModelClientConfig={"InvocationsMaxRetries": 0})
    seen = jobs.done(name)
    assert seen["TransformJobStatus"] == "Failed"
    assert seen["FailureReason"].startswith("AlgorithmError: See job logs for more information. ")
    assert "1 of 3 objects failed, first models/a-poison-record/in/b.csv" in seen["FailureReason"]
    assert jobs.stored("job") == {"a.csv.out": b"3\n", "c.csv.out": b"13\n"}
    with pytest.raises(WaiterError):
        jobs.sagemaker.get_waiter("transform_job_completed_or_stopped").wait(TransformJobName=name)


@pytest.mark.fidelity(
    "batch transform",
    "SAGEMAKER_BATCH is always set, the other variables only where the request says so; request over /execution- "
    "parameters over default",
    source="developer guide: your-algorithms-batch-code",
)
def test_environment_and_headers(jobs: Jobs) -> None:
    """The container is told that it runs a batch, and what the request says; the container's own offer comes second."""
    jobs.put(a_json=b'{"n": 1}')
    jobs.emulator.model("offering", f"s3://{BUCKET}/summing.tar.gz", OFFER='{"MaxConcurrentTransforms": 3}')
    name = jobs.create(
        "job",
        "application/json",
        "offering",
        MaxPayloadInMB=0,
        Environment={"SAGEMAKER_MINE": "1"},
        TransformInput={"SplitType": "None"},
        TransformOutput={"AssembleWith": "None"},
    )
    assert jobs.done(name)["TransformJobStatus"] == "Completed"
    answer = json.loads(jobs.stored("job")["a.json.out"])
    environment = {"SAGEMAKER_BATCH": "true", "SAGEMAKER_MAX_PAYLOAD_IN_MB": "0", "SAGEMAKER_MINE": "1"}
    assert answer["environment"] == environment
    assert answer["headers"] == {
        "content-type": "application/json", "accept": "application/json", "transfer-encoding": "chunked",
    }  # fmt: skip
    log = logs(jobs.emulator) / f"{name}-transform-data.log"
    assert (
        "[sagemaker logs]: MaxConcurrentTransforms=3, MaxPayloadInMB=0, BatchStrategy=MULTI_RECORD" in log.read_text()
    )


@pytest.mark.fidelity(
    "batch transform",
    "A manifest's prefix and keys name the objects; Gzip input is decompressed",
    source="API reference: S3DataSource, TransformInput.CompressionType",
)
def test_a_manifest_of_gzip(jobs: Jobs) -> None:
    """A manifest names the objects; they are decompressed on their way."""
    jobs.put(a=gzip.compress(b"1,2\n3,4\n"), b=b"ignored")
    manifest = json.dumps([{"prefix": f"s3://{BUCKET}/{jobs.name}/"}, "in/a"])
    jobs.aws.s3.put_object(Bucket=BUCKET, Key=f"{jobs.name}/manifest", Body=manifest.encode())
    source = {"S3DataType": "ManifestFile", "S3Uri": f"s3://{BUCKET}/{jobs.name}/manifest"}
    name = jobs.create("job", TransformInput={"DataSource": {"S3DataSource": source}, "CompressionType": "Gzip"})
    assert jobs.done(name)["TransformJobStatus"] == "Completed"
    assert jobs.stored("job") == {"in/a.out": b"3\n7\n"}


@pytest.mark.fidelity(
    "batch transform",
    "A stopped job stores no output of what it has not finished",
    source="API reference: StopTransformJob",
)
def test_stop(jobs: Jobs) -> None:
    """A stopped job ends at once, with its processes and without output."""
    before = processes(jobs.emulator)
    jobs.put(a_json=b'{"sleep_s": 30}')
    name = jobs.create("job", "application/json")
    eventually(lambda: "TransformStartTime" in jobs.sagemaker.describe_transform_job(TransformJobName=name))
    assert quotas_in_use(jobs.emulator)["ml.m5.large for transform job usage"] == 1
    jobs.sagemaker.stop_transform_job(TransformJobName=name)
    seen = jobs.done(name)
    assert (seen["TransformJobStatus"], "FailureReason" in seen) == ("Stopped", False)
    assert jobs.stored("job") == {}
    assert processes(jobs.emulator) <= before
    assert quotas_in_use(jobs.emulator).get("ml.m5.large for transform job usage", 0) == 0
    with pytest.raises(ClientError, match="transform job is in status Stopped"):
        jobs.sagemaker.stop_transform_job(TransformJobName=name)


def test_a_model_that_does_not_start(jobs: Jobs) -> None:
    """A container that ends before its first ping fails the job, with the last line of its log."""
    jobs.put(a_csv=b"1\n")
    jobs.emulator.model("broken", VERSION="broken")
    seen = jobs.done(jobs.create("job", model="broken"))
    assert seen["TransformJobStatus"] == "Failed"
    assert seen["FailureReason"].startswith(
        "AlgorithmError: Model container failed to respond to ping. Its process ended"
    )
    assert "no module named 'moon'" in seen["FailureReason"]


@pytest.mark.fidelity(
    "batch transform", "A request without an answer is tried again up to InvocationsMaxRetries times",
    source="API reference: ModelClientConfig",
)  # fmt: skip
def test_a_model_that_dies(jobs: Jobs) -> None:
    """A process that ends under a request is started anew for each retry, and the object fails after the last."""
    jobs.put(a=b"x")
    name = jobs.create("job", "application/x-crash", ModelClientConfig={"InvocationsMaxRetries": 1})
    seen = jobs.done(name)
    assert seen["FailureReason"].startswith("AlgorithmError: See job logs for more information")
    assert seen["FailureReason"].endswith("in/a: Unable to get response from algorithm")


REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({"ModelName": "none"}, "ValidationException", 'Could not find model "arn:aws:sagemaker:us-east-1:000000000000'),
    (
        {"TransformInput": {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://models/no/"}}}},
        "ValidationException",
        'No S3 objects found under S3 URL "s3://models/no/" given in input data source. Please ensure that the bucket '
        "exists in the selected region (us-east-1), that objects exist under that S3 prefix, and that the role "
        '"arn:aws:iam::000000000000:role/model" has "s3:ListBucket" permissions on bucket "models".',
    ),
    (
        {"TransformResources": {"InstanceCount": 100, "InstanceType": "ml.p3.2xlarge"}, "MaxPayloadInMB": 101},
        "ValidationException",
        "MaxPayloadInMB must be at most 100; got 101.",
    ),
    (
        {"TransformResources": {"InstanceType": "ml.p4d.24xlarge"}},
        "ValidationException",
        "'transformResources.instanceType' failed to satisfy constraint: Member must satisfy enum value set",
    ),
    (
        {"Environment": {f"K{n}": "v" for n in range(17)}},
        "ValidationException",
        "failed to satisfy constraint: Member must have length less than or equal to 16",
    ),
]


@pytest.mark.fidelity(
    "batch transform",
    "A job's model and input must be there, its payload, type and environment within their limits",
    source="API reference: CreateTransformJob; aws/amazon-sagemaker-examples#2414",
)
@pytest.mark.parametrize(
    ("more", "code", "message"), REFUSALS, ids=["model", "input", "payload", "type", "environment"]
)
def test_refusals(jobs: Jobs, more: dict[str, Any], code: str, message: str) -> None:
    """A job that cannot be is refused before it exists, in the service's words."""
    jobs.put(a=b"1\n")
    with pytest.raises(ClientError) as caught:
        jobs.create("job", **more)
    assert caught.value.response["Error"]["Code"] == code
    assert message in caught.value.response["Error"]["Message"]


@pytest.mark.fidelity(
    "batch transform",
    "Instances of a type beyond the account's quota for transform jobs are refused",
    source="AWS's message, seen in public: ResourceLimitExceeded of CreateTransformJob",
)
def test_quota(jobs: Jobs) -> None:
    """The quota is one of its own, apart from the endpoints'."""
    jobs.put(a=b"1\n")
    jobs.emulator.admin("PUT", "/quotas", {"ml.g5.xlarge for transform job usage": 1})
    with pytest.raises(ClientError) as caught:
        jobs.create("job", TransformResources={"InstanceType": "ml.g5.xlarge", "InstanceCount": 2})
    assert caught.value.response["Error"]["Code"] == "ResourceLimitExceeded"
    assert caught.value.response["Error"]["Message"].startswith(
        "The account-level service limit 'ml.g5.xlarge for transform job usage' is 1 Instances, with current "
        "utilization of 0 Instances and a request delta of 2 Instances."
    )


@pytest.mark.fidelity(
    "batch transform",
    "Jobs are listed in pages; tags are those of the creation",
    source="botocore: ListTransformJobs paginator",
)
def test_list_and_tags(jobs: Jobs) -> None:
    """boto3's paginator lists the jobs, and a job's tags are those of its creation."""
    jobs.put(a=b"1\n")
    names = [jobs.create(f"job-{n}", Tags=[{"Key": "n", "Value": str(n)}]) for n in range(3)]
    with pytest.raises(ClientError, match="Job name must be unique within an AWS account and region"):
        jobs.create("job-0")
    pages = jobs.sagemaker.get_paginator("list_transform_jobs").paginate(
        NameContains=jobs.name, SortBy="Name", SortOrder="Ascending", PaginationConfig={"PageSize": 2}
    )
    listed = [row["TransformJobName"] for page in pages for row in page["TransformJobSummaries"]]
    assert listed == names
    arn = jobs.done(names[2])["TransformJobArn"]
    assert jobs.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "n", "Value": "2"}]
    for name in names:
        assert jobs.done(name)["TransformJobStatus"] == "Completed"


@pytest.mark.fidelity(
    "metrics",
    "A transform job's utilization has the dimension Host = job/instance, and no DiskUtilization",
    source="developer guide: monitoring-cloudwatch (transform jobs)",
)
def test_metrics(jobs: Jobs) -> None:
    """CloudWatch gets the utilization of a job's instance, under its Host."""
    jobs.put(a_json=b'{"sleep_s": 4}')
    name = jobs.create("job", "application/json")

    def hosts() -> set[tuple[str, str]]:
        pages = jobs.aws.cloudwatch.get_paginator("list_metrics").paginate(Namespace="/aws/sagemaker/TransformJobs")
        return {
            (m["MetricName"], d["Value"])
            for page in pages
            for m in page["Metrics"]
            for d in m["Dimensions"]
            if d["Name"] == "Host" and d["Value"].startswith(f"{name}/i-")
        }

    seen = eventually(lambda: hosts() if {m for m, _ in hosts()} >= {"CPUUtilization", "MemoryUtilization"} else None)
    assert {metric for metric, _ in seen} == {"CPUUtilization", "MemoryUtilization"}
    assert len({host for _, host in seen}) == 1
    jobs.sagemaker.stop_transform_job(TransformJobName=name)
    assert jobs.done(name)["TransformJobStatus"] == "Stopped"


def test_a_container_that_talks_nonsense(jobs: Jobs) -> None:
    """An unusable answer to /execution-parameters fails the job, and says what is wrong with it."""
    jobs.put(a_csv=b"1\n")
    jobs.emulator.model("nonsense", f"s3://{BUCKET}/summing.tar.gz", OFFER='{"BatchStrategy": "MultiRecord"}')
    seen = jobs.done(jobs.create("job", model="nonsense"))
    assert seen["FailureReason"] == (
        "AlgorithmError: The answer to /execution-parameters is unusable: BatchStrategy must be one of SINGLE_RECORD, "
        "MULTI_RECORD; got 'MultiRecord'"
    )


def test_provisioning_limits_and_the_end(aws: Aws, tmp_path: Path) -> None:
    """Instances take their time, a job has its limit, and the server's end takes running jobs with it.

    A host that refuses a service's events is told of once.
    """
    options = ("--transform-start", "30", "--time-scale", "60", "--transform-max", "2", "--stop-grace", "0.3")
    emulator = Emulator.start(tmp_path / "state", aws.url, *options)
    try:
        aws.s3.put_object(Bucket=BUCKET, Key="summing.tar.gz", Body=archive({"code/inference.py": MODEL}))
        emulator.model("summing", f"s3://{BUCKET}/summing.tar.gz")
        jobs = Jobs(emulator, aws, "limits")
        jobs.put(a_json=b'{"sleep_s": 60}')
        seen = jobs.done(jobs.create("late", "application/json"))
        assert (seen["TransformStartTime"] - seen["CreationTime"]).total_seconds() >= 0.5
        assert seen["FailureReason"] == "ClientError: The job ran longer than 2 s, the limit of a transform job"
        stopped = jobs.create("stopped", "application/json")
        log = tmp_path / "state" / "logs" / f"{stopped}-transform-data.log"
        eventually(log.exists)  # its request is on the way
        jobs.sagemaker.stop_transform_job(TransformJobName=stopped)
        assert jobs.done(stopped)["TransformJobStatus"] == "Stopped"
        jobs.create("cut", "application/json")
        children = eventually(lambda: emulator.children())
    finally:
        assert emulator.stop() == 0
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list((tmp_path / "state" / "transform").glob("*")) == []
    assert jobs.stored("late") == jobs.stored("stopped") == jobs.stored("cut") == {}
    told = (tmp_path / "state.log").read_text()
    assert told.count("events cannot be published: NotAuthorizedForSourceException") == 1
