"""Packs the model into the archive that SageMaker unpacks to /opt/ml/model.

Rules: weights at the root, `code/inference.py` and `code/requirements.txt` under it; plain files only (SageMaker
refuses links), sorted by name, with one fixed mode, owner and time in both the tar and the gzip header, so that the
same files give the same bytes. The archive appears under its name whole or not at all.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath


def pack(files: Mapping[str, bytes], target: Path) -> None:
    """Write the archive of `files` (name in the archive to content); ValueError names a name that may not be in it."""
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or name != str(PurePosixPath(name)):
            raise ValueError(f"{name!r} is not a plain relative name")
    partial = target.with_suffix(".partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        partial.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(files[name]), 0o644, 0
            tar.addfile(entry, io.BytesIO(files[name]))
    os.replace(partial, target)


def unpack(archive: Path, folder: Path) -> None:
    """Extract an archive of `pack`; ValueError names an entry that is no plain file inside it."""
    with tarfile.open(archive) as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.isfile() else None
            if content is None or ".." in PurePosixPath(entry.name).parts or entry.name.startswith("/"):
                raise ValueError(f"{archive.name} holds {entry.name!r}, which is no plain file inside it")
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())


def version(files: Mapping[str, bytes]) -> str:
    """Return the content version: twelve hex digits over every name and content."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]
