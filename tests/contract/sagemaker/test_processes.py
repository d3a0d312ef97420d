"""Processes: nothing outlives the server, however it ends, and its start says what is wrong."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.contract.sagemaker.emulator import Aws, Emulator, eventually


def busy(folder: Path, aws: Aws) -> tuple[Emulator, list[psutil.Process]]:
    """An emulator with an instance, a container and a CPU burner, and those processes."""
    emulator = Emulator.start(folder / "state", aws.url)
    emulator.model("model")
    emulator.endpoint("dedicated", emulator.config("dedicated", "model"))
    emulator.endpoint("serverless", emulator.config("serverless", "model", serverless=1))
    for name in ("dedicated", "serverless"):
        emulator.settled(name)
    emulator.invoke("serverless")
    emulator.fault("dedicated", "stress", cores=0.2)
    eventually(lambda: len(emulator.children()) == 3)
    return emulator, emulator.children()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_no_process_outlives_the_server(aws: Aws, tmp_path: Path, number: signal.Signals, status: int) -> None:
    """Asked to end or killed outright, the server takes its model processes and burners with it."""
    emulator, children = busy(tmp_path, aws)
    assert emulator.stop(number) == status
    gone, alive = psutil.wait_procs(children, timeout=5)
    assert (len(gone), alive) == (3, [])


def test_port_in_use(tmp_path: Path) -> None:
    """A used port is one line that says so, and exit status 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = subprocess.run(
            [sys.executable, "-m", "workbench.stack.sagemaker", "--port", str(port), "--state-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr == f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port\n"


def test_without_cloudwatch(aws: Aws, tmp_path: Path) -> None:
    """When metrics cannot be published the server goes on serving, and says so once."""
    nowhere = {"AWS_ENDPOINT_URL_CLOUDWATCH": "http://127.0.0.1:9"}
    emulator = Emulator.start(tmp_path / "state", aws.url, "--metric-period", "1", "--metric-lag", "0", **nowhere)
    try:
        emulator.endpoint("dedicated", emulator.config("dedicated", emulator.model("model")))
        emulator.settled("dedicated")
        log = tmp_path / "state.log"
        eventually(lambda: "metrics cannot be published" in log.read_text())
        emulator.invoke("dedicated")
        assert log.read_text().count("metrics cannot be published") == 1
    finally:
        assert emulator.stop() == 0
