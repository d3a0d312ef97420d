"""What ships to Lambda: our functions, Powertools, and the stack's topology.

The archive is built from sorted file lists, never from folders, so a `__pycache__` neither ships nor changes its hash.
The Lambda runtime brings boto3, botocore and urllib3; Powertools and the typing module it imports are pure Python and
are taken from the environment that runs this program, which the lock file pins. Powertools ships whole: that is under
half of the 1.5 MB the archive may have.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pulumi

import functions
from functions.settings import TOPOLOGY_FILE

RUNTIME = "python3.13"
ARCHITECTURE = "arm64"
MAX_ZIP_BYTES = 1_500_000
"""The archive's budget: what is larger starts later."""

_VENDORED = {"aws-lambda-powertools": "aws_lambda_powertools", "typing-extensions": "typing_extensions.py"}
"""Distribution and what of it to take. All files are pure Python: the archive runs on any architecture."""


def package_files() -> dict[str, Path]:
    """Path in the archive -> file on disk, sorted by path; all but the topology."""
    return dict(sorted({**_own_files(), **_vendored_files()}.items()))


def archive(topology: str | None = None) -> pulumi.AssetArchive:
    """The deployment package, with this topology document in it for a function that reads one."""
    assets: dict[str, pulumi.Asset | pulumi.Archive] = {
        name: pulumi.FileAsset(str(path)) for name, path in package_files().items()
    }
    if topology is not None:
        assets[TOPOLOGY_FILE] = pulumi.StringAsset(topology)
    return pulumi.AssetArchive(dict(sorted(assets.items())))


def _own_files() -> dict[str, Path]:
    root = Path(functions.__file__).parent
    return {
        f"functions/{path.relative_to(root).as_posix()}": path
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not any(part.startswith(".") for part in path.parts[-2:])
    }


def _vendored_files() -> dict[str, Path]:
    files: dict[str, Path] = {}
    for distribution, root in _VENDORED.items():
        for file in importlib.metadata.files(distribution) or ():
            name = file.as_posix()
            if (name == root or name.startswith(f"{root}/")) and name.endswith(".py"):
                files[name] = Path(str(file.locate()))
    return files
