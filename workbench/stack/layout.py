"""Where the offline stack keeps its things: one folder of the project, `.inferlane/`, safe to delete when it is down.

- `stack.json`: what runs now: cloud id, ports, processes (pid and start time, so a reused pid is never ours)
- `logs/`: one file a process
- `tmp/`: the emulators' temporary files
- `sagemaker/`: the emulator's state, extracted model artifacts, logs of the model processes
- `sagemaker-alone/`: the same for `inferlane sagemaker`
- `deployments/`: the deployer's state, a folder an endpoint, a file a stack
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = ".inferlane"
SCHEMA = "inferlane/stack/v1"


def project_root() -> Path:
    """The checkout this code runs from: where `Pulumi.yaml` lies."""
    return Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One of our processes: its pid, and its start time (s since the epoch), which tells it from a reuse of the pid."""

    name: str
    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class StackRecord:
    """A running offline stack."""

    cloud_id: str
    """New at every start: resources of an earlier cloud are gone with it."""
    endpoint_url: str
    sagemaker_url: str
    processes: tuple[ProcessRecord, ...]
    sagemaker_options: tuple[str, ...] = ()
    """What the emulator was started with, besides its port and its folder."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one state folder."""

    folder: Path

    @classmethod
    def default(cls) -> Layout:
        """The folder named by INFERLANE_DIR, else `.inferlane` in the project."""
        named = os.environ.get("INFERLANE_DIR")
        return cls(Path(named).resolve() if named else project_root() / FOLDER)

    @property
    def record_file(self) -> Path:
        return self.folder / "stack.json"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    @property
    def sagemaker(self) -> Path:
        return self.folder / "sagemaker"

    def deployments(self, endpoint_url: str) -> Path:
        """The folder of the deployer's state files, one a stack, for one endpoint."""
        return self.folder / "deployments" / re.sub(r"[^A-Za-z0-9.-]+", "_", endpoint_url.split("://", 1)[-1])

    def create(self) -> None:
        """Make the folders."""
        for folder in (self.folder, self.logs, self.tmp, self.sagemaker):
            folder.mkdir(parents=True, exist_ok=True)

    def read_record(self) -> StackRecord | None:
        """What was started last, or None. An unreadable record counts as none: it says nothing about what runs."""
        try:
            data = json.loads(self.record_file.read_text())
            if data.pop("schema") != SCHEMA:
                return None
            data["processes"] = tuple(ProcessRecord(**each) for each in data["processes"])
            data["sagemaker_options"] = tuple(data.get("sagemaker_options", ()))
            return StackRecord(**data)
        except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
            return None

    def write_record(self, record: StackRecord) -> None:
        """Replace the record in one step, so that a kill leaves the old or the new one."""
        partial = self.record_file.with_suffix(".partial")
        partial.write_text(json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1))
        partial.replace(self.record_file)

    def remove_record(self) -> None:
        self.record_file.unlink(missing_ok=True)
