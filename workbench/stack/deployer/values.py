"""The values that flow from the program into the cloud and the state.

Inside the deployer a property tree is plain JSON (`dict`, `list`, `str`, `bool`, numbers, `None`) plus two kinds of
leaf: `Payload` (the bytes of an asset or archive, known by their SHA-256) and `UNKNOWN` (a preview's "known after
deploy").

In the state a payload is `{"$payload": sha256}` and a secret property is `{"$secret": sha256}`: enough to see a change,
no plaintext kept. Two trees are the same when their encodings are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

Properties: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class Payload:
    """The bytes of an asset or archive: a file on disk, or content built in memory."""

    sha256: str
    source: bytes | Path

    @classmethod
    def of(cls, source: bytes | Path) -> Payload:
        """A payload with the digest of its bytes (a file is read in pieces)."""
        if isinstance(source, bytes):
            return cls(hashlib.sha256(source).hexdigest(), source)
        with source.open("rb") as file:
            return cls(hashlib.file_digest(file, "sha256").hexdigest(), source)

    def read(self) -> bytes:
        """The bytes themselves."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


class Unknown:
    """A value that exists only after a deploy."""

    def __repr__(self) -> str:
        return "(known after deploy)"


UNKNOWN: Final = Unknown()


def is_unknown(value: object) -> bool:
    """Whether any leaf of the tree is unknown."""
    return any(isinstance(leaf, Unknown) for leaf in leaves(value))


def leaves(value: object) -> Iterator[object]:
    """Every leaf of a property tree, keys of mappings included (they can carry values too)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def encode(value: object) -> object:
    """The tree as JSON for the state: payloads become digests, whole floats become ints."""
    if isinstance(value, Payload):
        return {"$payload": value.sha256}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def encode_inputs(inputs: Properties, secrets: frozenset[str]) -> dict[str, object]:
    """Inputs as the state keeps them: those named in `secrets` only as a digest."""
    encoded = {name: encode(value) for name, value in inputs.items()}
    return {name: {"$secret": fingerprint(value)} if name in secrets else value for name, value in encoded.items()}


def fingerprint(encoded: object) -> str:
    """SHA-256 of an encoded tree, independent of key order."""
    return hashlib.sha256(json.dumps(encoded, sort_keys=True).encode()).hexdigest()


def mapping(value: object) -> dict[str, object]:
    """The value as a mapping with text keys; an absent one is empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a mapping, not {type(value).__name__}")
    return {str(key): item for key, item in value.items()}


def items(value: object) -> list[object]:
    """The value as a list; an absent one is empty, a single one stands alone."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
