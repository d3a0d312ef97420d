"""The `sagemaker` SDK, versions 2 and 3, unmodified, each a script in an environment and process of its own.

The scripts (`clients/`) use the SDKs as their documentation does and print what each step gave; AWS's standard
variables point them at the offline host. What the SDKs get wrong on their own side is asserted too, so that the script
loses its detour when they mend it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.environments import ENVIRONMENTS
from tests.contract.sagemaker.emulator import archive
from workbench.stack.cloud import Cloud

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]
CLIENTS = Path(__file__).parent / "clients"
TIMEOUT_S = 600.0
SUMS = {"sums": [6, 6]}
"""What the clients' model (factor 2) makes of the rows they send: [1, 2] and [3]."""


@dataclass(frozen=True, slots=True)
class Client:
    """A running script; it logs where pytest shows it after a failure."""

    process: subprocess.Popen[str]
    log: Path

    def results(self) -> Mapping[str, Any]:
        """What it printed in the end."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0, self.log.read_text()[-4000:]
        results: Mapping[str, Any] = json.loads(output.splitlines()[-1])
        return results


@pytest.fixture(scope="module")
def clients(host: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """Every SDK that is installed, at work: they wait for the cloud more than they compute, so they wait together."""
    folder = tmp_path_factory.mktemp("sdk")
    model = folder / "model.tar.gz"
    code = (CLIENTS / "model/inference.py").read_bytes()
    model.write_bytes(archive({"code/inference.py": code, "factor.json": b'{"factor": 2}'}))
    environment = host.environment() | {"SAGEMAKER_USER_CONFIG_OVERRIDE": str(CLIENTS / "sdk-defaults.yaml")}
    running = {}
    for name, each in ENVIRONMENTS.items():
        if each.missing() is None:
            log = folder / f"{name}.log"
            command = [str(each.python), "-I", str(CLIENTS / f"{name}.py"), str(model)]
            running[name] = Client(_start(command, environment, folder, log), log)
    yield running
    for client in running.values():
        if client.process.poll() is None:
            client.process.kill()
            client.process.wait()


def _start(command: list[str], environment: Mapping[str, str], folder: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("wb") as errors:
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)


def _results(clients: Mapping[str, Client], name: str) -> Mapping[str, Any]:
    if reason := ENVIRONMENTS[name].missing():
        pytest.skip(reason)
    return clients[name].results()


@pytest.mark.fidelity(
    "clients",
    "The sagemaker SDK 3's resources create, wait for, invoke, update, list and delete endpoints and transform jobs",
    source="aws/sagemaker-python-sdk 3.27.0, sagemaker.core.resources",
)
def test_sagemaker_3(clients: dict[str, Client]) -> None:
    """Model, EndpointConfig, Endpoint (serverless, real-time, asynchronous) and TransformJob do what they promise."""
    results = _results(clients, "v3")
    assert results["version"] == ENVIRONMENTS["v3"].requirement.partition("==")[2]
    serverless, real_time, transform = results["serverless"], results["real_time"], results["transform"]
    assert 'Unknown parameter in ProductionVariants[0].ServerlessConfig: "MemorySizeInMb"' in serverless["own_fault"]
    assert (serverless["memory_mb"], serverless["answer"]) == (1024, SUMS)
    assert real_time["own_fault"] == "'EventStream' object has no attribute 'get'"
    assert real_time["answer"] == SUMS
    assert real_time["refused"] == {"code": "ModelError", "status": 400}
    assert real_time["updated"] == ["sdk-3-two", 2]
    assert real_time["endpoints"] == ["sdk-3-real-time"]
    assert real_time["configs"] == ["sdk-3-one", "sdk-3-two"]
    assert results["async"] == {"answer": SUMS}
    assert (transform["status"], transform["output"]) == ("Completed", "6\n14\n22\n")
    assert "Final Resource State: Failed. Failure Reason: ClientError: " in transform["failed"]
    assert transform["jobs"] == ["sdk-3-bad", "sdk-3-good"]
    assert results["left"] == {"models": 0, "configs": 0, "endpoints": 0}


@pytest.mark.fidelity(
    "clients",
    "The sagemaker SDK 2 deploys serverless, real-time and asynchronous endpoints, predicts, streams and transforms",
    source="aws/sagemaker-python-sdk 2.257.7, Model, Predictor, AsyncPredictor, Transformer",
)
def test_sagemaker_2(clients: dict[str, Client]) -> None:
    """Model.deploy in its three forms, Predictor, streams, updates and Transformer do what they promise."""
    results = _results(clients, "v2")
    assert results["version"] == ENVIRONMENTS["v2"].requirement.partition("==")[2]
    real_time, transform = results["real_time"], results["transform"]
    assert results["serverless"] == {"answer": SUMS}
    assert real_time["answer"] == real_time["after"] == SUMS
    assert real_time["csv"] == [["6"], ["14"]]
    assert real_time["refused"] == {"code": "ModelError", "status": 400}
    assert json.loads(real_time["stream"]) == SUMS
    assert real_time["updated"] == ["InService", 2]
    assert results["async"] == {"answer": SUMS}
    assert transform == {"output": "6\n14\n22\n", "attached": ["sdk-2-transform", "MultiRecord"], "failed": "Failed"}
    # update_endpoint makes a second configuration, and delete_endpoint takes away only the one in use.
    assert results["left"] == {"models": 0, "configs": 1}
