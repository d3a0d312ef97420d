"""Requests: rules between the fields, and the parameters in their order of precedence."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel

from workbench.stack.sagemaker.api.validation import check as check_shape
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.transform.request import (
    Effective,
    OfferError,
    Parameters,
    check,
    effective,
    offered,
    parse,
    shown,
)

API = "API reference: CreateTransformJob"


def request(**more: Any) -> dict[str, Any]:
    """A sound request; dictionaries are merged into it."""
    document: dict[str, Any] = {
        "TransformJobName": "job",
        "ModelName": "model",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/in/"}},
            "ContentType": "text/csv",
            "SplitType": "Line",
        },
        "TransformOutput": {"S3OutputPath": "s3://b/out", "Accept": "text/csv", "AssembleWith": "Line"},
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    }
    for name, value in more.items():
        document[name] = document[name] | value if isinstance(document.get(name), dict) else value
    return document


def refusal(**more: Any) -> str:
    """The message a request is refused with."""
    with pytest.raises(AwsError) as caught:
        check(request(**more))
    assert caught.value.code == "ValidationException"
    return str(caught.value.message)


def filters(kind: str = "text/csv", **asked: str) -> dict[str, Any]:
    """A request with DataProcessing for a content type."""
    return {"TransformInput": {"ContentType": kind}, "TransformOutput": {"Accept": kind}, "DataProcessing": asked}


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"MaxPayloadInMB": 100},
    {"MaxPayloadInMB": 0, "MaxConcurrentTransforms": 64},
    {"MaxPayloadInMB": 25, "MaxConcurrentTransforms": 4},
    {"MaxConcurrentTransforms": 16},
    {"TransformInput": {"SplitType": "None"}, "BatchStrategy": "SingleRecord"},
    filters(InputFilter="$[1:]", JoinSource="Input", OutputFilter="$[0,-1]"),
    filters("text/csv; charset=utf-8", JoinSource="Input"),
    filters("application/jsonlines", OutputFilter="$['id','SageMakerOutput']"),
    {"TransformOutput": {"Accept": ""}, "DataProcessing": {"InputFilter": "$[1:]"}},
    {"TransformInput": {"ContentType": "image/png"}, "DataProcessing": {"InputFilter": "$", "JoinSource": "None"}},
]


@pytest.mark.parametrize("more", ACCEPTED)
def test_accepted(more: dict[str, Any]) -> None:
    """Requests within the rules pass, a strategy without a split among them."""
    check(request(**more))


SIZES = "MaxPayloadInMB is at most 100, and so is its product with MaxConcurrentTransforms"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"MaxPayloadInMB": 101}, "MaxPayloadInMB must be at most 100; got 101."),
    (
        {"MaxPayloadInMB": 26, "MaxConcurrentTransforms": 4},
        "MaxConcurrentTransforms * MaxPayloadInMB must not exceed 100 MB; this is 104 MB.",
    ),
    ({"MaxConcurrentTransforms": 17}, "must not exceed 100 MB; this is 102 MB."),
    ({"TransformResources": {"InstanceCount": 101}}, "InstanceCount must be at most 100; got 101."),
    ({"DataCaptureConfig": {"DestinationS3Uri": "s3://b/c"}}, "DataCaptureConfig is not emulated"),
]


@pytest.mark.fidelity("batch transform", SIZES, source=API)
@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_refused(more: dict[str, Any], message: str) -> None:
    """A size over its limit is refused with both figures."""
    assert refusal(**more).endswith(message)


@pytest.mark.fidelity(
    "batch transform",
    "AugmentedManifestFile is not compatible with transform jobs",
    source="API reference: TransformS3DataSource",
)
def test_augmented_manifest() -> None:
    """A data type of training jobs is refused."""
    source = {"S3DataSource": {"S3DataType": "AugmentedManifestFile", "S3Uri": "s3://b/m"}}
    assert refusal(TransformInput={"DataSource": source}) == (
        "S3DataType AugmentedManifestFile is not compatible with transform jobs."
    )


@pytest.mark.fidelity(
    "batch transform",
    "Joins and filters need CSV, JSON or JSON Lines on both sides, and matching delimiters",
    source="developer guide: batch-transform-data-processing",
)
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (filters("image/png", JoinSource="Input"), "or application/jsonlines; got image/png."),
        (
            {"TransformOutput": {"Accept": "application/json"}, "DataProcessing": {"JoinSource": "Input"}},
            "DataProcessing needs an Accept that is the ContentType, text/csv.",
        ),
        (
            {"TransformOutput": {"Accept": ""}, "DataProcessing": {"OutputFilter": "$[0]"}},
            "needs an Accept that is the ContentType, text/csv.",
        ),
        (
            {"TransformOutput": {"AssembleWith": "None"}, "DataProcessing": {"JoinSource": "Input"}},
            "DataProcessing needs the same SplitType and AssembleWith; got Line and None.",
        ),
        (
            {"TransformInput": {"SplitType": "None"}, "DataProcessing": {"InputFilter": "$[1:]"}},
            "DataProcessing of text/csv needs SplitType Line.",
        ),
        (
            {"TransformInput": {"SplitType": "TFRecord"}, "DataProcessing": {"InputFilter": "$[1:]"}},
            "DataProcessing cannot be used with SplitType TFRecord.",
        ),
        (filters("application/json", InputFilter="id"), 'Invalid InputFilter: "id". A JsonPath begins with $.'),
    ],
)
def test_refused_processing(more: dict[str, Any], message: str) -> None:
    """What a join or a filter cannot work with is refused before the job begins."""
    assert refusal(**more).endswith(message)


@pytest.mark.fidelity(
    "batch transform",
    "A filter with a character outside the operators is refused at once",
    source="GitHub: aws/aws-sdk#184",
)
def test_characters_of_filters() -> None:
    """An underscore is refused in the service's own words; a name in a CSV filter likewise."""
    assert refusal(**filters("application/jsonlines", OutputFilter="$['account_id','SageMakerOutput']")) == (
        "Invalid OutputFilter: \"$['account_id','SageMakerOutput']\". Unexpected \"_\" in JsonPath. Supported "
        "operators for \"application/jsonlines\" are ['$', '[', ']', '*', '.', ' ', ',', ':', '-', ''']"
    )
    assert 'Unexpected "." in JsonPath' in refusal(**filters(InputFilter="$.id"))


