"""InvokeEndpoint: what goes to the model and comes back. How it fails: `test_error_forms`."""

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


@pytest.mark.fidelity(
    "runtime headers",
    "The body goes to the container as it is; the answer comes back with its type and the variant that served",
    source="botocore: InvokeEndpointOutput",
)
@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_the_model_answers(emulator: Emulator, endpoint: str) -> None:
    """The body reaches the model, and its bytes and content type come back with the variant that served."""
    response = emulator.invoke(endpoint, b'{"text": "hello"}')
    assert answer(response)["input"] == {"text": "hello"}
    assert response["ContentType"] == "application/json"
    assert response["InvokedProductionVariant"] == VARIANT


@pytest.mark.fidelity(
    "runtime headers",
    "CustomAttributes go to the container and come back only when it sets them; ContentType and Accept are its own",
    source="botocore: InvokeEndpointInput, InvokeEndpointOutput.CustomAttributes",
)
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


@pytest.mark.fidelity(
    "runtime routing",
    "LEAST_OUTSTANDING_REQUESTS sends a request to the instance with the fewest",
    source="botocore: ProductionVariantRoutingConfig.RoutingStrategy",
)
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


@pytest.mark.fidelity(
    "serverless",
    "Exactly the requests over MaxConcurrency are throttled: HTTP 400 ThrottlingException, message null",
    source="opensearch-project/ml-commons#2429",
)
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


@pytest.mark.fidelity(
    "serverless",
    "Containers start for requests and stop when idle",
    source="developer guide: serverless-endpoints",
)
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


def test_largest_body_passes(emulator: Emulator) -> None:
    """A body of exactly the limit is served."""
    body = b" " * (6 * 1024 * 1024)
    response = emulator.invoke("dedicated", body, ContentType="application/octet-stream")
    assert answer(response)["input"] == {"bytes": len(body)}


@pytest.mark.fidelity(
    "payload limits",
    "Serverless: 4 MB of request and of response; real-time: 6 MB by the API's model (25 MB by the guide: a setting)",
    source="developer guide: serverless-endpoints-invoke, hosting-faqs; botocore BodyBlob",
)
@pytest.mark.parametrize(("endpoint", "mib"), [("serverless", 4), ("dedicated", 6)])
def test_answers_have_a_limit_too(emulator: Emulator, endpoint: str, mib: int) -> None:
    """A request just within the limit whose answer is beyond it fails as the model's; a smaller answer passes."""
    text = "x" * (mib * 1024 * 1024 - 100)
    with pytest.raises(ClientError) as caught:
        emulator.invoke(endpoint, json.dumps({"text": text}).encode())
    assert caught.value.response["OriginalStatusCode"] == 0  # type: ignore[typeddict-item]
    assert "larger than the endpoint allows" in caught.value.response["Error"]["Message"]
    assert answer(emulator.invoke(endpoint, json.dumps({"text": text[:-1000]}).encode()))["input"]
