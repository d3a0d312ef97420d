"""Faults: each breaks what it says, is listed, and is gone when cleared."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.contract.sagemaker.emulator import HTTP, Aws, Emulator, eventually
from tests.contract.sagemaker.test_metrics import HARDWARE, INFERENCE, points
from workbench.stack.sagemaker.api.wire import PLATFORM_ERRORS


def code_of(emulator: Emulator, endpoint: str) -> str:
    """The error code of one request, or OK."""
    try:
        emulator.invoke(endpoint)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "OK"


@pytest.mark.fidelity(
    "containers",
    "While no instance is in service, requests are refused with ServiceUnavailable (503); the endpoint stays InService",
    source="botocore: InvokeEndpoint ServiceUnavailable",
)
@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_kill_holds_down_until_cleared(emulator: Emulator, endpoint: str) -> None:
    """Killed means 503 ServiceUnavailable at once and for as long as the fault lasts; cleared means served again."""
    emulator.invoke(endpoint)
    fault = emulator.fault(endpoint, "kill")
    began = time.monotonic()
    with pytest.raises(ClientError) as caught:
        emulator.invoke(endpoint)
    assert time.monotonic() - began < 1
    assert caught.value.response["Error"]["Code"] == "ServiceUnavailable"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    time.sleep(0.7)
    assert code_of(emulator, endpoint) == "ServiceUnavailable"
    assert emulator.sagemaker.describe_endpoint(EndpointName=endpoint)["EndpointStatus"] == "InService"
    assert [f["id"] for f in emulator.admin("GET", "/faults")["faults"]] == [fault]
    emulator.admin("DELETE", f"/faults/{fault}")
    eventually(lambda: code_of(emulator, endpoint) == "OK")


@pytest.mark.fidelity(
    "containers",
    "An instance that dies is replaced, the others serve meanwhile",
    source="developer guide: realtime-endpoints-test-endpoints; deploy-model (instance health)",
)
def test_a_dead_instance_is_replaced(emulator: Emulator) -> None:
    """An instance that dies by itself is replaced; the others serve meanwhile."""
    victim = emulator.shown("dedicated")["replicas"][0]["pid"]
    os.kill(victim, signal.SIGKILL)
    time.sleep(0.1)
    assert code_of(emulator, "dedicated") == "OK"

    def replaced() -> bool:
        replicas = emulator.shown("dedicated")["replicas"]
        return len(replicas) == 2 and victim not in {r["pid"] for r in replicas}

    eventually(replaced)


def test_an_instance_that_stops_answering_pings_is_replaced(emulator: Emulator) -> None:
    """A frozen process misses its pings and is replaced."""
    victim = emulator.shown("dedicated")["replicas"][0]["pid"]
    os.kill(victim, signal.SIGSTOP)
    eventually(lambda: victim not in {r["pid"] for r in emulator.shown("dedicated")["replicas"]}, 15)
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2)


@pytest.mark.fidelity(
    "runtime errors",
    "A container that does not answer within the time limit is a ModelError with status 0",
    source="developer guide: your-algorithms-inference-code (60 s); aws/sagemaker-python-sdk#1119",
)
def test_hang(emulator: Emulator) -> None:
    """A hanging endpoint accepts and never answers: the request ends with the time limit."""
    emulator.fault("dedicated", "hang")
    began = time.monotonic()
    assert code_of(emulator, "dedicated") == "ModelError"
    assert 1.8 < time.monotonic() - began < 3


@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_the_end_of_a_hang_breaks_off_what_it_holds(emulator: Emulator, endpoint: str) -> None:
    """Cleared, a hang leaves nothing behind: held requests fail then, and hold no slot until their time limit."""
    emulator.invoke(endpoint)
    fault = emulator.fault(endpoint, "hang")
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(code_of, emulator, endpoint)
        eventually(lambda: emulator.shown(endpoint)["in_flight"] == 1)
        began = time.monotonic()
        emulator.admin("DELETE", f"/faults/{fault}")
        assert held.result() == "ModelError"
    assert time.monotonic() - began < 1
    assert emulator.shown(endpoint)["in_flight"] == 0
    assert code_of(emulator, endpoint) == "OK"


def test_slow(emulator: Emulator) -> None:
    """A slow endpoint answers later, by the milliseconds asked for; the fault can end by itself."""
    emulator.fault("dedicated", "slow", ms=300, seconds=1)
    began = time.monotonic()
    assert code_of(emulator, "dedicated") == "OK"
    assert time.monotonic() - began > 0.3
    eventually(lambda: not emulator.admin("GET", "/faults")["faults"], 3)


def test_throttle_and_errors(emulator: Emulator) -> None:
    """Throttling and container errors have their usual forms."""
    throttle = emulator.fault("dedicated", "throttle")
    assert code_of(emulator, "dedicated") == "ThrottlingException"
    emulator.admin("DELETE", f"/faults/{throttle}")
    emulator.fault("dedicated", "errors", percent=100, status=507)
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated")
    assert caught.value.response["OriginalStatusCode"] == 507  # type: ignore[typeddict-item]


@pytest.mark.fidelity(
    "runtime errors",
    "The platform's own refusals have botocore's codes and statuses and no OriginalStatusCode",
    source="botocore: sagemaker-runtime errors of InvokeEndpoint",
)
@pytest.mark.parametrize("status", sorted(PLATFORM_ERRORS))
@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_platform(emulator: Emulator, endpoint: str, status: int) -> None:
    """SageMaker's own refusals have their code, their status and no container behind them."""
    emulator.fault(endpoint, "platform", status=status)
    with pytest.raises(ClientError) as caught:
        emulator.invoke(endpoint)
    response = caught.value.response
    assert response["Error"]["Code"] == PLATFORM_ERRORS[status][0]
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert "OriginalStatusCode" not in response


