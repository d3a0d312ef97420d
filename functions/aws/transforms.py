"""SageMaker's batch transform as `Transforms`.

A job is created once: a name that exists already is taken for our own, since a name is a run's. By line, the service
splits the input and puts the output together again; otherwise an object is a record, whatever the strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from functions.aws.attributes import millis
from functions.aws.redaction import redacted
from functions.aws.sdk_errors import code_of, translated
from functions.batch_ports import TransformSpec, TransformStatus

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

_EXISTS: Final = "ResourceInUse"
_CALLS: Final = {"InvocationsTimeoutInSeconds": 3600, "InvocationsMaxRetries": 1}
"""The most time that the API allows: one call may carry thousands of records, and would be broken off after the 600 s
that it has otherwise. One repetition, for what was no fault of a record: a file that fails twice has poison in it, and
is retried record by record in a run of its own."""
_SAME_NAME: Final = "already exist"
"""Of a ValidationException, as some regions answer it."""


class SageMakerTransforms:
    """The transform jobs of a stack."""

    def __init__(
        self, client: Callable[[], SageMakerClient], *, bucket: str, key: str | None, tags: dict[str, str]
    ) -> None:
        """`client` is made with the first call: it takes as long as all others together, and some need none.

        `key` (ARN) encrypts what jobs write into `bucket`, ours; another bucket's own settings rule there.
        """
        self._client = cache(client)
        self._ours = f"s3://{bucket}/"
        self._key = key
        self._tags = [{"Key": name, "Value": value} for name, value in tags.items()]

    def create(self, spec: TransformSpec) -> None:
        """Begin (see `batch_ports.Transforms`)."""
        with translated():
            try:
                self._client().create_transform_job(**self.request(spec))
            except ClientError as error:
                if not _exists_already(error):
                    raise

    def request(self, spec: TransformSpec) -> dict[str, Any]:
        """CreateTransformJob's parameters, also for a state machine that makes the call itself."""
        output: dict[str, Any] = {"S3OutputPath": spec.output, "AssembleWith": "Line" if spec.lines else "None"}
        if spec.accept is not None:
            output["Accept"] = spec.accept
        if self._key is not None and spec.output.startswith(self._ours):
            output["KmsKeyId"] = self._key
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": spec.input}}
        typed = {} if spec.content_type is None else {"ContentType": spec.content_type}
        request: dict[str, Any] = {
            "TransformJobName": spec.name,
            "ModelName": spec.model_name,
            "MaxPayloadInMB": spec.max_payload_mb,
            "MaxConcurrentTransforms": spec.max_concurrent,
            "ModelClientConfig": _CALLS,
            "TransformInput": {"DataSource": source, "SplitType": "Line" if spec.lines else "None", **typed},
            "TransformOutput": output,
            "TransformResources": {"InstanceType": spec.instance_type, "InstanceCount": spec.instance_count},
            **({"Tags": self._tags} if self._tags else {}),
        }
        if spec.lines:
            request["BatchStrategy"] = {"SingleRecord": "SingleRecord", "MultiRecord": "MultiRecord"}[spec.strategy]
        return request

    def describe(self, name: str) -> TransformStatus | None:
        """How it fares (see `batch_ports.Transforms`)."""
        with translated():
            try:
                found = self._client().describe_transform_job(TransformJobName=name)
            except ClientError as error:
                if _is_unknown(error):
                    return None
                raise
        began, ended, reason = (
            found.get("TransformStartTime"),
            found.get("TransformEndTime"),
            found.get("FailureReason"),
        )
        return TransformStatus(
            found["TransformJobStatus"],
            None if reason is None else redacted(reason),
            None if began is None else millis(began.timestamp()) / 1000,
            None if ended is None else millis(ended.timestamp()) / 1000,
        )


def _exists_already(error: ClientError) -> bool:
    code = code_of(error)
    return code.startswith(_EXISTS) or (code.startswith("Validation") and _SAME_NAME in str(error))


def _is_unknown(error: ClientError) -> bool:
    """SageMaker says ResourceNotFound here; ValidationException with these words elsewhere."""
    code = code_of(error)
    return code.startswith("ResourceNotFound") or (
        code.startswith("Validation") and ("Could not find" in str(error) or "not found" in str(error))
    )
