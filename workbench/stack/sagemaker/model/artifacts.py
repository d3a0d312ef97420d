"""Model archives: fetched from S3 once per version, checked, extracted.

`s3://bucket/key` (or its https form) is looked up; its ETag names the version, so the same bytes are downloaded and
unpacked once and shared by all processes that serve them, and a new object under the same key is seen at the next
deployment. An archive is a gzip-compressed tar (AWS: "must be .tar.gz") without links, devices or paths that leave its
root. It is unpacked beside its final place and renamed into it, so a killed server leaves nothing half-done.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_URL = re.compile(r"s3://([^/]+)/(.+)")
_HTTPS = re.compile(r"https://(?:s3[.-][^/]*/([^/]+)|([^/]+?)\.s3[.-][^/]*)/(.+)")
_PARTIAL = ".partial-"


class ArtifactError(Exception):
    """The archive cannot be had or must not be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """An extracted archive. `base_dir / "model"` is what AWS mounts as /opt/ml/model."""

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

    async def fetch(self, url: str) -> Artifact:
        """The archive behind `url`, extracted. Raises `ArtifactError`."""
        async with self._locks.setdefault(url, asyncio.Lock()):
            return await asyncio.to_thread(self._fetch, url)

    def _fetch(self, url: str) -> Artifact:
        bucket, key = parse_url(url)
        try:
            etag = self._client.head_object(Bucket=bucket, Key=key)["ETag"]
            place = self._folder / hashlib.sha256(f"{url}\n{etag}".encode()).hexdigest()[:24]
            if not place.exists():
                self._download(bucket, key, place)
        except (BotoCoreError, ClientError) as error:
            raise ArtifactError(
                f'Failed to download model data from URL: "{url}". Please ensure that there is an object located at '
                f"the URL and that the role passed to CreateModel has permissions to download the model. ({error})"
            ) from error
        except OSError as error:
            raise ArtifactError(f'Model data of "{url}" cannot be stored: {error}') from error
        size = sum(f.stat().st_size for f in place.rglob("*") if f.is_file())
        return Artifact(place, size)

    def _download(self, bucket: str, key: str, place: Path) -> None:
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=self._folder))
        try:
            archive = partial / "model.tar.gz"
            self._client.download_file(bucket, key, str(archive))
            (partial / "base").mkdir()
            extract(archive, partial / "base" / "model")
            (partial / "base").rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def parse_url(url: str) -> tuple[str, str]:
    """Bucket and key of a model data URL. Raises `ArtifactError`."""
    if match := _URL.fullmatch(url):
        return match[1], match[2]
    if match := _HTTPS.fullmatch(url):
        return match[1] or match[2], match[3]
    raise ArtifactError(f'"{url}" is not the URL of an S3 object.')


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