@pytest.mark.fidelity(
    "runtime errors",
    "A caller without sagemaker:InvokeEndpoint gets AccessDeniedException (403), with action and resource",
    source="IAM user guide: troubleshooting access denied messages",
)
@pytest.mark.parametrize("endpoint", ["dedicated", "serverless"])
def test_deny(emulator: Emulator, endpoint: str) -> None:
    """Denied is IAM's own refusal, with the action and the endpoint's ARN, and no container behind it."""
    emulator.fault(endpoint, "deny")
    with pytest.raises(ClientError) as caught:
        emulator.invoke(endpoint)
    error, meta = caught.value.response["Error"], caught.value.response["ResponseMetadata"]
    assert (error["Code"], meta["HTTPStatusCode"]) == ("AccessDeniedException", 403)
    arn = f"arn:aws:sagemaker:us-east-1:000000000000:endpoint/{endpoint}"
    assert f"not authorized to perform: sagemaker:InvokeEndpoint on resource: {arn}" in error["Message"]


@pytest.mark.fidelity(
    "containers",
    "An instance whose /ping fails is replaced; one that never answers it does not come into service",
    source="developer guide: your-algorithms-inference-code (health checks); aws/sagemaker-python-sdk#1554",
)
def test_failing_pings(emulator: Emulator) -> None:
    """What runs is given up, what is started does not become healthy; cleared, all is well."""
    before = {r["pid"] for r in emulator.shown("dedicated")["replicas"]}
    fault = emulator.fault("dedicated", "ping")
    eventually(lambda: code_of(emulator, "dedicated") == "ServiceUnavailable")
    eventually(lambda: emulator.shown("dedicated")["replicas"] == [])
    emulator.admin("DELETE", f"/faults/{fault}")
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2, 15)
    assert not before & {r["pid"] for r in emulator.shown("dedicated")["replicas"]}
    assert code_of(emulator, "dedicated") == "OK"


