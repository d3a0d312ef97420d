"""Model data: fetched from S3 once per version, checked, extracted.

`s3://bucket/key` (or its https form) is looked up; its ETag names the version, so the same bytes are downloaded and
unpacked once and shared by all processes that serve them, and a new object under the same key is seen at the next
deployment. An archive is a gzip-compressed tar (AWS: "must be .tar.gz") without links, devices or paths that leave its
root. Uncompressed data is one object, or all objects under a prefix, whose keys' remainders are paths (botocore,
S3ModelDataSource.CompressionType). Either is made beside its final place and renamed into it, so a killed server leaves
nothing half-done.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from workbench.stack.sagemaker.records import DataKind

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_URL = re.compile(r"s3://([^/]+)/(.+)")
_HTTPS = re.compile(r"https://(?:s3[.-][^/]*/([^/]+)|([^/]+?)\.s3[.-][^/]*)/(.+)")
_PARTIAL = ".partial-"
LONGEST_NAME = 255


class ArtifactError(Exception):
    """The archive cannot be had or must not be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Model data in place. `base_dir / "model"` is what AWS mounts as /opt/ml/model."""

    base_dir: Path
    size_bytes: int

    @property
    def model_dir(self) -> Path:
        """The archive's root."""
        return self.base_dir / "model"


class ArtifactStore:
    """Extracted archives under one folder."""

    def __init__(self, folder: Path, client: S3Client) -> None:
        self._folder = folder
        self._client = client
        self._locks: dict[str, asyncio.Lock] = {}

    def clean(self) -> None:
        """Create the folder, and remove what a killed run left half-extracted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for partial in self._folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(partial, ignore_errors=True)

    async def fetch(self, url: str, kind: DataKind = "archive") -> Artifact:
        """The data behind `url`, in place. Raises `ArtifactError`."""
        async with self._locks.setdefault(url, asyncio.Lock()):
            return await asyncio.to_thread(self._fetch, url, kind)

    def _fetch(self, url: str, kind: DataKind) -> Artifact:
        bucket, key = parse_url(url)
        try:
            etags = self._under(bucket, key) if kind == "prefix" else {key: self._etag(bucket, key)}
            version = "\n".join([url, kind, *(f"{k} {etag}" for k, etag in etags.items())])
            place = self._folder / hashlib.sha256(version.encode()).hexdigest()[:24]
            if not place.exists():
                with self._partial(place) as base:
                    if kind == "archive":
                        self._unpack(bucket, key, base)
                    else:
                        root = key if kind == "prefix" else key.rpartition("/")[0] + "/"
                        self._copy(bucket, {k: k.removeprefix(root) for k in etags}, base / "model")
        except (BotoCoreError, ClientError) as error:
            raise ArtifactError(
                f'Failed to download model data from URL: "{url}". Please ensure that there is an object located at '
                f"the URL and that the role passed to CreateModel has permissions to download the model. ({error})"
            ) from error
        except OSError as error:
            raise ArtifactError(f'Model data of "{url}" cannot be stored: {error}') from error
        size = sum(f.stat().st_size for f in place.rglob("*") if f.is_file())
        return Artifact(place, size)

    @contextmanager
    def _partial(self, place: Path) -> Iterator[Path]:
        """A folder to be filled, which then is `place`."""
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=self._folder))
        try:
            (partial / "base").mkdir()
            yield partial / "base"
            (partial / "base").rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _unpack(self, bucket: str, key: str, base: Path) -> None:
        archive = base.parent / "model.tar.gz"
        self._client.download_file(bucket, key, str(archive))
        extract(archive, base / "model")

    def _copy(self, bucket: str, paths: Mapping[str, str], target: Path) -> None:
        check_paths(paths.values())
        for key, path in paths.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(bucket, key, str(target / path))

    def _etag(self, bucket: str, key: str) -> str:
        return self._client.head_object(Bucket=bucket, Key=key)["ETag"]

    def _under(self, bucket: str, prefix: str) -> dict[str, str]:
        """ETags by key."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        etags = {o["Key"]: o["ETag"] for page in pages for o in page.get("Contents", ())}
        if not etags:
            raise ArtifactError(f'Failed to download model data: no object under "s3://{bucket}/{prefix}".')
        return etags


def parse_url(url: str) -> tuple[str, str]:
    """Bucket and key of a model data URL. Raises `ArtifactError`."""
    if match := _URL.fullmatch(url):
        return match[1], match[2]
    if match := _HTTPS.fullmatch(url):
        return match[1] or match[2], match[3]
    raise ArtifactError(f'"{url}" is not the URL of an S3 object.')


def check_paths(paths: Iterable[str]) -> None:
    """What SageMaker takes as paths of uncompressed data. Raises `ArtifactError`."""
    known = set(paths)
    folders = {str(folder) for path in known for folder in PurePosixPath(path).parents}
    for path in known:
        for part in path.split("/"):
            if part.strip() in ("", ".", "..") or "\0" in part or len(part.encode()) > LONGEST_NAME:
                raise ArtifactError(f"Failed to download model data: {path!r} is no path of a file")
        if path in folders:
            raise ArtifactError(f"Failed to download model data: {path!r} is both a file and a folder")


def extract(archive: Path, target: Path) -> None:
    """Unpack `archive` into the new folder `target`, checking every entry first. Raises `ArtifactError`."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            members = tar.getmembers()
            for member in members:
                _check(member)
            target.mkdir()
            for member in members:
                _unpack(tar, member, target)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ArtifactError(f"Failed to extract model data: not a gzip-compressed tar archive ({error})") from error


def _check(member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise ArtifactError(f"Failed to extract model data: entry {member.name!r} leaves the archive's root")
    if member.issym() or member.islnk():
        raise ArtifactError(
            f"Failed to extract model data: entry {member.name!r} is a link; SageMaker allows no links in model.tar.gz"
        )
    if not (member.isfile() or member.isdir()):
        raise ArtifactError(f"Failed to extract model data: entry {member.name!r} is neither a file nor a directory")


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    place = target / member.name
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is None:
        raise ArtifactError(f"Failed to extract model data: entry {member.name!r} cannot be read")
    with source, place.open("wb") as out:
        shutil.copyfileobj(source, out)
    place.chmod(0o755 if member.mode & 0o111 else 0o644)
