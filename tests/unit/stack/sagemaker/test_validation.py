"""Documents against botocore's shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from tests.unit.stack.sagemaker.scaling.fakes import service
from workbench.stack.sagemaker.api.validation import compiled
from workbench.stack.sagemaker.api.wire import AwsError, Call, Protocol
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.operations import Control

KNOWN = {
    "sagemaker": frozenset({"CreateModel", "CreateEndpointConfig", "CreateEndpoint", "DescribeModel", "AddTags"}),
    "application-autoscaling": frozenset({"RegisterScalableTarget"}),
}


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    """Over botocore's own models."""
    return Protocol(KNOWN)


def parse(protocol: Protocol, operation: str, document: object) -> Call:
    """Parse a SageMaker request."""
    return protocol.parse(f"SageMaker.{operation}", json.dumps(document).encode())


def refusal(protocol: Protocol, operation: str, document: object) -> str:
    """The message of a refusal, with its code in front."""
    with pytest.raises(AwsError) as caught:
        parse(protocol, operation, document)
    return f"{caught.value.code}: {caught.value.message}"


def test_a_good_document_passes(protocol: Protocol) -> None:
    """A well-formed request comes back as the call it names."""
    call = parse(protocol, "CreateModel", {"ModelName": "m", "PrimaryContainer": {"Environment": {"A": "b"}}})
    assert (call.service, call.operation, call.document["ModelName"]) == ("sagemaker", "CreateModel", "m")


@pytest.mark.fidelity(
    "validation",
    "All constraint violations of a request are told at once, counted, with lower-case paths",
    source="botocore shapes; AWS: '2 validation errors detected: Value ... at ... failed to satisfy constraint'",
)
def test_all_problems_at_once(protocol: Protocol) -> None:
    """Problems are counted and joined as AWS does, with lower-case paths into lists."""
    document = {
        "EndpointConfigName": "under_score",
        "ProductionVariants": [{"VariantName": "a", "InitialInstanceCount": 0, "InstanceType": "ml.abacus"}, {}],
    }
    message = refusal(protocol, "CreateEndpointConfig", document)
    assert message.startswith("ValidationException: 4 validation errors detected: Value 'under_score' at ")
    assert (
        "Value '0' at 'productionVariants.1.member.initialInstanceCount' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1"
    ) in message
    assert "Value 'ml.abacus' at 'productionVariants.1.member.instanceType' failed to satisfy constraint: " in message
    assert (
        "Value null at 'productionVariants.2.member.variantName' failed to satisfy constraint: Member must not be null"
    ) in message


@pytest.mark.fidelity(
    "validation",
    "Lengths, ranges, enumerations and patterns of botocore's shapes hold",
    source="botocore: service-2.json of sagemaker",
)
@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"ModelName": "m" * 64}, "Member must have length less than or equal to 63"),
        ({"ModelName": "m", "Tags": [{"Key": "", "Value": ""}]}, "at 'tags.1.member.key'"),
        ({"ModelName": "m", "Typo": 1}, 'Unknown parameter in input: "Typo", must be one of: ModelName'),
        (
            {"ModelName": "m", "PrimaryContainer": {"Environment": {"no spaces": "x"}}},
            "at 'primaryContainer.environment' failed to satisfy constraint: Map keys must satisfy constraint: [",
        ),
        (
            {"ModelName": "m", "PrimaryContainer": {"Environment": {"A": "x" * 1025}}},
            "Map value must satisfy constraint: [Member must have length less than or equal to 1024]",
        ),
    ],
)
def test_rules(protocol: Protocol, document: object, expected: str) -> None:
    """Lengths, patterns, unknown members and map entries are all checked."""
    assert expected in refusal(protocol, "CreateModel", document)


@pytest.mark.fidelity(
    "validation",
    "A value of the wrong JSON type is a SerializationException",
    source="AWS JSON 1.1 protocol",
)
@pytest.mark.parametrize(
    "document",
    [
        {"ModelName": True},
        {"ModelName": ["m"]},
        {"ModelName": "m", "Tags": {}},
        {"ModelName": "m", "VpcConfig": "x"},
        [],
    ],
)
def test_wrong_types(protocol: Protocol, document: object) -> None:
    """A value of the wrong JSON type is a SerializationException."""
    assert refusal(protocol, "CreateModel", document).startswith("SerializationException: ")


def test_operations_not_served(protocol: Protocol) -> None:
    """An operation that exists but is not emulated says so, and names those that are."""
    assert "CreateTrainingJob is not emulated; sagemaker serves: AddTags" in refusal(protocol, "CreateTrainingJob", {})
    assert refusal(protocol, "Teleport", {}) == "UnknownOperationException: sagemaker has no operation Teleport"


def patterns(shape: Shape, seen: set[str]) -> Iterator[str]:
    """Every pattern under a shape."""
    if shape.name in seen:
        return
    seen.add(shape.name)
    if isinstance(shape, StringShape) and "pattern" in shape.metadata:
        yield shape.metadata["pattern"]
    inner: list[Any] = []
    if isinstance(shape, StructureShape):
        inner = list(shape.members.values())
    elif isinstance(shape, ListShape):
        inner = [shape.member]
    elif isinstance(shape, MapShape):
        inner = [shape.key, shape.value]
    for member in inner:
        yield from patterns(member, seen)


def test_every_pattern_of_a_served_operation_compiles() -> None:
    """The service models' Java patterns are understood, for every operation that is served."""
    catalog = Catalog("us-east-1", "000000000000")
    endpoints = Endpoints(catalog)
    known = Control(catalog, endpoints, service(), lifecycle=None).known  # type: ignore[arg-type]
    protocol = Protocol(known)
    found = [
        pattern
        for service, operations in known.items()
        for operation in operations
        if (shape := protocol.input_shape(service, operation))
        for pattern in patterns(shape, set())
    ]
    assert len(found) > 50
    for pattern in found:
        compiled(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)", "Grüße 1", True),
        (r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)", "a;b", False),
        (r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*", "endpoint/a 🚀", True),
        (r"\p{Print}+", "näh", False),
    ],
)
def test_java_patterns(pattern: str, text: str, fits: bool) -> None:
    """Unicode classes and surrogate ranges mean what they mean in Java."""
    assert bool(compiled(pattern).fullmatch(text)) is fits
