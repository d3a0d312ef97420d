"""The `sagemaker` SDK 3's resources (`sagemaker.core.resources`). Prints one JSON object: what each step gave.

`python v3.py ARCHIVE`: a model.tar.gz. Cloud and credentials come from the environment. What the SDK logs on standard
output goes to standard error, where it is in nobody's way.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sys
from typing import Any

import boto3
from botocore.exceptions import ClientError, ParamValidationError
from sagemaker.core.resources import Endpoint, EndpointConfig, Model, TransformJob
from sagemaker.core.shapes import (
    AsyncInferenceConfig,
    AsyncInferenceOutputConfig,
    ContainerDefinition,
    ProductionVariant,
    ProductionVariantServerlessConfig,
    TransformDataSource,
    TransformInput,
    TransformOutput,
    TransformResources,
    TransformS3DataSource,
)
from sagemaker.core.utils.exceptions import FailedStatusError

BUCKET = "sdk-3"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"
ROLE = "arn:aws:iam::000000000000:role/sdk-3"
ROWS = json.dumps({"rows": [[1, 2], [3]]})
JSON, CSV = "application/json", "text/csv"


def main(archive: str) -> dict[str, Any]:
    """Every step, in the order a user would take them."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(archive, BUCKET, "models/model.tar.gz")
    container = ContainerDefinition(image=IMAGE, model_data_url=f"s3://{BUCKET}/models/model.tar.gz")
    model = Model.create(model_name="sdk-3", primary_container=container, execution_role_arn=ROLE)
    seen = {
        "version": importlib.metadata.version("sagemaker"),
        "model": [model.model_name, model.primary_container.image],
        "serverless": serverless(),
        "real_time": real_time(),
        "async": asynchronous(s3),
        "transform": transform(s3),
    }
    model.delete()
    return {**seen, "left": left()}


def variant(instances: int) -> ProductionVariant:
    """A variant on so many instances."""
    return ProductionVariant(
        variant_name="AllTraffic", model_name="sdk-3", initial_instance_count=instances, instance_type="ml.m5.xlarge"
    )


def serverless() -> dict[str, Any]:
    """EndpointConfig, Endpoint.create, wait, invoke, delete, wait.

    The SDK (3.27) writes MemorySizeInMB as MemorySizeInMb, which botocore refuses to send: its resources cannot make a
    serverless configuration anywhere. So boto3 makes it, and the SDK does the rest.
    """
    size = ProductionVariantServerlessConfig(memory_size_in_mb=1024, max_concurrency=2)
    only = ProductionVariant(variant_name="AllTraffic", model_name="sdk-3", serverless_config=size)
    own_fault = ""
    try:
        EndpointConfig.create(endpoint_config_name="sdk-3-serverless", production_variants=[only])
    except ParamValidationError as error:
        own_fault = str(error)
        row: Any = {"VariantName": "AllTraffic", "ModelName": "sdk-3"}
        row["ServerlessConfig"] = {"MemorySizeInMB": 1024, "MaxConcurrency": 2}
        client = boto3.client("sagemaker")
        client.create_endpoint_config(EndpointConfigName="sdk-3-serverless", ProductionVariants=[row])
    config = EndpointConfig.get("sdk-3-serverless")
    endpoint = Endpoint.create(endpoint_name="sdk-3-serverless", endpoint_config_name=config.endpoint_config_name)
    endpoint.wait_for_status("InService")
    seen = {
        "own_fault": own_fault,
        "memory_mb": config.production_variants[0].serverless_config.memory_size_in_mb,
        "answer": _body(endpoint.invoke(body=ROWS, content_type=JSON, accept=JSON)),
    }
    _remove(endpoint, config)
    return seen


