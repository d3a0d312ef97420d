"""Offline commands speak to an emulated cloud and to nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from workbench.stack.cloud import Cloud, current, offline_environment
from workbench.stack.layout import Layout, ProcessRecord, StackRecord
from workbench.stack.processes import StackError, find, listen


def test_no_identity_of_a_real_account_is_inherited() -> None:
    """Profiles, keys, tokens and endpoints of the caller's shell never reach the stack's processes."""
    shell = {
        "AWS_PROFILE": "prod",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_ENDPOINT_URL_S3": "https://s3.example",
        "AWS_CA_BUNDLE": "/ca.pem",
        "PATH": "/bin",
        "LOCALSTACK_HOST": "elsewhere:1",
    }
    env = offline_environment("http://127.0.0.1:4566", shell)
    assert env["AWS_ACCESS_KEY_ID"] == "test"
    assert env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert env["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "LOCALSTACK_HOST"}.isdisjoint(env)
    assert env["AWS_CA_BUNDLE"] == "/ca.pem"
    assert env["PATH"] == "/bin"


def test_a_client_is_of_its_own_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other endpoint the environment names, in general or for the service."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "http://127.0.0.1:2")
    client = Cloud("http://127.0.0.1:4567", "").client("sagemaker")
    assert client.meta.endpoint_url == "http://127.0.0.1:4567"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    for name in ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST"):
        monkeypatch.delenv(name, raising=False)
    made = Layout(tmp_path / "state")
    made.create()
    return made


def record(*processes: ProcessRecord) -> StackRecord:
    return StackRecord("cloud-1", "http://127.0.0.1:4566", "http://127.0.0.1:5000", processes)


def myself() -> ProcessRecord:
    return ProcessRecord("me", os.getpid(), psutil.Process().create_time())


def test_without_a_stack_the_way_out_is_told(layout: Layout) -> None:
    """Nothing running and nothing named: one line that says `inferlane up`."""
    with pytest.raises(StackError, match="not running: start it with `inferlane up`"):
        current(layout)


def test_a_running_stack_is_found_again(layout: Layout) -> None:
    """What was recorded is read back whole, and is the cloud to speak to while its processes live."""
    layout.write_record(record(myself()))
    assert layout.read_record() == record(myself())
    assert current(layout).cloud_id == "cloud-1"


def test_a_broken_stack_is_named(layout: Layout) -> None:
    """A record whose process died is an error that names the process."""
    layout.write_record(record(myself(), ProcessRecord("gateway", 2**22 - 1, 0.0)))
    with pytest.raises(StackError, match=r"broken \(gateway died\)"):
        current(layout)


def test_a_reused_pid_is_not_ours() -> None:
    """A live pid with another start time is somebody else's process: never found, so never signalled."""
    assert find(myself()) is not None
    assert find(ProcessRecord("old", os.getpid(), psutil.Process().create_time() - 100)) is None


def test_another_endpoint_can_be_named(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual variables of LocalStack's client choose the endpoint."""
    monkeypatch.setenv("LOCALSTACK_HOST", "127.0.0.1:4999")
    assert current(layout).endpoint_url == "http://127.0.0.1:4999"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:5999")
    assert current(layout).endpoint_url == "http://127.0.0.1:5999"


@pytest.mark.parametrize("text", ["", "{", '{"schema": "other"}', '{"schema": "inferlane/stack/v1", "x": 1}', "[]"])
def test_an_unreadable_record_counts_as_none(layout: Layout, text: str) -> None:
    """A record that was cut off or is of another version says nothing, and breaks nothing."""
    layout.record_file.write_text(text)
    assert layout.read_record() is None


def test_a_used_port_names_the_way_out() -> None:
    """A port that somebody listens on is refused before anything starts, with --port as the way out."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=rf"port {port} is in use.*--port"):
            listen("127.0.0.1", port)


def test_a_ctrl_c_waits_until_the_started_process_is_written_down() -> None:
    """An interrupt inside the block is raised after it, never between starting a process and recording it."""
    import signal

    from workbench.stack.processes import interrupts_deferred

    # A test run in the background of a shell inherits an ignored SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    written: list[str] = []

    def start() -> None:
        with interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
            written.append("pid")

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        signal.signal(signal.SIGINT, before)
    assert written == ["pid"]
