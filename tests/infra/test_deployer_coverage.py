"""Every stack of the Pulumi program is within what the deployer can do."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from workbench.stack.deployer import functions, program
from workbench.stack.deployer.capture import Capture, PaperCloud, problems
from workbench.stack.deployer.monitor import EngineMonitor
from workbench.stack.deployer.table import ROWS

ROOT = Path(__file__).parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


def captured(stack: str, project: Path) -> tuple[int, list[str]]:
    """How many resources the stack's program registers, and what the deployer could not do with them.

    Runs in a process of its own: Pulumi's runtime is global, and `infra` must be the copy in the project folder.
    """
    sys.path.insert(0, str(project))
    wanted = program.load(project, stack, {})
    cloud = PaperCloud(wanted.region)
    capture = Capture(ROWS)
    program.run(wanted, EngineMonitor(capture, partial(functions.call, cloud), cloud.region), preview=False)
    return len(capture.goals), problems(capture.goals, ROWS, cloud)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the program whose models have small artifacts, so that none has to be built first."""
    for folder in ("infra", "functions", "policies"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.glob("Pulumi*.yaml"):
        shutil.copy(file, tmp_path)
    for stack in STACKS:
        for model in yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]["inferlane:models"].values():
            artifact = tmp_path / model["package"] / "build" / "model.tar.gz"
            artifact.parent.mkdir(parents=True, exist_ok=True)
            artifact.write_bytes(b"not a model")
    return tmp_path


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_has_a_row_that_takes_its_inputs(stack: str, project: Path) -> None:
    """Each resource of the stack has a row, and its inputs become parameters that botocore accepts."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        count, found = processes.submit(captured, stack, project).result()

    assert found == []
    assert count > 0


def test_there_are_stacks() -> None:
    """The local and the growth stack exist."""
    assert {"local", "growth"} <= set(STACKS)
