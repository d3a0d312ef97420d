"""Loads the sample models' files from where they lie: their folders are no packages."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

MODELS = Path(__file__).resolve().parents[3] / "models"
FOLDER, HEAVY = MODELS / "moderation-light", MODELS / "moderation-heavy"
CONTRACT = MODELS / "contract"
for folder in (MODELS, CONTRACT, HEAVY):  # what a build puts on the path, and what an archive has beside inference.py
    sys.path.append(str(folder))


def load_inference(path: Path, name: str) -> ModuleType:
    """Import an inference.py from its path, as a model server does."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def inference() -> ModuleType:
    return load_inference(FOLDER / "code" / "inference.py", "moderation_light_served")


@pytest.fixture(scope="session")
def step() -> Callable[[str], ModuleType]:
    """Return a module that the builds share by name."""
    return lambda name: importlib.import_module(f"building.{name}")


@pytest.fixture(scope="session")
def artifact() -> Path:
    """moderation-light's archive."""
    return built(FOLDER)


@pytest.fixture(scope="session")
def model_dir(artifact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """moderation-light's archive as SageMaker lays it under /opt/ml/model."""
    return unpacked(artifact, tmp_path_factory.mktemp("light"))


@pytest.fixture(scope="session")
def heavy_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """moderation-heavy's archive as SageMaker lays it under /opt/ml/model."""
    return unpacked(built(HEAVY), tmp_path_factory.mktemp("heavy"))


def built(folder: Path) -> Path:
    """A model's archive; `make setup` has built it already, a bare pytest run builds it here."""
    path = folder / "build" / "model.tar.gz"
    if not path.exists():
        subprocess.run([sys.executable, str(folder / "build.py")], check=True)
    return path


def unpacked(archive: Path, folder: Path) -> Path:
    """The folder, with the archive's files in it."""
    importlib.import_module("building.archive").unpack(archive, folder)
    return folder
