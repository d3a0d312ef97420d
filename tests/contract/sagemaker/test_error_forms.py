"""What a client sees of every way an invocation can fail: status, code, message, headers, attempts.

The table is read through botocore, once for each retry mode: `standard` with three attempts is the SDK's default from
1.44 on, `legacy` with five was it before.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.contract.sagemaker.emulator import Emulator, eventually

MODES: dict[str, dict[str, Any]] = {
    "once": {"total_max_attempts": 1, "mode": "standard"},
    "standard": {"total_max_attempts": 3, "mode": "standard"},
    "legacy": {"total_max_attempts": 5, "mode": "legacy"},
}
PLACE = (
    "See https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logEventViewer:group="
    "/aws/sagemaker/Endpoints/dedicated in account 000000000000 for more information."
)
TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the latency metrics for "
    "each container in Amazon CloudWatch, resolve the issue, and try again."
)
ARN = "arn:aws:logs:us-east-1:000000000000:log-group:/aws/sagemaker/Endpoints/dedicated"
TRACEBACK = re.compile(r"Traceback \(most recent.*RuntimeError: the model broke\n", re.DOTALL)
"""What the toolkit adds to the text of an exception."""
TOO_LONG = "Member must have length less than or equal to 64"


@dataclass(frozen=True)
class Row:
    """One way to fail, and how it looks."""

    name: str
    status: int
    code: str
    message: str | None
    attempts: tuple[int, int]
    """In standard and in legacy mode."""
    fault: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)
    """Of the error shape, besides code and message."""

    def __str__(self) -> str:
        return self.name


def model_error(name: str, body: bytes, status: int, text: str) -> Row:
    """A row of the container's own failure."""
    side = "client" if 400 <= status < 500 else "server"
    message = f'Received {side} error ({status}) from primary with message "{text}". {PLACE}'
    members = {"OriginalStatusCode": status, "OriginalMessage": text, "LogStreamArn": ARN}
    return Row(name, 424, "ModelError", message, (1, 1), call={"Body": body}, members=members)


def platform(status: int, code: str, message: str | None, attempts: tuple[int, int]) -> Row:
    """A row of the platform's own refusal."""
    return Row(str(status), status, code, message, attempts, fault={"kind": "platform", "status": status})


OVERSIZE = {"EndpointName": "serverless", "Body": b" " * (4 * 1024 * 1024 + 1)}
ROWS = (
    model_error("container 4xx", b'{"fail": "client"}', 415, "only cats are understood"),
    model_error("container 5xx", b'{"fail": "server"}', 500, "the model broke\nTraceback"),
    model_error("time limit", b'{"sleep_s": 2.3}', 0, TIMED_OUT),
    Row("throttled", 400, "ThrottlingException", None, (3, 5), fault={"kind": "throttle"}),
    platform(429, "ModelNotReadyException", "The resources of the serverless endpoint variant are still being "
             "provisioned. Try again later.", (1, 5)),
    platform(500, "InternalFailure", "An internal failure occurred.", (3, 5)),
    platform(502, "502", "Bad Gateway", (3, 5)),
    platform(503, "ServiceUnavailable", "The service is unavailable.", (3, 5)),
    platform(504, "504", "Gateway Time-out", (3, 5)),
    platform(530, "InternalDependencyException", "Your request caused an exception with an internal dependency.",
             (1, 1)),
    platform(403, "AccessDeniedException", "User is not authorized to perform: sagemaker:InvokeEndpoint on this "
             "resource.", (1, 1)),
    Row("no such endpoint", 400, "ValidationError", "Endpoint none of account 000000000000 not found.", (1, 1),
        call={"EndpointName": "none"}),
    Row("no such variant", 400, "ValidationError", "Variant other of endpoint dedicated not found.", (1, 1),
        call={"TargetVariant": "other"}),
    Row("real-time oversize", 413, "413", "HTTP content length exceeded 6291456 bytes.", (1, 1),
        call={"Body": b" " * (6 * 1024 * 1024 + 1)}),
    Row("serverless oversize", 400, "ValidationError", "Request ID has oversize body.", (1, 1), call=OVERSIZE),
    Row("a value too long", 400, "ValidationError", f"1 validation error detected: Value '{'i' * 65}' at "
        f"'inferenceId' failed to satisfy constraint: {TOO_LONG}", (1, 1), call={"InferenceId": "i" * 65}),
)  # fmt: skip


