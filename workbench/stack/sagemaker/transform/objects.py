"""Which S3 objects a job reads, and where the output of each one goes. Pure.

- `S3Prefix`: every object whose key begins with the text of the URI, as S3 itself matches prefixes, in the order of
  keys; keys that end with `/` are folders of the console's, not data.
- `ManifestFile`: a JSON array, first `{"prefix": "s3://bucket/some/prefix/"}`, then keys relative to it.
- Output: `S3OutputPath/` + the key relative to the input prefix + `.out`. A prefix that ends within a name (`in/part-`)
  counts from its last folder, one that is the key itself leaves the file's name. (The API reference's example keeps the
  prefix's own folder and drops one below it; this is what the SDK's local mode does, and what jobs are seen to write.)
- One instance works on an object; objects are dealt to instances in the order of keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

_URI = re.compile(r"(?:s3|https)://([^/]+)/?(.*)")
Item = TypeVar("Item")


class ManifestError(ValueError):
    """The manifest is not what a manifest has to be; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place on S3."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    @property
    def uri(self) -> str:
        """With its scheme."""
        return f"s3://{self}"


@dataclass(frozen=True, slots=True)
class Task:
    """One object's way: from where to where."""

    source: Location
    target: Location


def location(uri: str) -> Location:
    """The bucket and key (or prefix) of a URI that the API's pattern has passed. Raises `ValueError`."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise ValueError(f"{uri!r} is no URI of S3")
    return Location(match[1], match[2])


def tasks_of_prefix(prefix: Location, keys: Sequence[str], output: Location) -> list[Task]:
    """Tasks for the objects under a prefix, in the order of keys."""
    data = sorted(key for key in keys if not key.endswith("/"))
    return [Task(Location(prefix.bucket, k), _target(output, _relative(k, prefix.key))) for k in data]


def tasks_of_manifest(text: bytes, output: Location) -> list[Task]:
    """Tasks for what a manifest lists, in its order. Raises `ManifestError`."""
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ManifestError(f"the manifest is not JSON: {error}") from error
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict) or set(rows[0]) != {"prefix"}:
        raise ManifestError('the manifest must be a JSON array that begins with {"prefix": "s3://bucket/prefix/"}')
    prefix = rows[0]["prefix"]
    if not isinstance(prefix, str) or not prefix.startswith("s3://") or not _URI.fullmatch(prefix):
        raise ManifestError(f"the manifest's prefix must be an s3:// URI; got {prefix!r}")
    base = location(prefix)
    for row in rows[1:]:
        if not isinstance(row, str) or not row:
            raise ManifestError(f"after its prefix a manifest holds relative keys only; got {row!r}")
    if repeated := {row for row in rows[1:] if rows.count(row) > 1}:
        raise ManifestError(f"the manifest lists {min(repeated)!r} more than once")
    return [Task(Location(base.bucket, base.key + row), _target(output, row)) for row in rows[1:]]


def dealt(items: Sequence[Item], hands: int) -> list[list[Item]]:
    """Items to instances in turn."""
    return [list(items[hand::hands]) for hand in range(hands)]


def _relative(key: str, prefix: str) -> str:
    if key == prefix or (not prefix.endswith("/") and not key[len(prefix) :].startswith("/")):
        return key[prefix.rfind("/") + 1 :]
    return key[len(prefix) :].removeprefix("/")


def _target(output: Location, relative: str) -> Location:
    folder = output.key if not output.key or output.key.endswith("/") else f"{output.key}/"
    return Location(output.bucket, f"{folder}{relative}.out")
