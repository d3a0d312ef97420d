"""Assets and archives of a Pulumi program as bytes that depend on nothing but their content.

An archive becomes a zip of sorted entries with the oldest date a zip can hold, mode 0644, and the deflate level fixed:
the same files give the same bytes on every machine, so a function's code changes only when its files do. `__pycache__`
and `.pyc` never enter. A file archive that is a `.zip` already goes as it is.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pulumi

from workbench.stack.deployer.errors import ProgramError
from workbench.stack.deployer.values import Payload

OLDEST = (1980, 1, 1, 0, 0, 0)
DEFLATE_LEVEL = 6


def payload(value: pulumi.Asset | pulumi.Archive) -> Payload:
    """The bytes of an asset or archive; a missing file is an error that names it."""
    if isinstance(value, pulumi.Asset):
        if isinstance(value, pulumi.FileAsset):
            return Payload.of(_existing(value.path))
        return Payload.of(_asset_bytes(value))
    if isinstance(value, pulumi.FileArchive) and Path(value.path).is_file():
        return Payload.of(_existing(value.path))
    return Payload.of(_zip(dict(_entries("", value))))


def _zip(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=DEFLATE_LEVEL) as archive:
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, OLDEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            info.create_system = 3
            archive.writestr(info, entries[name])
    return out.getvalue()


def _entries(prefix: str, value: pulumi.Asset | pulumi.Archive) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, pulumi.Asset):
        yield prefix, _asset_bytes(value)
    elif isinstance(value, pulumi.AssetArchive):
        for name, item in value.assets.items():
            yield from _entries(_inside(prefix, name), item)
    elif isinstance(value, pulumi.FileArchive):
        yield from _file_archive(prefix, Path(value.path))
    else:
        raise ProgramError(f"{type(value).__name__} cannot be deployed offline: use a file, string or asset archive")


def _file_archive(prefix: str, path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc":
                yield _inside(prefix, file.relative_to(path).as_posix()), file.read_bytes()
        return
    with zipfile.ZipFile(_existing(str(path))) as archive:
        for name in archive.namelist():
            if not name.endswith("/"):
                yield _inside(prefix, name), archive.read(name)


def _inside(prefix: str, name: str) -> str:
    joined = posixpath.normpath(posixpath.join(prefix, name))
    if joined.startswith(("../", "/")) or joined == "..":
        raise ProgramError(f"archive entry {name!r} would leave the archive: give it a relative path without '..'")
    return "" if joined == "." else joined


def _asset_bytes(value: pulumi.Asset) -> bytes:
    if isinstance(value, pulumi.StringAsset):
        return value.text.encode()
    if isinstance(value, pulumi.FileAsset):
        return _existing(value.path).read_bytes()
    raise ProgramError(f"{type(value).__name__} cannot be deployed offline: use a file or string asset")


def _existing(path: str) -> Path:
    found = Path(path)
    if not found.is_file():
        raise ProgramError(f"the asset {path} does not exist: build it first")
    return found
