"""Which data sets a tenant may have run as a whole: where input and output may lie.

The stack lists prefixes; `{tenant}` in one stands for the caller's tenant. A URI is compared as S3 compares keys, byte
by byte, and always against a prefix that ends with a slash, so that `s3://b/acme` opens nothing of `s3://b/acme-2`.
Segments that some reader might resolve (`.`, `..`, empty ones) and characters that some reader might decode are refused
outright. A tenant whose name is no plain word has no prefix with `{tenant}`.

Output must not lie in the input nor around it: the next run would read what this one wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from functions.core.document import DocumentError, Fields
from functions.core.job import Dataset

LARGEST_BODY: Final = 16 * 1024
_LONGEST: Final = 1024
"""As SageMaker has it for an S3 URI."""
_URI: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/([A-Za-z0-9!_.*'()=@:+,$&;/-]*)", re.ASCII)
"""Bucket names by S3's rules; keys of the characters that S3 calls safe, or that need no decoding."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
_TENANT: Final = "{tenant}"
_JSON_LINES: Final = "application/jsonlines"
_KEYS: Final = ("input", "output", "content_type", "accept")
_HEADER: Final = re.compile(r"[ -~]{1,256}", re.ASCII)


class DatasetError(ValueError):
    """What is asked cannot be run: `status` 400 or 403. The message is for the caller."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """A data set to run, and what its records are."""

    dataset: Dataset
    content_type: str
    accept: str | None


def read_asked(body: bytes, prefixes: Sequence[str], tenant: str) -> Asked:
    """What a call asks for, if the tenant may. Raises `DatasetError`."""
    try:
        root = Fields.of(json.loads(body))
        for error in root.unknown(_KEYS):
            raise error
        dataset = Dataset(root.text("input"), root.text("output"))
        asked = Asked(dataset, root.text_or("content_type", _JSON_LINES), root.text_or("accept", "") or None)
    except DocumentError as error:
        raise DatasetError(400, f"The body cannot be read: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(400, 'The body must be JSON such as {"input": "s3://…", "output": "s3://…"}.') from error
    for name, value in (("content_type", asked.content_type), ("accept", asked.accept)):
        if value is not None and not _HEADER.fullmatch(value):
            raise DatasetError(400, f"{name} must be printable ASCII of at most 256 characters.")
    ours = [prefix for each in prefixes if (prefix := _for(each, tenant)) is not None]
    dataset = Dataset(_allowed("input", dataset.input, ours), _allowed("output", dataset.output, ours))
    if dataset.input.startswith(dataset.output) or dataset.output.startswith(dataset.input):
        raise DatasetError(400, "input and output must not lie within each other.")
    return Asked(dataset, asked.content_type, asked.accept)


def _for(prefix: str, tenant: str) -> str | None:
    """The stack's prefix as it stands for this tenant, ending with a slash; None where there is none."""
    if _TENANT in prefix and not _PLAIN.fullmatch(tenant):
        return None
    return prefix.replace(_TENANT, tenant).rstrip("/") + "/"


def _allowed(name: str, uri: str, prefixes: Sequence[str]) -> str:
    found = _URI.fullmatch(uri)
    if found is None or len(uri) > _LONGEST or not _segments_clean(found[2]):
        raise DatasetError(400, f"{name} must be s3://bucket/prefix, of plain segments.")
    for prefix in prefixes:
        if uri.startswith(prefix):
            return uri
        if uri == prefix[:-1]:
            return prefix
    raise DatasetError(403, f"{name} lies outside the prefixes that this stack opens to you.")


def _segments_clean(key: str) -> bool:
    """Whether no segment is empty, but for what follows a slash at the end, or a step elsewhere."""
    segments = key.removesuffix("/").split("/")
    return key == "" or not any(segment in ("", ".", "..") for segment in segments)
