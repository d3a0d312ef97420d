"""InvokeEndpointWithResponseStream, read back by botocore's own event stream parser."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError, EventStreamError

from tests.contract.sagemaker.emulator import HTTP, VARIANT, Emulator, eventually


def stream(emulator: Emulator, endpoint: str, told: dict[str, Any], **more: Any) -> Any:
    """The response of one streamed invocation."""
    parameters = {"ContentType": "application/json"} | more
    return emulator.runtime.invoke_endpoint_with_response_stream(
        EndpointName=endpoint, Body=json.dumps(told).encode(), **parameters
    )


def parts(response: Any) -> Iterator[bytes]:
    """What its events carry."""
    for event in response["Body"]:
        yield event["PayloadPart"]["Bytes"]


def events(emulator: Emulator, body: bytes) -> list[Any]:
    """The messages of a stream as they are."""
    raw = HTTP.request(
        "POST", f"{emulator.url}/endpoints/dedicated/invocations-response-stream", body=body,
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert raw.headers["Content-Type"] == "application/vnd.amazon.eventstream"
    buffer = EventStreamBuffer()  # checks both checksums of each message
    buffer.add_data(raw.data)
    return list(buffer)


@pytest.mark.fidelity(
    "response streaming",
    "The answer comes as PayloadPart events, each when the container has sent it",
    source="botocore InvokeEndpointWithResponseStream, ResponseStream",
)
@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_parts_come_as_the_model_makes_them(emulator: Emulator, endpoint: str) -> None:
    """The parts together are the answer; the first is here long before the last is made."""
    emulator.invoke(endpoint)
    began = time.monotonic()
    response = stream(emulator, endpoint, {"parts": 4, "pause_s": 0.2})
    content = parts(response)
    first = next(content)
    assert time.monotonic() - began < 0.5
    assert first == b"part 0;"
    assert first + b"".join(content) == b"part 0;part 1;part 2;part 3;"
    assert time.monotonic() - began > 0.6


@pytest.mark.fidelity(
    "response streaming",
    "Accept goes in, and the model's content type comes out, under headers of their own",
    source="botocore InvokeEndpointWithResponseStream",
)
def test_headers(emulator: Emulator) -> None:
    """Accept, custom attributes, inference id and variant: as in InvokeEndpoint, under the stream's header names."""
    response = stream(emulator, "dedicated", {}, Accept="text/x-mine", CustomAttributes="trace-7", InferenceId="me-1")
    assert response["ContentType"] == "text/x-mine"
    assert response["InvokedProductionVariant"] == VARIANT
    assert response["CustomAttributes"] == "seen:trace-7"
    assert json.loads(b"".join(parts(response)))["headers"]["x-amzn-sagemaker-inference-id"] == "me-1"


@pytest.mark.fidelity(
    "response streaming",
    "A stream that the model does not finish ends with ModelStreamError: StreamBroken when its connection ends, "
    "ModelInvocationTimeExceeded when it takes too long",
    source="botocore ResponseStream, ModelStreamError",
)
@pytest.mark.parametrize(
    ("told", "sent", "code"),
    [
        ({"parts": 3, "die_at": 2}, b"part 0;part 1;", "StreamBroken"),
        ({"parts": 3, "fail_at": 1}, b"part 0;", "StreamBroken"),
        ({"parts": 9, "pause_s": 0.5}, b"part 0;part 1;part 2;", "ModelInvocationTimeExceeded"),
    ],
    ids=["dies", "fails", "takes too long"],
)
def test_a_stream_that_ends_early(emulator: Emulator, told: dict[str, Any], sent: bytes, code: str) -> None:
    """What was sent arrives; then an exception event says why there is no more."""
    seen: list[bytes] = []
    content = parts(stream(emulator, "dedicated", told))
    with pytest.raises(EventStreamError) as caught:
        seen.extend(content)
    assert b"".join(seen) == sent
    assert caught.value.response["Error"]["Code"] == "ModelStreamError"
    assert caught.value.response["Error"]["Message"]
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2)
    # botocore shows no more of an exception event than code and message.
    *_, last = events(emulator, json.dumps(told).encode())
    assert json.loads(last.payload)["ErrorCode"] == code
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2)


@pytest.mark.fidelity(
    "response streaming",
    "What fails before the first part is a ModelError, as of InvokeEndpoint",
    source="botocore: InvokeEndpointWithResponseStream errors",
)
@pytest.mark.parametrize(("told", "status"), [({"fail": "client"}, 415), ({"parts": 2, "fail_at": 0}, 500)])
def test_what_fails_before_the_first_part(emulator: Emulator, told: dict[str, Any], status: int) -> None:
    """Before the stream begins a container's error is a ModelError, as in InvokeEndpoint."""
    with pytest.raises(ClientError) as caught:
        stream(emulator, "dedicated", told)
    response: Any = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert (response["Error"]["Code"], response["OriginalStatusCode"]) == ("ModelError", status)


def test_refusals(emulator: Emulator) -> None:
    """Faults and unknown endpoints are refused before any stream, in their usual forms."""
    with pytest.raises(ClientError, match="Endpoint none of account 000000000000 not found"):
        stream(emulator, "none", {})
    emulator.fault("dedicated", "throttle")
    with pytest.raises(ClientError, match="ThrottlingException"):
        stream(emulator, "dedicated", {})


def test_a_caller_that_leaves(emulator: Emulator) -> None:
    """When the caller closes the connection in the middle, the instance is free again."""
    response = stream(emulator, "dedicated", {"parts": 20, "pause_s": 0.1})
    assert next(parts(response)) == b"part 0;"
    response["Body"].close()
    eventually(lambda: emulator.shown("dedicated")["in_flight"] == 0, 3)


def test_a_generator_answers_invoke_endpoint_too(emulator: Emulator) -> None:
    """Without streaming the parts come back as one body."""
    assert emulator.invoke("dedicated", b'{"parts": 2}')["Body"].read() == b"part 0;part 1;"
