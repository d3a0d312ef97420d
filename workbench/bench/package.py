"""How large the Lambda package is: the files the Pulumi program ships, zipped as the engine zips an archive (deflate).

The program's list is asked for in a process of its own, as the deployer runs the program: nothing in the workbench
imports `infra`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from functions.settings import TOPOLOGY_FILE
from workbench.bench import scene
from workbench.stack.layout import project_root

LIST: Final = (
    "import json, sys\n"
    "from infra.package import package_files\n"
    "json.dump({name: str(path) for name, path in package_files().items()}, sys.stdout)"
)


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """Bytes and files, ours and in all."""
    listed = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", LIST], cwd=project_root(), check=True, capture_output=True, text=True
    )
    step()
    files = {name: Path(path) for name, path in json.loads(listed.stdout).items()}
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, path in files.items():
            zipped.write(path, name)
        zipped.writestr(TOPOLOGY_FILE, json.dumps(scene.topology()))
    step()
    return {
        "zip_bytes": len(archive.getbuffer()),
        "files": len(files) + 1,
        "own_files": sum(name.startswith("functions/") for name in files),
        "unzipped_bytes": sum(path.stat().st_size for path in files.values()),
    }


def steps() -> int:
    """How often `measure` calls `step`."""
    return 2