@dataclass
class Client:
    """A runtime client that counts what it sends."""

    runtime: Any
    attempts: int = 0

    def invoke(self, **more: Any) -> Any:
        """InvokeEndpoint of `dedicated` unless told otherwise."""
        self.attempts = 0
        given = {"EndpointName": "dedicated", "Body": b"{}", "ContentType": "application/json"} | more
        return self.runtime.invoke_endpoint(**given)

    def count(self, **_: Any) -> None:
        """One more."""
        self.attempts += 1


@cache
def client_of(url: str, mode: str, read_timeout: float = 60.0) -> Client:
    """One for a retry mode; making one takes a third of a second."""
    session = boto3.Session("test", "test", region_name="us-east-1")
    config = Config(retries=MODES[mode], read_timeout=read_timeout, max_pool_connections=10)  # type: ignore[arg-type]
    made = Client(session.client("sagemaker-runtime", endpoint_url=url, config=config))
    made.runtime.meta.events.register("before-send.sagemaker-runtime", made.count)
    return made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore waits up to half a minute between attempts; not here."""
    monkeypatch.setattr("botocore.endpoint.time", types.SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def failing(emulator: Emulator) -> Callable[[Row], Any]:
    """Puts a row's fault in force."""

    def fail(row: Row) -> None:
        if row.fault:
            more = {k: v for k, v in row.fault.items() if k != "kind"}
            emulator.fault("dedicated", row.fault["kind"], **more)

    return fail


@pytest.mark.fidelity(
    "runtime errors",
    "Status, code and message of every refusal, and the members of ModelError",
    source="botocore InvokeEndpoint; aws/sagemaker-xgboost-container#390, aws/sagemaker-python-sdk#1119 and #4271, "
    "amazon-sagemaker-examples#245, opensearch-project/ml-commons#2429",
)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_forms(emulator: Emulator, failing: Callable[[Row], Any], row: Row) -> None:
    """botocore raises the row's code with its message, status and members; there is a request id, and no more."""
    failing(row)
    client = client_of(emulator.url, "once")
    with pytest.raises(ClientError) as caught:
        client.invoke(**row.call)
    response: Any = caught.value.response
    metadata = response["ResponseMetadata"]
    message = response["Error"]["Message"]
    shown = message and TRACEBACK.sub("Traceback", message).replace(metadata["RequestId"], "ID")
    assert (metadata["HTTPStatusCode"], response["Error"]["Code"], shown) == (row.status, row.code, row.message)
    members = {k: response[k] for k in ("OriginalStatusCode", "OriginalMessage", "LogStreamArn") if k in response}
    if members:
        members["OriginalMessage"] = TRACEBACK.sub("Traceback", members["OriginalMessage"])
    assert members == row.members
    headers = metadata["HTTPHeaders"]
    assert headers["x-amzn-requestid"] == metadata["RequestId"]
    assert headers["content-type"] == "application/json"
    assert headers.get("x-amzn-errortype", str(row.status)) == row.code
    assert "x-amzn-invoked-production-variant" not in headers
    assert client.attempts == 1
    if row.code in ("ModelError", "ModelNotReadyException", "ServiceUnavailable", "InternalFailure"):
        assert isinstance(caught.value, getattr(client.runtime.exceptions, row.code))


@pytest.mark.fidelity(
    "runtime errors",
    "Which errors a client repeats, and how often, follows from their wire form",
    source="botocore retry modes standard and legacy",
)
@pytest.mark.parametrize("mode", ["standard", "legacy"])
@pytest.mark.parametrize("row", [r for r in ROWS if r.name != "time limit"], ids=str)
def test_attempts(emulator: Emulator, failing: Callable[[Row], Any], patient: None, row: Row, mode: str) -> None:
    """The default client of either generation makes the attempts of the table, no more and no fewer."""
    failing(row)
    client = client_of(emulator.url, mode)
    with pytest.raises(ClientError):
        client.invoke(**row.call)
    assert client.attempts == row.attempts[mode == "legacy"]