@pytest.mark.fidelity(
    "batch transform",
    "The container is told SAGEMAKER_BATCH always, and sizes and strategy only where the request has them",
    source="developer guide: your-algorithms-batch-code",
)
def test_environment() -> None:
    """The job's variables come over the model's, batch transform's own over both, in upper snake case."""
    model = Container("image", None, {"A": "model", "B": "model"})
    plain = parse(request(Environment={"B": "job"}), model)
    assert plain.container.environment == {"A": "model", "B": "job", "SAGEMAKER_BATCH": "true"}
    asked = parse(request(MaxPayloadInMB=2, MaxConcurrentTransforms=3, BatchStrategy="MultiRecord"), model)
    assert asked.container.environment == {
        "A": "model",
        "B": "model",
        "SAGEMAKER_BATCH": "true",
        "SAGEMAKER_MAX_PAYLOAD_IN_MB": "2",
        "SAGEMAKER_BATCH_STRATEGY": "MULTI_RECORD",
        "SAGEMAKER_MAX_CONCURRENT_TRANSFORMS": "3",
    }


@pytest.mark.fidelity(
    "batch transform",
    "ModelClientConfig: 600 s and three retries by default",
    source="botocore: ModelClientConfig",
)
def test_client_defaults() -> None:
    """Without ModelClientConfig a request has 600 s and three retries."""
    spec = parse(request(), Container("image", None, {}))
    assert (spec.timeout_s, spec.max_retries) == (600, 3)
    asked = request(ModelClientConfig={"InvocationsTimeoutInSeconds": 5, "InvocationsMaxRetries": 0})
    spec = parse(asked, Container("image", None, {}))
    assert (spec.timeout_s, spec.max_retries) == (5, 0)


