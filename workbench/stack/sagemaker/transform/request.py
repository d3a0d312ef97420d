"""A CreateTransformJob request: its rules beyond the shapes, and the job it asks for. Pure.

- MaxPayloadInMB is at most 100, and so is its product with MaxConcurrentTransforms where that is given (the payload
  counting as 6, its default, where it is not). BatchStrategy says nothing for objects that are not split.
- Filters may hold letters, digits and the operators of the documented JSONPath subset; anything else (an underscore,
  say) is refused at once, in the service's words (aws/aws-sdk#184). CSV knows index paths only.
- Filters and joins need `text/csv`, `application/json` or `application/jsonlines`. What changes the output needs the
  same Accept; a join also needs SplitType and AssembleWith to be the same. CSV is always split into lines.
- The effective MaxConcurrentTransforms, BatchStrategy and MaxPayloadInMB are the request's, else the container's
  (`GET /execution-parameters`), else 1, MultiRecord and 6.

Sources: API reference (CreateTransformJob, TransformInput, TransformOutput, DataProcessing, ModelClientConfig),
developer guide ("Associate Prediction Results with Input Records", "Use Your Own Inference Code with Batch Transform").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from workbench.stack.sagemaker.api.gaps import Gap
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.transform import jsonpath, processing
from workbench.stack.sagemaker.transform.objects import Location, location
from workbench.stack.sagemaker.transform.packing import BatchStrategy
from workbench.stack.sagemaker.transform.splitting import SplitType

MIB = 1024 * 1024
MOST_MB = 100
MOST_INSTANCES = 100
DEFAULT_PAYLOAD_MB = 6
WIRE_NAMES: Mapping[BatchStrategy, str] = {"SingleRecord": "SINGLE_RECORD", "MultiRecord": "MULTI_RECORD"}
"""The container's spelling of a strategy; the API's is the key."""
_OPERATORS = {"json": "$[]*. ,:-'", "csv": "$[]* ,:-"}


class OfferError(ValueError):
    """What a container says of batch transform is unusable; the message says why."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """How requests are made; None where it is not said."""

    concurrency: int | None = None
    strategy: BatchStrategy | None = None
    payload_mb: int | None = None
    """0 is HTTP chunked streaming, without a limit."""


@dataclass(frozen=True, slots=True)
class Effective:
    """How requests are made, decided."""

    concurrency: int
    strategy: BatchStrategy
    payload_mb: int

    @property
    def limit(self) -> int | None:
        """Most bytes of a payload; None when payloads are streamed."""
        return self.payload_mb * MIB or None

    def __str__(self) -> str:
        return (
            f"MaxConcurrentTransforms={self.concurrency}, MaxPayloadInMB={self.payload_mb}, "
            f"BatchStrategy={WIRE_NAMES[self.strategy]}"
        )


@dataclass(frozen=True, slots=True)
class Filters:
    """DataProcessing as asked for."""

    format: processing.Format
    input_filter: str
    output_filter: str
    join: bool

    def prepared(self, *, inclusive: bool) -> processing.Processing:
        """With its paths parsed; `inclusive` says whether ranges include their end. Raises `PathError`.

        Done by the running job, whose log shows the service's errors of this kind (aws/sagemaker-python-sdk#1112).
        """
        first, second = (jsonpath.parse(p, inclusive=inclusive) for p in (self.input_filter, self.output_filter))
        return processing.Processing(self.format, first, second, self.join)


@dataclass(frozen=True, slots=True)
class Spec:
    """A job as asked for. It stays valid when its model is deleted."""

    name: str
    container: Container
    """The model's, with the job's variables over its own, and what batch transform sets itself over both."""
    source_kind: Literal["S3Prefix", "ManifestFile"]
    source: Location
    content_type: str | None
    gzip: bool
    split: SplitType
    output: Location
    accept: str | None
    newline_after: bool
    """AssembleWith=Line."""
    kms_key: str | None
    instance_type: str
    instances: int
    asked: Parameters
    timeout_s: int
    max_retries: int
    filters: Filters | None
    """None when neither filters nor joins are asked for."""


def check(document: Document) -> None:
    """The rules between the fields. Raises `ValidationException`."""
    source = document["TransformInput"]["DataSource"]["S3DataSource"]
    if source["S3DataType"] not in ("S3Prefix", "ManifestFile"):
        raise invalid(f"S3DataType {source['S3DataType']} is not compatible with transform jobs.")
    if document.get("DataCaptureConfig"):
        raise Gap.BATCH_CAPTURE.refusal()
    count = document["TransformResources"]["InstanceCount"]
    if count > MOST_INSTANCES:
        raise invalid(f"InstanceCount must be at most {MOST_INSTANCES}; got {count}.")
    _check_sizes(document)
    _check_processing(document)


def parse(document: Document, container: Container) -> Spec:
    """The job of a request that `check` has passed."""
    source, output = document["TransformInput"], document["TransformOutput"]
    s3, client = source["DataSource"]["S3DataSource"], document.get("ModelClientConfig") or {}
    asked = Parameters(
        document.get("MaxConcurrentTransforms") or None, document.get("BatchStrategy"), document.get("MaxPayloadInMB")
    )
    environment = {**container.environment, **(document.get("Environment") or {}), **_batch_variables(asked)}
    return Spec(
        name=document["TransformJobName"],
        container=Container(container.image, container.model_data_url, environment),
        source_kind=s3["S3DataType"],
        source=location(s3["S3Uri"]),
        content_type=source.get("ContentType") or None,
        gzip=source.get("CompressionType") == "Gzip",
        split=source.get("SplitType", "None"),
        output=location(output["S3OutputPath"]),
        accept=output.get("Accept") or None,
        newline_after=output.get("AssembleWith") == "Line",
        kms_key=output.get("KmsKeyId") or None,
        instance_type=document["TransformResources"]["InstanceType"],
        instances=document["TransformResources"]["InstanceCount"],
        asked=asked,
        timeout_s=client.get("InvocationsTimeoutInSeconds", 600),
        max_retries=client.get("InvocationsMaxRetries", 3),
        filters=_filters(document),
    )


def effective(asked: Parameters, offered: Parameters) -> Effective:
    """The request's parameters over the container's over the defaults."""
    payload_mb = asked.payload_mb if asked.payload_mb is not None else offered.payload_mb
    return Effective(
        asked.concurrency or offered.concurrency or 1,
        asked.strategy or offered.strategy or "MultiRecord",
        DEFAULT_PAYLOAD_MB if payload_mb is None else payload_mb,
    )


def offered(answer: object) -> Parameters:
    """The container's answer to /execution-parameters. Raises `OfferError`."""
    if not isinstance(answer, dict):
        raise OfferError("it is not a JSON object")
    numbers = {}
    for name in ("MaxConcurrentTransforms", "MaxPayloadInMB"):
        value = answer.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise OfferError(f"{name} must be a whole number from 0 on; got {value!r}")
        numbers[name] = value
    strategies = {wire: strategy for strategy, wire in WIRE_NAMES.items()}
    strategy = answer.get("BatchStrategy")
    if strategy is not None and strategy not in strategies:
        raise OfferError(f"BatchStrategy must be one of {', '.join(strategies)}; got {strategy!r}")
    payload_mb = numbers["MaxPayloadInMB"]
    if payload_mb is not None and payload_mb > MOST_MB:
        raise OfferError(f"MaxPayloadInMB must be at most {MOST_MB}; got {payload_mb}")
    return Parameters(numbers["MaxConcurrentTransforms"] or None, strategies.get(cast(str, strategy)), payload_mb)