@pytest.mark.parametrize(("mode", "attempts"), [("once", 1), ("standard", 3), ("legacy", 5)])
def test_reset(emulator: Emulator, patient: None, mode: str, attempts: int) -> None:
    """A reset connection is a ConnectionClosedError, tried again by default."""
    emulator.fault("dedicated", "reset")
    client = client_of(emulator.url, mode)
    with pytest.raises(ConnectionClosedError):
        client.invoke()
    assert client.attempts == attempts


@pytest.mark.fidelity(
    "runtime errors",
    "After a read timeout the default client sends the request again: the model runs once for each attempt",
    source="botocore retry modes; AWS: read timeout of 70 s for models of up to 60 s (botocore InvokeEndpoint)",
)
@pytest.mark.parametrize(("mode", "attempts"), [("once", 1), ("standard", 3), ("legacy", 5)])
def test_read_timeout(emulator: Emulator, patient: None, mode: str, attempts: int) -> None:
    """A client that does not wait for the model repeats itself, and all its requests reach an instance."""
    client = client_of(emulator.url, mode, 0.2)
    busy = sum(r["uses"] for r in emulator.shown("dedicated")["replicas"])
    with pytest.raises(ReadTimeoutError):
        client.invoke(Body=b'{"sleep_s": 0.4}')
    assert client.attempts == attempts
    assert sum(r["uses"] for r in emulator.shown("dedicated")["replicas"]) == busy + attempts
    eventually(lambda: emulator.shown("dedicated")["in_flight"] == 0)


@pytest.mark.fidelity(
    "serverless",
    "Exactly the requests over MaxConcurrency are throttled: HTTP 400, ThrottlingException, null message",
    source="opensearch-project/ml-commons#2429; load test of 2022: 160 clients on MaxConcurrency 150",
)
def test_serverless_throttle(emulator: Emulator) -> None:
    """Of seven at once on MaxConcurrency 2, five are throttled; a client prints None."""
    client = client_of(emulator.url, "once")

    def call(_: int) -> str | None:
        try:
            client.invoke(EndpointName="serverless", Body=b'{"sleep_s": 0.5}')
        except ClientError as error:
            return str(error)
        return None

    emulator.invoke("serverless")
    with ThreadPoolExecutor(7) as threads:
        said = [text for text in threads.map(call, range(7)) if text]
    assert len(said) == 5
    assert {text.rpartition(": ")[2] for text in said} == {"None"}
    assert all("(ThrottlingException) when calling the InvokeEndpoint operation" in text for text in said)


# Headers of what succeeds


def seen_by_model(response: Any) -> dict[str, str]:
    """The headers that reached the model."""
    headers: dict[str, str] = json.loads(response["Body"].read())["headers"]
    return headers


ALL = {
    "ContentType": "application/json",
    "Accept": "text/x-mine",
    "CustomAttributes": "trace-7",
    "InferenceId": "me-1",
    "TargetVariant": "AllTraffic",
}


@pytest.mark.fidelity(
    "runtime headers",
    "The model gets the API's headers and no others; neither Content-Type nor Accept when the caller gives none",
    source="botocore InvokeEndpoint; developer guide: your-algorithms-inference-code",
)
def test_what_reaches_the_model(emulator: Emulator) -> None:
    """All parameters under their headers; the caller's signature, agent and own headers stay outside."""
    client = client_of(emulator.url, "once")
    seen = seen_by_model(client.invoke(**ALL))
    assert {k: v for k, v in seen.items() if k not in ("content-length", "accept-encoding")} == {
        "content-type": "application/json",
        "accept": "text/x-mine",
        "x-amzn-sagemaker-custom-attributes": "trace-7",
        "x-amzn-sagemaker-inference-id": "me-1",
    }
    bare = client.runtime.invoke_endpoint(EndpointName="dedicated", Body=b"{}")
    assert not seen_by_model(bare).keys() & {"content-type", "accept", "user-agent", "authorization"}