def real_time() -> dict[str, Any]:
    """The same on instances; the model's refusal; an update to another configuration; weights; what get_all finds."""
    config = EndpointConfig.create(endpoint_config_name="sdk-3-one", production_variants=[variant(1)])
    two = EndpointConfig.create(endpoint_config_name="sdk-3-two", production_variants=[variant(2)])
    endpoint = Endpoint.create(endpoint_name="sdk-3-real-time", endpoint_config_name=config)
    endpoint.wait_for_status("InService")
    seen: dict[str, Any] = {"answer": _body(endpoint.invoke(body=ROWS, content_type=JSON, inference_id="r-1"))}
    try:
        endpoint.invoke(body='{"rows": [["one"]]}', content_type=JSON)
    except ClientError as error:
        seen["refused"] = refusal(error)
    try:
        endpoint.invoke_with_response_stream(body=ROWS, content_type=JSON)
    except AttributeError as error:  # the SDK takes botocore's EventStream for a dictionary; nothing comes of it
        seen["own_fault"] = str(error)
    endpoint.endpoint_config_name = two.endpoint_config_name
    endpoint.update()
    endpoint.wait_for_status("InService")
    seen["updated"] = [endpoint.endpoint_config_name, endpoint.production_variants[0].current_instance_count]
    seen["endpoints"] = sorted(each.endpoint_name for each in Endpoint.get_all(name_contains="sdk-3-"))
    seen["configs"] = sorted(each.endpoint_config_name for each in EndpointConfig.get_all(name_contains="sdk-3-"))
    _remove(endpoint, config, two)
    return seen


def asynchronous(s3: Any) -> dict[str, Any]:
    """Endpoint.invoke_async; the answer is waited for in S3."""
    output = AsyncInferenceOutputConfig(s3_output_path=f"s3://{BUCKET}/async/out")
    config = EndpointConfig.create(
        endpoint_config_name="sdk-3-async",
        production_variants=[variant(1)],
        async_inference_config=AsyncInferenceConfig(output_config=output),
    )
    endpoint = Endpoint.create(endpoint_name="sdk-3-async", endpoint_config_name=config)
    endpoint.wait_for_status("InService")
    s3.put_object(Bucket=BUCKET, Key="async/in.json", Body=ROWS)
    accepted = endpoint.invoke_async(input_location=f"s3://{BUCKET}/async/in.json", content_type=JSON)
    key = accepted.output_location.removeprefix(f"s3://{BUCKET}/")
    s3.get_waiter("object_exists").wait(Bucket=BUCKET, Key=key, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    answer = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    _remove(endpoint, config)
    return {"answer": answer}


def transform(s3: Any) -> dict[str, Any]:
    """TransformJob.create, wait, the output in S3; a job that fails; what get_all finds."""
    s3.put_object(Bucket=BUCKET, Key="in/good.csv", Body="1,2\n3,4\n5,6\n")
    s3.put_object(Bucket=BUCKET, Key="bad/bad.csv", Body="1,2\nx,y\n")
    job = _job("sdk-3-good", "in")
    job.wait()
    output = s3.get_object(Bucket=BUCKET, Key="out/good.csv.out")["Body"].read().decode()
    seen: dict[str, Any] = {"output": output, "status": job.transform_job_status}
    try:
        _job("sdk-3-bad", "bad").wait()
    except FailedStatusError as error:
        seen["failed"] = str(error).splitlines()[0]
    seen["jobs"] = sorted(each.transform_job_name for each in TransformJob.get_all(name_contains="sdk-3-"))
    return seen


def left() -> dict[str, int]:
    """How much of it is still there."""
    return {
        "models": len(list(Model.get_all(name_contains="sdk-3"))),
        "configs": len(list(EndpointConfig.get_all(name_contains="sdk-3"))),
        "endpoints": len(list(Endpoint.get_all(name_contains="sdk-3"))),
    }


def _job(name: str, prefix: str) -> TransformJob:
    source = TransformS3DataSource(s3_data_type="S3Prefix", s3_uri=f"s3://{BUCKET}/{prefix}")
    return TransformJob.create(
        transform_job_name=name,
        model_name="sdk-3",
        batch_strategy="MultiRecord",
        transform_input=TransformInput(
            data_source=TransformDataSource(s3_data_source=source), content_type=CSV, split_type="Line"
        ),
        transform_output=TransformOutput(s3_output_path=f"s3://{BUCKET}/out", accept=CSV, assemble_with="Line"),
        transform_resources=TransformResources(instance_type="ml.m5.xlarge", instance_count=1),
    )


def _body(answer: Any) -> Any:
    return json.loads(answer.body.read())


def _remove(endpoint: Endpoint, *configs: EndpointConfig) -> None:
    endpoint.delete()
    endpoint.wait_for_delete()
    for config in configs:
        config.delete()


def refusal(error: ClientError) -> dict[str, Any]:
    """Code and the container's own status."""
    response: dict[str, Any] = {**error.response}
    return {"code": response["Error"]["Code"], "status": response["OriginalStatusCode"]}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        results = main(sys.argv[1])
    print(json.dumps(results))
