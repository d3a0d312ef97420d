"""A recheck's run: its name, where its files lie, what its manifest says.

A run is named by what it is made of: the heavy model and every record with the light model's verdicts. The same
captures are the same run, and so the same transform job; a capture that came in late makes another one. A job that
failed keeps its name for ever, so the next try appends its number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from functions.core.document import Fields
from functions.core.recheck_report import Sources

FORMAT: Final = "1"
"""Changes with what a run's files or a report hold: what another version of this code made is made again."""
MOST_TRIES: Final = 5
"""Transform jobs of one run that may fail until a person should look."""
_LONGEST_NAME: Final = 63
"""Of a transform job (botocore sagemaker 2017-07-24, TransformJobName)."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `prepare` tells `report` of a run; written last, so a run that has one is whole."""

    run: str
    sources: Sources
    shards: tuple[str, ...]
    """Names of its files."""

    @classmethod
    def from_json(cls, document: object) -> Manifest:
        """What `to_json` gave. Raises `DocumentError`."""
        root = Fields.of(document)
        shards = tuple(str(name) for name, _ in root.items("shards"))
        return cls(root.text("run"), Sources.from_json(root.fields("sources")), shards)

    def to_json(self) -> dict[str, object]:
        """JSON's form."""
        return {"run": self.run, "sources": self.sources.to_json(), "shards": list(self.shards)}


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the nightly recheck of one model keeps its objects: keys in the data bucket."""

    captures: str
    nightly: str
    """Prefixes, each with its slash."""
    model: str

    def captured(self, partition: str) -> str:
        """Where the captures of a day's partition lie."""
        return f"{self.captures}model={self.model}/{partition}"

    def run(self, date: str, run: str) -> str:
        """Where a run's files lie."""
        return f"{self.nightly}runs/model={self.model}/date={date}/{run}/"

    def records(self, date: str, run: str) -> str:
        """The transform job's input, and nothing else."""
        return f"{self.run(date, run)}in/"

    def verdicts(self, date: str, run: str) -> str:
        """What the light model said, line by line beside the records."""
        return f"{self.run(date, run)}light/"

    def answers(self, date: str, run: str) -> str:
        """The transform job's output."""
        return f"{self.run(date, run)}out/"

    def manifest(self, date: str, run: str) -> str:
        """The run's manifest."""
        return f"{self.run(date, run)}manifest.json"

    @property
    def reports(self) -> str:
        """Where all of the model's reports lie."""
        return f"{self.nightly}reports/model={self.model}/"

    def report(self, date: str, form: str) -> str:
        """A day's report; `form` is html or json."""
        return f"{self.reports}date={date}/report.{form}"


def run_name(heavy_model: str, shards: Sequence[str]) -> str:
    """The run over these shards (hex SHA-256 of each, in order): 16 hex digits."""
    digest = hashlib.sha256()
    for part in (FORMAT, heavy_model, *shards):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:16]


def job_names(stack: str, date: str, run: str) -> list[str]:
    """The names of a run's transform job and of its repetitions, in order."""
    first = f"inferlane-{stack}-nightly-{date.replace('-', '')}-{run[:10]}"
    names = [first, *(f"{first}-{number}" for number in range(2, MOST_TRIES + 1))]
    if len(names[-1]) > _LONGEST_NAME:
        raise ValueError(f"the stack's name {stack!r} is too long for a transform job's: {names[-1]}")
    return names