def shown(document: Document) -> Document:
    """What DescribeTransformJob echoes of a request, with the defaults that apply."""
    source, output = document["TransformInput"], document["TransformOutput"]
    echoed = {
        name: document[name]
        for name in (
            "MaxConcurrentTransforms",
            "ModelClientConfig",
            "MaxPayloadInMB",
            "BatchStrategy",
            "Environment",
            "ExperimentConfig",
        )
        if document.get(name) is not None
    }
    return {
        **echoed,
        "ModelName": document["ModelName"],
        "TransformInput": {"CompressionType": "None", "SplitType": "None", **source},
        "TransformOutput": {"AssembleWith": "None", "KmsKeyId": "", **output},
        "TransformResources": document["TransformResources"],
        "DataProcessing": {
            "InputFilter": "$",
            "OutputFilter": "$",
            "JoinSource": "None",
            **(document.get("DataProcessing") or {}),
        },
    }


def _batch_variables(asked: Parameters) -> dict[str, str]:
    variables = {"SAGEMAKER_BATCH": "true"}
    if asked.payload_mb is not None:
        variables["SAGEMAKER_MAX_PAYLOAD_IN_MB"] = str(asked.payload_mb)
    if asked.strategy is not None:
        variables["SAGEMAKER_BATCH_STRATEGY"] = WIRE_NAMES[asked.strategy]
    if asked.concurrency is not None:
        variables["SAGEMAKER_MAX_CONCURRENT_TRANSFORMS"] = str(asked.concurrency)
    return variables


