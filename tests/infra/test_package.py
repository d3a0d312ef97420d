"""The deployment package: what is in it, how large it is, and that it runs by itself."""

from __future__ import annotations

import io
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from infra import package

FILES = package.package_files()
ISOLATED = """
import importlib, importlib.machinery, sys
site, *modules = sys.argv[1:]
brought = {"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"}

class Runtime:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in brought:
            return importlib.machinery.PathFinder.find_spec(name, path or [site])

sys.meta_path.append(Runtime)
for module in modules:
    file = importlib.import_module(module).__file__
    assert file.startswith(sys.path[0]), file
"""
"""Imports modules with nothing on the path but the package, and what the Lambda runtime brings from `site`."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's files as they lie in `/var/task`."""
    root = tmp_path_factory.mktemp("task")
    for name, source in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(source.read_bytes())
    return root


def test_the_package_holds_sources_only() -> None:
    """Our functions, Powertools and the typing module it needs: no byte code, no hidden files, nothing else."""
    roots = {name.split("/")[0] for name in FILES}

    assert roots == {"functions", "aws_lambda_powertools", "typing_extensions.py"}
    assert not [name for name in FILES if "__pycache__" in name or name.endswith((".pyc", ".so")) or "/." in name]
    assert {"functions/handlers/route.py", "functions/handlers/authorize.py"} <= FILES.keys()


def test_the_order_is_fixed() -> None:
    """Files come sorted by their path in the archive, so equal contents make equal archives."""
    assert list(FILES) == sorted(FILES)
    assert list(package.archive("{}").assets) == sorted([*FILES, "topology.json"])


def test_the_package_is_small() -> None:
    """Zipped, it stays within 1.5 MB."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in FILES.items():
            archive.writestr(name, source.read_bytes())

    assert len(zipped.getvalue()) <= package.MAX_ZIP_BYTES


def test_the_package_runs_by_itself(unpacked: Path) -> None:
    """Every module of ours imports from the package, the runtime's own libraries and an empty environment."""
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in FILES
        if name.startswith("functions/") and name.endswith(".py")
    ]
    run = subprocess.run(
        [sys.executable, "-S", "-c", ISOLATED, sysconfig.get_paths()["purelib"], *modules],
        env={"PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=unpacked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stderr
