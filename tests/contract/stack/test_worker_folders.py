"""Stopped environments' folders are removed by somebody else than who answers requests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ministack.core import lambda_runtime

from workbench.stack.worker_folders import remove_aside


@pytest.fixture
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambda_runtime.Worker, "_discard_tmpdir", lambda_runtime.Worker._discard_tmpdir)


def worker(folder: Path | None) -> Any:
    made: Any = lambda_runtime.Worker("echo", {"FunctionName": "echo"}, b"")
    made._tmpdir = None if folder is None else str(folder)
    return made


@pytest.mark.usefixtures("_as_it_was")
def test_a_stopped_environment_leaves_nothing(tmp_path: Path) -> None:
    """Files and folders go, though not at once; whoever never started has nothing to leave."""
    remove_aside()
    folders = [tmp_path / name for name in ("one", "-two")]
    for folder in folders:
        (folder / "code/deep").mkdir(parents=True)
        (folder / "code/deep/file.py").write_text("x = 1")
    lambda_runtime.kill_workers([*map(worker, folders), worker(None)])
    deadline = time.monotonic() + 10
    while any(folder.exists() for folder in folders):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert tmp_path.exists()


@pytest.mark.usefixtures("_as_it_was")
def test_nobody_waits_for_it(tmp_path: Path) -> None:
    """The removal is handed over, and the environment has forgotten the folder: a new start gets another."""
    handed: list[Any] = []

    class Later:
        def submit(self, *work: Any, **_: Any) -> None:
            handed.append(work[1])

    remove_aside(Later())  # type: ignore[arg-type]  # only `submit` is asked for
    stopped = worker(tmp_path)
    lambda_runtime.kill_workers([stopped])
    assert handed == [["rm", "-rf", "--", str(tmp_path)]]
    assert tmp_path.exists()
    assert stopped._tmpdir is None
