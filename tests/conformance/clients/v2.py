"""The `sagemaker` SDK 2, as its documentation has people use it. Prints one JSON object: what each step gave.

`python v2.py ARCHIVE`: a model.tar.gz. Cloud and credentials come from the environment. The one thing that is not a
default: the session is told its bucket, because the SDK asks the real STS for the name of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import boto3
import sagemaker
from botocore.exceptions import ClientError
from sagemaker.async_inference import AsyncInferenceConfig
from sagemaker.async_inference.waiter_config import WaiterConfig
from sagemaker.deserializers import CSVDeserializer, JSONDeserializer
from sagemaker.model import Model
from sagemaker.predictor import Predictor
from sagemaker.s3 import S3Downloader, S3Uploader
from sagemaker.serializers import CSVSerializer, JSONSerializer
from sagemaker.serverless import ServerlessInferenceConfig
from sagemaker.transformer import Transformer

BUCKET = "sdk-2"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"
ROLE = "arn:aws:iam::000000000000:role/sdk-2"
ROWS = {"rows": [[1, 2], [3]]}
JSON = {"serializer": JSONSerializer(), "deserializer": JSONDeserializer()}


def main(archive: str) -> dict[str, Any]:
    """Every step, in the order a user would take them."""
    session = sagemaker.Session(default_bucket=BUCKET)
    data = session.upload_data(archive, key_prefix="models")

    def model(name: str) -> Model:
        return Model(
            image_uri=IMAGE, model_data=data, role=ROLE, name=name, predictor_cls=Predictor, sagemaker_session=session
        )

    return {
        "version": sagemaker.__version__,
        "serverless": serverless(model("sdk-2-serverless")),
        "real_time": real_time(model("sdk-2-real-time")),
        "async": asynchronous(model("sdk-2-async")),
        "transform": transform(model("sdk-2-transform"), session),
        "left": left(),
    }


def serverless(model: Model) -> dict[str, Any]:
    """Model.deploy with a ServerlessInferenceConfig, Predictor.predict, clean-up."""
    size = ServerlessInferenceConfig(memory_size_in_mb=1024, max_concurrency=2)
    predictor = model.deploy(serverless_inference_config=size, endpoint_name="sdk-2-serverless", **JSON)
    answer = predictor.predict(ROWS)
    _remove(predictor)
    return {"answer": answer}


def real_time(model: Model) -> dict[str, Any]:
    """Model.deploy on instances; CSV; the model's refusal; an update to two instances; several predictors."""
    predictor = model.deploy(
        initial_instance_count=1, instance_type="ml.m5.xlarge", endpoint_name="sdk-2-real-time", **JSON
    )
    seen: dict[str, Any] = {"answer": predictor.predict(ROWS, inference_id="r-1", target_variant="AllTraffic")}
    other = Predictor(
        "sdk-2-real-time", predictor.sagemaker_session, serializer=CSVSerializer(), deserializer=CSVDeserializer()
    )
    seen["csv"] = other.predict([[1, 2], [3, 4]])
    try:
        predictor.predict({"rows": [["one"]]})
    except ClientError as error:
        seen["refused"] = refusal(error)
    seen["stream"] = "".join(part.decode() for part in predictor.predict_stream(ROWS))
    predictor.update_endpoint(initial_instance_count=2, instance_type="ml.m5.xlarge")
    described = boto3.client("sagemaker").describe_endpoint(EndpointName="sdk-2-real-time")
    seen["updated"] = [described["EndpointStatus"], described["ProductionVariants"][0]["CurrentInstanceCount"]]
    seen["after"] = predictor.predict(ROWS)
    _remove(predictor)
    return seen


def asynchronous(model: Model) -> dict[str, Any]:
    """Model.deploy with an AsyncInferenceConfig; the answer is waited for in S3."""
    predictor = model.deploy(
        initial_instance_count=1,
        instance_type="ml.m5.xlarge",
        endpoint_name="sdk-2-async",
        async_inference_config=AsyncInferenceConfig(output_path=f"s3://{BUCKET}/async/out"),
        **JSON,
    )
    answer = predictor.predict(ROWS, waiter_config=WaiterConfig(max_attempts=60, delay=1))
    _remove(predictor)
    return {"answer": answer}


def transform(model: Model, session: sagemaker.Session) -> dict[str, Any]:
    """Model.transformer, Transformer.transform with the logs, the output in S3, attach; a job that fails."""
    source = f"s3://{BUCKET}/transform/in"
    S3Uploader.upload_string_as_file_body("1,2\n3,4\n5,6\n", f"{source}/good.csv", sagemaker_session=session)
    transformer = model.transformer(
        instance_count=1,
        instance_type="ml.m5.xlarge",
        strategy="MultiRecord",
        assemble_with="Line",
        accept="text/csv",
        output_path=f"s3://{BUCKET}/transform/out",
    )
    transformer.transform(source, content_type="text/csv", split_type="Line", job_name="sdk-2-good")
    output = S3Downloader.read_file(f"{transformer.output_path}/good.csv.out", sagemaker_session=session)
    attached = Transformer.attach("sdk-2-good", sagemaker_session=session)
    seen: dict[str, Any] = {"output": output, "attached": [attached.model_name, attached.strategy]}
    bad = f"s3://{BUCKET}/transform/bad"
    S3Uploader.upload_string_as_file_body("1,2\nx,y\n", f"{bad}/bad.csv", sagemaker_session=session)
    try:
        transformer.transform(bad, content_type="text/csv", split_type="Line", job_name="sdk-2-bad", logs=False)
    except sagemaker.exceptions.UnexpectedStatusException as error:
        seen["failed"] = error.actual_status
    transformer.delete_model()
    return seen


def left() -> dict[str, int]:
    """How much of it is still there."""
    client = boto3.client("sagemaker")
    return {
        "models": len(client.list_models(NameContains="sdk-2-")["Models"]),
        "configs": len(client.list_endpoint_configs(NameContains="sdk-2-")["EndpointConfigs"]),
    }


def _remove(predictor: Predictor) -> None:
    predictor.delete_model()
    predictor.delete_endpoint()  # its configuration with it


def refusal(error: ClientError) -> dict[str, Any]:
    """Code and the container's own status."""
    response: dict[str, Any] = {**error.response}
    return {"code": response["Error"]["Code"], "status": response["OriginalStatusCode"]}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
