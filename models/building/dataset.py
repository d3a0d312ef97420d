"""The labelled texts and their two halves.

Rules: texts that differ only in case or white space are one text (a copy must not stand in both halves). Each class
is sorted by the SHA-256 of its texts and dealt out in turn, so the halves depend on the texts alone: not on the file's
order, a seed, or a library's shuffle.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

LABELS = {"Toxic": True, "Not Toxic": False}


class DataError(Exception):
    """The data file is not what the build expects."""


@dataclass(frozen=True)
class Example:
    text: str
    toxic: bool

    @property
    def key(self) -> str:
        """The hash that places the text; the same for texts that count as one."""
        return hashlib.sha256(" ".join(self.text.casefold().split()).encode()).hexdigest()


@dataclass(frozen=True)
class Halves:
    train: tuple[Example, ...]
    held_out: tuple[Example, ...]


def read(path: Path) -> list[Example]:
    """Return the file's distinct texts; DataError names the record that is wrong."""
    examples: dict[str, Example] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != ["text", "is_toxic"]:
            raise DataError(f"{path.name}: expected the columns text,is_toxic, found {rows.fieldnames}")
        for number, row in enumerate(rows, start=1):
            if row["is_toxic"] not in LABELS:
                raise DataError(f"{path.name}, record {number}: label {row['is_toxic']!r} is none of {list(LABELS)}")
            example = Example(row["text"], LABELS[row["is_toxic"]])
            if not example.text.strip():
                raise DataError(f"{path.name}, record {number}: the text is empty")
            if examples.setdefault(example.key, example).toxic != example.toxic:
                raise DataError(f"{path.name}, record {number}: the same text is labelled both ways")
    return list(examples.values())


def halve(examples: list[Example]) -> Halves:
    """Deal each class out between the halves; both are returned sorted by hash, classes mixed."""
    train: list[Example] = []
    held_out: list[Example] = []
    for label in LABELS.values():
        dealt = sorted((example for example in examples if example.toxic is label), key=lambda example: example.key)
        train += dealt[::2]
        held_out += dealt[1::2]
    return Halves(
        *(tuple(sorted(half, key=lambda example: example.key)) for half in (train, held_out)),
    )
