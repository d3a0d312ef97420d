"""InvokeEndpoint: what goes to the model and comes back, and the exact form of every refusal."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import HTTP, VARIANT, Emulator, eventually


def answer(response: Any) -> Any:
    """The model's JSON."""
    return json.loads(response["Body"].read())


@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_the_model_answers(emulator: Emulator, endpoint: str) -> None:
    """The body reaches the model, and its bytes and content type come back with the variant that served."""
    response = emulator.invoke(endpoint, b'{"text": "hello"}')
    assert answer(response)["input"] == {"text": "hello"}
    assert response["ContentType"] == "application/json"
    assert response["InvokedProductionVariant"] == VARIANT


def test_headers_both_ways(emulator: Emulator) -> None:
    """Custom attributes reach the model and return; other content types arrive as bytes; Accept is obeyed."""
    response = emulator.invoke(
        "dedicated",
        b"\xff\x00",
        ContentType="application/octet-stream",
        Accept="text/x-mine",
        CustomAttributes="trace-7",
    )
    assert response["CustomAttributes"] == "seen:trace-7"
    assert response["ContentType"] == "text/x-mine"
    assert answer(response)["input"] == {"bytes": 2}


def test_instances_share_the_load(emulator: Emulator) -> None:
    """Concurrent requests go to the instance with the fewest outstanding: two slow ones to two processes."""
    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(emulator.invoke, "dedicated", b'{"sleep_s": 0.4}') for _ in range(2)]
        assert len({answer(c.result())["pid"] for c in calls}) == 2


def test_answers_are_not_crossed(emulator: Emulator) -> None:
    """Of many concurrent requests each gets its own answer."""
    with ThreadPoolExecutor(16) as threads:
        bodies = [{"n": n} for n in range(300)]
        answers = threads.map(lambda b: answer(emulator.invoke("dedicated", json.dumps(b).encode())), bodies)
        assert [a["input"] for a in answers] == bodies


@pytest.mark.parametrize(("fail", "status", "text"), [("server", 500, "the model broke"), ("client", 415, "only cats")])
def test_container_errors(emulator: Emulator, fail: str, status: int, text: str) -> None:
    """A container's 4xx or 5xx is a ModelError that carries its status and text."""
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated", json.dumps({"fail": fail}).encode())
    response: Any = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert response["Error"]["Code"] == "ModelError"
    assert response["OriginalStatusCode"] == status
    assert text in response["OriginalMessage"]
    side = "client" if status < 500 else "server"
    assert response["Error"]["Message"].startswith(f'Received {side} error ({status}) from primary with message "')
    assert "/aws/sagemaker/Endpoints/dedicated in account 000000000000" in response["Error"]["Message"]
    assert response["LogStreamArn"].endswith(":log-group:/aws/sagemaker/Endpoints/dedicated")


def test_time_limit(emulator: Emulator) -> None:
    """A model that takes too long is a ModelError with status 0."""
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated", b'{"sleep_s": 2.6}')
    assert caught.value.response["OriginalStatusCode"] == 0  # type: ignore[typeddict-item]
    assert "Received server error (0) from primary with message" in caught.value.response["Error"]["Message"]
    assert "Your invocation timed out" in caught.value.response["Error"]["Message"]


def test_over_max_concurrency(emulator: Emulator) -> None:
    """Serverless throttles exactly the requests over MaxConcurrency: HTTP 400, message null."""
    url = f"{emulator.url}/endpoints/serverless/invocations"

    def post(_: int) -> Any:
        return HTTP.request("POST", url, body=b'{"sleep_s": 0.5}', headers={"Content-Type": "application/json"})

    with ThreadPoolExecutor(5) as threads:
        responses = list(threads.map(post, range(5)))
    throttled = [r for r in responses if r.status == 400]
    assert sorted(r.status for r in responses) == [200, 200, 400, 400, 400]
    assert {(r.headers["x-amzn-ErrorType"], r.data) for r in throttled} == {
        ("ThrottlingException", b'{"message": null}')
    }


def test_cold_start_and_idle_stop(emulator: Emulator) -> None:
    """Containers start for requests and stop when idle; the next request starts one anew."""
    emulator.invoke("serverless")
    before = emulator.shown("serverless")
    assert before["replicas"]
    eventually(lambda: not emulator.shown("serverless")["replicas"])
    emulator.invoke("serverless")
    after = emulator.shown("serverless")
    assert after["starts"] == before["starts"] + 1
    assert len(after["replicas"]) == 1


def test_unknown_endpoint(emulator: Emulator) -> None:
    """An endpoint that does not exist is a ValidationError in the runtime's words."""
    with pytest.raises(ClientError) as caught:
        emulator.invoke("none")
    assert caught.value.response["Error"] == {
        "Code": "ValidationError",
        "Message": "Endpoint none of account 000000000000 not found.",
    }


def test_unknown_variant(emulator: Emulator) -> None:
    """A target variant that does not exist is refused; one that does is used."""
    assert emulator.invoke("dedicated", TargetVariant=VARIANT)["InvokedProductionVariant"] == VARIANT
    with pytest.raises(ClientError, match="ValidationError"):
        emulator.invoke("dedicated", TargetVariant="other")


def test_oversize(emulator: Emulator) -> None:
    """Too large is HTTP 413 with code 413 on a real-time endpoint, and a ValidationError on a serverless one."""
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated", b" " * (6 * 1024 * 1024 + 1))
    assert caught.value.response["Error"] == {"Code": "413", "Message": "HTTP content length exceeded 6291456 bytes."}
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    with pytest.raises(ClientError) as caught:
        emulator.invoke("serverless", b" " * (4 * 1024 * 1024 + 1))
    assert caught.value.response["Error"]["Code"] == "ValidationError"
    assert caught.value.response["Error"]["Message"].endswith("has oversize body.")


def test_largest_body_passes(emulator: Emulator) -> None:
    """A body of exactly the limit is served."""
    body = b" " * (6 * 1024 * 1024)
    response = emulator.invoke("dedicated", body, ContentType="application/octet-stream")
    assert answer(response)["input"] == {"bytes": len(body)}