@pytest.mark.fidelity(
    "batch transform",
    "The request's parameters come before /execution-parameters, and those before 1, MultiRecord and 6 MB",
    source="developer guide: your-algorithms-batch-code",
)
def test_precedence() -> None:
    """Each parameter is decided by itself; an asked 0 concurrency is not asked, an asked 0 MB is."""
    nothing, container = Parameters(), Parameters(8, "SingleRecord", 2)
    assert effective(nothing, nothing) == Effective(1, "MultiRecord", 6)
    assert effective(nothing, container) == Effective(8, "SingleRecord", 2)
    assert effective(Parameters(3, None, 0), container) == Effective(3, "SingleRecord", 0)
    assert parse(request(MaxConcurrentTransforms=0), Container("i", None, {})).asked == nothing
    assert effective(nothing, container).limit == 2 * 1024 * 1024
    assert effective(Parameters(None, None, 0), container).limit is None
    assert str(effective(nothing, nothing)) == "MaxConcurrentTransforms=1, MaxPayloadInMB=6, BatchStrategy=MULTI_RECORD"


@pytest.mark.fidelity(
    "batch transform",
    "/execution-parameters spells MULTI_RECORD what the API spells MultiRecord",
    source="developer guide: your-algorithms-batch-code",
)
def test_offers() -> None:
    """A container says MULTI_RECORD where the API says MultiRecord, and may leave anything out."""
    answer = {"MaxConcurrentTransforms": 8, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": 6}
    assert offered(answer) == Parameters(8, "MultiRecord", 6)
    assert offered({}) == Parameters()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], "it is not a JSON object"),
        (
            {"BatchStrategy": "MultiRecord"},
            "BatchStrategy must be one of SINGLE_RECORD, MULTI_RECORD; got 'MultiRecord'",
        ),
        ({"MaxPayloadInMB": "6"}, "MaxPayloadInMB must be a whole number from 0 on; got '6'"),
        ({"MaxConcurrentTransforms": -1}, "MaxConcurrentTransforms must be a whole number from 0 on; got -1"),
        ({"MaxPayloadInMB": 101}, "MaxPayloadInMB must be at most 100; got 101"),
    ],
)
def test_bad_offers(answer: object, why: str) -> None:
    """A container's answer that cannot be used says which part."""
    with pytest.raises(OfferError) as caught:
        offered(answer)
    assert str(caught.value) == why


def test_shown() -> None:
    """DescribeTransformJob shows the request with the defaults that apply."""
    seen = shown(request(DataProcessing={"JoinSource": "Input"}, MaxPayloadInMB=0))
    assert seen["TransformInput"]["CompressionType"] == "None"
    assert seen["TransformOutput"]["KmsKeyId"] == ""
    assert seen["DataProcessing"] == {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "Input"}
    assert seen["MaxPayloadInMB"] == 0
    assert "BatchStrategy" not in seen


@pytest.mark.fidelity(
    "batch transform",
    "Transform jobs run on 116 instance types; p4d, p5, g7 and c7g are not among them",
    source="botocore shape",
)
@pytest.mark.parametrize(
    ("type_", "allowed"),
    [
        ("ml.m5.large", True),
        ("ml.g5.xlarge", True),
        ("ml.p4d.24xlarge", False),
        ("ml.p5.48xlarge", False),
        ("ml.c7g.large", False),
        ("ml.abacus", False),
    ],
)
def test_instance_types(type_: str, *, allowed: bool) -> None:
    """The service model's own list of types is the list: what it lacks is refused with it."""
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    shape = model.operation_model("CreateTransformJob").input_shape
    assert shape is not None
    document = request(TransformResources={"InstanceType": type_})
    problems = check_shape(shape, document)
    assert bool(problems) is not allowed