@pytest.mark.fidelity(
    "runtime headers",
    "The answer names the variant; custom attributes come back only if the model sets them",
    source="botocore InvokeEndpointOutput",
)
def test_what_comes_back(emulator: Emulator) -> None:
    """Content type, variant, request id; the model's own attributes, or none."""
    client = client_of(emulator.url, "once")
    response = client.invoke(**ALL)
    assert response["ContentType"] == "text/x-mine"
    assert response["InvokedProductionVariant"] == "AllTraffic"
    assert response["CustomAttributes"] == "seen:trace-7"
    headers = response["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-amzn-invoked-production-variant"] == "AllTraffic"
    assert headers["x-amzn-requestid"] == response["ResponseMetadata"]["RequestId"]
    assert "CustomAttributes" not in client.invoke()


@pytest.mark.parametrize("name", ["TargetModel", "TargetContainerHostname", "SessionId", "EnableExplanations"])
def test_what_is_not_emulated_says_so(emulator: Emulator, name: str) -> None:
    """A parameter that would mean something else on AWS is refused by name, not ignored."""
    client = client_of(emulator.url, "once")
    with pytest.raises(ClientError, match=f"{name} is not emulated"):
        client.invoke(**{name: "x"})


@pytest.fixture(scope="module")
def split(running: Emulator) -> Iterator[str]:
    """An endpoint with variants `a` (weight 1) and `b` (weight 3)."""
    variants: Any = [
        {"VariantName": name, "ModelName": "model", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1,
         "InitialVariantWeight": weight}
        for name, weight in (("a", 1.0), ("b", 3.0))
    ]  # fmt: skip
    running.sagemaker.create_endpoint_config(EndpointConfigName="split", ProductionVariants=variants)
    running.endpoint("split", "split")
    assert running.settled("split")["EndpointStatus"] == "InService"
    yield "split"
    running.sagemaker.delete_endpoint(EndpointName="split")


@pytest.mark.fidelity(
    "runtime routing",
    "Variants are drawn by weight; TargetVariant overrides the weights; a weight of 0 gets nothing",
    source="botocore InvokeEndpoint TargetVariant; developer guide: model-ab-testing",
)
def test_weights(emulator: Emulator, split: str) -> None:
    """Three of four requests go to the variant with weight 3; after an update to weight 0, none."""

    def share(calls: int) -> float:
        names = [str(emulator.invoke(split)["InvokedProductionVariant"]) for _ in range(calls)]
        return names.count("a") / calls

    # Four standard deviations of a share of 0.25 in 200 are 0.12.
    assert 0.13 < share(200) < 0.37
    for name in ("a", "b"):
        assert emulator.invoke(split, TargetVariant=name)["InvokedProductionVariant"] == name
    emulator.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=split, DesiredWeightsAndCapacities=[{"VariantName": "a", "DesiredWeight": 0.0}]
    )
    emulator.settled(split)
    assert share(50) == 0
    assert emulator.invoke(split, TargetVariant="a")["InvokedProductionVariant"] == "a"


@pytest.mark.fidelity(
    "runtime routing",
    "RANDOM takes any instance, LEAST_OUTSTANDING_REQUESTS the one with the fewest requests in flight",
    source="botocore ProductionVariantRoutingConfig",
)
@pytest.mark.parametrize(("strategy", "shared"), [("RANDOM", True), ("LEAST_OUTSTANDING_REQUESTS", False)])
def test_strategies(emulator: Emulator, strategy: str, shared: bool) -> None:
    """Beside a busy instance, the other gets every request by least outstanding, and only some at random."""
    name = strategy.lower().replace("_", "-")
    variant: Any = {"VariantName": "v", "ModelName": "model", "InstanceType": "ml.m5.large", "InitialInstanceCount": 2}
    variant["RoutingConfig"] = {"RoutingStrategy": strategy}
    emulator.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    emulator.endpoint(name, name)
    assert emulator.settled(name)["EndpointStatus"] == "InService"
    try:
        with ThreadPoolExecutor(1) as threads:
            busy = threads.submit(emulator.invoke, name, b'{"sleep_s": 0.8}')
            eventually(lambda: emulator.shown(name)["in_flight"] == 1)
            # One of 16 random draws hits the busy one but for 1 run in 65,536.
            served = [json.loads(emulator.invoke(name)["Body"].read())["pid"] for _ in range(16)]
            assert (json.loads(busy.result()["Body"].read())["pid"] in served) == shared
    finally:
        emulator.sagemaker.delete_endpoint(EndpointName=name)
