"""A MiniStack on a free port, a fake SageMaker beside it, and the deployer as a process, as the CLI runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from localstack_client.session import Session

from tests.contract.deployer.fake_sagemaker import FakeSageMaker, serve

SAMPLE = Path(__file__).parent / "sample"
START_LIMIT_S = 30.0


@dataclass(frozen=True)
class Ended:
    """How a deployer process ended."""

    code: int
    events: list[dict[str, Any]]
    errors: str

    @property
    def result(self) -> dict[str, Any]:
        assert self.events, self.errors
        assert self.events[-1]["event"] == "result", self.events[-1]
        return self.events[-1]

    @property
    def message(self) -> str:
        assert self.events[-1]["event"] == "error", self.events[-1]
        return str(self.events[-1]["message"])

    def actions(self) -> dict[str, str]:
        """Resource name -> what was done, all but `same`."""
        done = [event for event in self.events if event["event"] == "resource" and event["action"] != "same"]
        return {event["name"]: event["action"] for event in done}

    def notices(self) -> list[str]:
        return [event["message"] for event in self.events if event["event"] == "notice"]


@dataclass
class Project:
    """A project folder with one stack, on a cloud of its own SageMaker."""

    folder: Path
    stack: str
    endpoint: str
    sagemaker: FakeSageMaker
    sagemaker_url: str

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    def state(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.state_file.read_text())
        return document

    def command(self, action: str, *options: str) -> list[str]:
        where = ["--project-dir", str(self.folder), "--state", str(self.state_file), "--json-events"]
        return [sys.executable, "-m", "workbench.stack.deployer", action, "--stack", self.stack, *where, *options]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            **kept,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_SAGEMAKER": self.sagemaker_url,
            "AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING": self.sagemaker_url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def start(self, action: str, *more: str, **settings: str) -> subprocess.Popen[str]:
        options = [*more, *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))]
        return subprocess.Popen(
            self.command(action, *options),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, action: str, *more: str, **settings: str) -> Ended:
        """Runs the deployer to its end, with these options and config values."""
        return ended(self.start(action, *more, **settings))

    def client(self, service: str) -> Any:
        return Session(
            aws_access_key_id="test",
            aws_secret_access_key="test",
            aws_session_token=None,
            localstack_host=self.endpoint.removeprefix("http://"),
        ).client(service)


def ended(process: subprocess.Popen[str]) -> Ended:
    out, errors = process.communicate(timeout=100)
    return Ended(process.returncode, [json.loads(line) for line in out.splitlines() if line.startswith("{")], errors)


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MiniStack of the session's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("ministack")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "MINISTACK_VERSION": "1.5.33",
        "TMPDIR": str(folder),
    }
    command = [sys.executable, "-m", "hypercorn", "ministack.app:app", "--bind", f"127.0.0.1:{port}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(f"http://127.0.0.1:{port}/_localstack/health", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


@pytest.fixture
def project(ministack: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    """The sample with a stack named after the test."""
    yield from project_of(SAMPLE, ministack, tmp_path, request.node.name)


def project_of(sample: Path, cloud: str, tmp_path: Path, test: str) -> Iterator[Project]:
    """A copy of a sample with a stack named after the test; what it left is destroyed afterwards."""
    folder = tmp_path / "project"
    shutil.copytree(sample, folder)
    stack = test.removeprefix("test_").replace("_", "-")[:24].strip("-")
    (folder / f"Pulumi.{stack}.yaml").write_text("config:\n  aws:region: us-east-1\n")
    fake = FakeSageMaker()
    server = serve(fake)
    made = Project(folder, stack, cloud, fake, f"http://127.0.0.1:{server.server_address[1]}")
    yield made
    if made.state_file.exists() and made.state()["resources"]:
        assert made.run("destroy").code == 0
    server.shutdown()
    server.server_close()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
