"""What an instance type has: vCPUs, memory, GPUs, from a data file that names its source.

A type the file lacks (p2, p3, dl1 and newer ones) is derived from its size, which EC2 names by vCPUs: xlarge is 4,
Nxlarge 4 N, large 2, medium 1; its memory is unknown and so not reported.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_DATA = Path(__file__).with_name("instance_types.json")
_SIZE = re.compile(r"(?:(\d*)x)?(large|medium)$")


@dataclass(frozen=True, slots=True)
class Hardware:
    """One instance."""

    vcpus: int
    memory_mib: int | None
    gpus: int


def hardware(instance_type: str) -> Hardware:
    """The hardware of an `ml.` type."""
    row = _table().get(instance_type)
    if row is not None:
        return Hardware(*row)
    _, family, size = instance_type.split(".", 2)
    match = _SIZE.search(size)
    if match is None:
        raise ValueError(f"{instance_type} is not in {_DATA.name} and its size tells no vCPU count")
    multiple, word = match.groups()
    vcpus = 4 * int(multiple or 1) if multiple is not None else {"large": 2, "medium": 1}[word]
    return Hardware(vcpus, None, 1 if family[0] in "pg" else 0)


@cache
def _table() -> dict[str, list[int]]:
    types: dict[str, list[int]] = json.loads(_DATA.read_text())["types"]
    return types