@pytest.mark.fidelity(
    "containers",
    "A container that dies in the middle of a request is a ModelError with status 0 and the service's advice on "
    "memory; it counts as a model error and is replaced",
    source="aws/amazon-sagemaker-examples#2815, #3089",
)
def test_out_of_memory(emulator: Emulator, aws: Aws) -> None:
    """The process is killed for real; the caller sees why in SageMaker's words, CloudWatch a model error."""
    before = {r["pid"] for r in emulator.shown("dedicated")["replicas"]}
    fault = emulator.fault("dedicated", "memory")
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated")
    response: Any = caught.value.response
    assert (response["Error"]["Code"], response["OriginalStatusCode"]) == ("ModelError", 0)
    assert response["OriginalMessage"].startswith("Amazon SageMaker could not get a response from the dedicated")
    eventually(lambda: len(before & {r["pid"] for r in emulator.shown("dedicated")["replicas"]}) == 1)
    emulator.admin("DELETE", f"/faults/{fault}")
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2)
    assert code_of(emulator, "dedicated") == "OK"
    eventually(lambda: 1.0 in points(aws, "dedicated", INFERENCE, "InvocationModelErrors", "Maximum", "None"))


def test_out_of_memory_now_and_then(emulator: Emulator) -> None:
    """A share of none is nobody."""
    emulator.fault("dedicated", "memory", percent=0)
    assert {code_of(emulator, "dedicated") for _ in range(5)} == {"OK"}


@pytest.mark.fidelity(
    "containers",
    "A full disk fails what the model writes, and keeps new instances from extracting their model data",
    source="FACTS: aws/sagemaker-python-sdk#4665; triton-inference-server/server#5869",
)
def test_full_disk(emulator: Emulator, aws: Aws, tmp_path: Path) -> None:
    """Writing gives ENOSPC in model code, reading goes on, DiskUtilization is 100 %, no further instance starts."""
    body = json.dumps({"write": str(tmp_path / "cache")}).encode()
    emulator.invoke("dedicated", body)
    fault = emulator.fault("dedicated", "disk")
    with pytest.raises(ClientError) as caught:
        emulator.invoke("dedicated", body)
    response: Any = caught.value.response
    assert response["OriginalStatusCode"] == 500
    assert "[Errno 28] No space left on device" in response["OriginalMessage"]
    assert code_of(emulator, "dedicated") == "OK"
    os.kill(emulator.shown("dedicated")["replicas"][0]["pid"], signal.SIGKILL)
    eventually(lambda: points(aws, "dedicated", HARDWARE, "DiskUtilization", "Minimum", "Percent")[-1:] == [100.0])
    assert len(emulator.shown("dedicated")["replicas"]) == 1
    emulator.admin("DELETE", f"/faults/{fault}")
    eventually(lambda: len(emulator.shown("dedicated")["replicas"]) == 2, 15)
    emulator.invoke("dedicated", body)


def test_reset(emulator: Emulator) -> None:
    """A reset connection is a broken one for the caller, and the next request after the fault is served."""
    fault = emulator.fault("dedicated", "reset")
    with pytest.raises(ConnectionClosedError):
        emulator.invoke("dedicated")
    emulator.admin("DELETE", f"/faults/{fault}")
    assert code_of(emulator, "dedicated") == "OK"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"endpoint": "none", "kind": "kill"}, 404, "there is no endpoint 'none'"),
        ({"endpoint": "dedicated", "kind": "flood"}, 400, "kind must be one of kill, hang"),
        ({"endpoint": "dedicated", "kind": "kill", "variant": "B"}, 404, "has no variant 'B'; it has AllTraffic"),
        ({"endpoint": "dedicated", "kind": "slow"}, 400, "slow needs ms or factor"),
    ],
)
def test_bad_requests(emulator: Emulator, body: dict[str, str], status: int, message: str) -> None:
    """A fault that makes no sense is refused with the reason, and is not in force."""
    response = HTTP.request("POST", f"{emulator.url}/_inferlane/faults", json=body)
    assert response.status == status
    assert message in response.json()["message"]
    assert emulator.admin("GET", "/faults")["faults"] == []
