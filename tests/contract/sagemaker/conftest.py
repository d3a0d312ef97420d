"""One MiniStack and one emulator for the whole suite, with a dedicated and a serverless endpoint in service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.sagemaker.emulator import Aws, Emulator

# Fast clocks: one-second bins, short limits.
OPTIONS = (
    "--metric-period", "1", "--metric-lag", "0.3", "--serverless-idle", "1.5",
    "--ping-interval", "0.3", "--ping-timeout", "0.6", "--invocation-timeout", "2",
    "--stream-timeout", "1.2", "--startup-timeout", "6",
)  # fmt: skip


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """S3 and CloudWatch."""
    aws = Aws.start(tmp_path_factory.mktemp("ministack"))
    yield aws
    aws.process.terminate()
    aws.process.wait(timeout=20)


@pytest.fixture(scope="session")
def running(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The emulator with endpoints `dedicated` (two instances) and `serverless` (MaxConcurrency 2)."""
    emulator = Emulator.start(tmp_path_factory.mktemp("sagemaker") / "state", aws.url, *OPTIONS)
    emulator.model("model", FLAVOR="vanilla")
    emulator.endpoint("dedicated", emulator.config("dedicated", "model", instances=2))
    emulator.endpoint("serverless", emulator.config("serverless", "model", serverless=2))
    for name in ("dedicated", "serverless"):
        assert emulator.settled(name)["EndpointStatus"] == "InService"
    yield emulator
    emulator.stop()


@pytest.fixture
def emulator(running: Emulator) -> Iterator[Emulator]:
    """The running emulator; a test's faults end with it."""
    yield running
    running.admin("DELETE", "/faults")
    for name in ("dedicated", "serverless"):
        assert running.settled(name)["EndpointStatus"] == "InService"