def _check_sizes(document: Document) -> None:
    payload_mb, concurrency = document.get("MaxPayloadInMB"), document.get("MaxConcurrentTransforms")
    if payload_mb is not None and payload_mb > MOST_MB:
        raise invalid(f"MaxPayloadInMB must be at most {MOST_MB}; got {payload_mb}.")
    product = (concurrency or 0) * (DEFAULT_PAYLOAD_MB if payload_mb is None else payload_mb)
    if product > MOST_MB:
        raise invalid(f"MaxConcurrentTransforms * MaxPayloadInMB must not exceed {MOST_MB} MB; this is {product} MB.")


def _check_processing(document: Document) -> None:
    asked = document.get("DataProcessing") or {}
    filters = {name: asked.get(name, "$") for name in ("InputFilter", "OutputFilter")}
    joins = asked.get("JoinSource") == "Input"
    if not joins and all(path.strip() == "$" for path in filters.values()):
        return
    source, output = document["TransformInput"], document["TransformOutput"]
    kind = _media_type(source.get("ContentType"))
    if kind not in processing.FORMATS:
        raise invalid(f"DataProcessing needs a ContentType of {_one_of(processing.FORMATS)}; got {kind or 'none'}.")
    for name, path in filters.items():
        _check_path(name, path, kind)
    changes_output = joins or filters["OutputFilter"].strip() != "$"
    if changes_output and _media_type(output.get("Accept")) != kind:
        raise invalid(f"DataProcessing needs an Accept that is the ContentType, {kind}.")
    split, assemble = source.get("SplitType", "None"), output.get("AssembleWith", "None")
    if split not in ("None", "Line"):
        raise invalid(f"DataProcessing cannot be used with SplitType {split}.")
    if kind == "text/csv" and split != "Line":
        raise invalid("DataProcessing of text/csv needs SplitType Line.")
    if changes_output and split != assemble:
        raise invalid(f"DataProcessing needs the same SplitType and AssembleWith; got {split} and {assemble}.")


def _check_path(name: str, path: str, kind: str) -> None:
    operators = _OPERATORS["csv" if kind == "text/csv" else "json"]
    for char in path:
        known = char.isascii() and (char.isdigit() or (char.isalpha() and kind != "text/csv"))
        if not known and char not in operators:
            listed = ", ".join(f"'{operator}'" for operator in operators)
            raise invalid(
                f'Invalid {name}: "{path}". Unexpected "{char}" in JsonPath. '
                f'Supported operators for "{kind}" are [{listed}]'
            )
    if not path.strip().startswith("$"):
        raise invalid(f'Invalid {name}: "{path}". A JsonPath begins with $.')


def _filters(document: Document) -> Filters | None:
    asked: Mapping[str, Any] = document.get("DataProcessing") or {}
    first, second = (asked.get(name, "$") for name in ("InputFilter", "OutputFilter"))
    joins = asked.get("JoinSource") == "Input"
    if not joins and first.strip() == second.strip() == "$":
        return None
    kind = cast(processing.Format, _media_type(document["TransformInput"]["ContentType"]))
    return Filters(kind, first, second, joins)


def _media_type(value: str | None) -> str:
    return (value or "").split(";", 1)[0].strip().lower()


def _one_of(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
