"""The state: what stands in the cloud because of this stack, in one JSON file.

Written whole and atomically (temporary file, fsync, rename; mode 0600) after every change, so a killed deploy leaves
the state before or after a change, never half of one. `retired` holds resources whose successor stands already: they
are deleted last. A lock file beside it keeps two deploys of one stack apart. Secrets are kept as digests (see
`values`).
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from workbench.stack.deployer.errors import ProgramError

SCHEMA = "inferlane/deployer-state/v1"


@dataclass
class Record:
    """A resource that stands. `settled` is false between its first call and its last step (a wait cut short)."""

    urn: str
    type: str
    name: str
    id: str
    inputs: dict[str, object]
    outputs: dict[str, object]
    dependencies: list[str] = field(default_factory=list)
    auto_named: bool = False
    protect: bool = False
    retain: bool = False
    settled: bool = True


@dataclass
class State:
    """All records of one stack on one cloud."""

    project: str
    stack: str
    cloud_id: str = ""
    resources: dict[str, Record] = field(default_factory=dict)
    retired: list[Record] = field(default_factory=list)
    outputs: dict[str, object] = field(default_factory=dict)

    def is_empty(self) -> bool:
        """Whether nothing stands."""
        return not self.resources and not self.retired


class StateFile:
    """A state on disk. Every change goes through `change`, which holds the lock and saves."""

    def __init__(self, path: Path, state: State) -> None:
        self.path = path
        self.state = state
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path, project: str, stack: str) -> StateFile:
        """Reads the file, or starts an empty state; another project's or stack's file is an error."""
        if not path.exists():
            return cls(path, State(project, stack))
        state = _decode(path)
        if (state.project, state.stack) != (project, stack):
            raise ProgramError(
                f"{path} holds {state.project}/{state.stack}, not {project}/{stack}: name another file with --state"
            )
        return cls(path, state)

    @contextmanager
    def change(self) -> Iterator[State]:
        """Changes the state under the lock, then saves it."""
        with self._lock:
            yield self.state
            self._save()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keeps other deployers of this state out while the block runs."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProgramError(f"another deploy holds {self.path}: wait for it, or end it") from None
            yield

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        document = {"schema": SCHEMA, **asdict(self.state)}
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w") as out:
                json.dump(document, out, indent=1, sort_keys=True)
                out.flush()
                os.fsync(out.fileno())
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _decode(path: Path) -> State:
    try:
        document = json.loads(path.read_text())
        if document.get("schema") != SCHEMA:
            raise ProgramError(f"{path} has schema {document.get('schema')!r}, not {SCHEMA!r}: name another file")
        return State(
            project=document["project"],
            stack=document["stack"],
            cloud_id=document["cloud_id"],
            resources={urn: _record(item) for urn, item in document["resources"].items()},
            retired=[_record(item) for item in document["retired"]],
            outputs=document["outputs"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProgramError(f"{path} is not a deployer's state ({error}): remove it, or name another file") from error


def _record(item: Mapping[str, object]) -> Record:
    names = {one.name for one in fields(Record)}
    if set(item) != names:
        raise ValueError(f"a record has {sorted(item)}, not {sorted(names)}")
    return Record(**item)  # type: ignore[arg-type]  # the field names were checked, the file is ours
