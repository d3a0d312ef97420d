"""Environments of SDKs and orchestrators, so that each runs with the versions it wants: `build/conformance/NAME`.

`python -m tests.conformance.environments` installs what is missing and says so in a line each; the constraints beside
this file pin all that comes with one. What cannot be installed is no failure here: the tests that need it say why they
are skipped.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.stack.layout import project_root

LOCKS = Path(__file__).parent / "locks"
INSTALL_TIMEOUT_S = 1200.0


@dataclass(frozen=True, slots=True)
class Environment:
    """One virtual environment with one distribution and what it needs."""

    name: str
    requirement: str
    size: str
    """On disk, for who waits."""

    @property
    def folder(self) -> Path:
        return project_root() / "build/conformance" / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    @property
    def constraints(self) -> Path:
        return LOCKS / f"{self.name}.txt"

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed"

    @property
    def _reason(self) -> Path:
        return self.folder.with_suffix(".failed")

    def missing(self) -> str | None:
        """Why it cannot be used, or None when it is as the constraints say."""
        if self._stamp.is_file() and self._stamp.read_text() == self._wanted():
            return None
        if self._reason.is_file():
            return f"{self.requirement} could not be installed: {self._reason.read_text()}"
        return f"{self.requirement} is not in {self.folder.relative_to(project_root())}: run `make conformance`"

    def install(self, say: Callable[[str], None]) -> None:
        """Make it anew unless it is there."""
        if self.missing() is None:
            say(f"{self.requirement} is installed")
            return
        place = self.folder.relative_to(project_root())
        say(f"installing {self.requirement} into {place} ({self.size}, a minute or a few) ...")
        began = time.monotonic()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        problem = self._install()
        if problem is None:
            self._reason.unlink(missing_ok=True)
            self._stamp.write_text(self._wanted())
            say(f"{self.requirement}: done in {time.monotonic() - began:.0f} s")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._reason.write_text(problem)
            say(f"{self.requirement} could not be installed: {problem}")

    def _install(self) -> str | None:
        """Run venv and pip; returns the last line of what went wrong."""
        pip = [str(self.python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input"]
        commands = (
            [sys.executable, "-m", "venv", str(self.folder)],
            [*pip, "--constraint", str(self.constraints), self.requirement],
        )
        for command in commands:
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                return f"not done after {INSTALL_TIMEOUT_S:.0f} s"
            if done.returncode:
                lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
                return lines[-1] if lines else f"{command[2]} ended with {done.returncode}"
        return None

    def _wanted(self) -> str:
        """What the stamp holds: requirement, constraints, interpreter."""
        digest = hashlib.sha256(self.constraints.read_bytes()).hexdigest()
        return f"{self.requirement} {digest} {sys.version_info.major}.{sys.version_info.minor}"


ENVIRONMENTS: Mapping[str, Environment] = {
    "v2": Environment("v2", "sagemaker==2.257.7", "0.3 GB"),
    "v3": Environment("v3", "sagemaker==3.27.0", "1 GB"),
}
"""The `sagemaker` SDKs."""
ORCHESTRATORS: Mapping[str, Environment] = {
    "airflow": Environment("airflow", "apache-airflow-task-sdk==1.3.2", "0.3 GB"),
    "kfp": Environment("kfp", "kfp[kubernetes]==2.17.3", "0.1 GB"),
}
"""What the examples in docs/orchestrators run under."""


def main() -> None:
    """Install all of them."""
    for environment in (*ENVIRONMENTS.values(), *ORCHESTRATORS.values()):
        environment.install(lambda line: print(f"conformance: {line}", flush=True))


if __name__ == "__main__":
    main()
