"""Objects in and out of S3, by way of files: whatever their size, no object is held in memory.

Large objects come and go in parts (the SDK's transfer manager). A failed upload leaves nothing, because the transfer
manager aborts what it has begun.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError

from workbench.stack.sagemaker.transform.objects import Location

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BLOCK = 1024 * 1024
PARTS = TransferConfig(max_concurrency=3)
"""Parts of 8 MB in flight: three keep a disk busy, and the SDK's ten would hold 80 MB for each object."""


class StorageError(Exception):
    """S3 did not do what was asked; the message says what and why."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The account's S3."""

    client: S3Client

    async def any(self, prefix: Location) -> bool:
        """Whether an object lies under a prefix; an unreachable bucket holds none."""
        try:
            listed = await asyncio.to_thread(
                self.client.list_objects_v2, Bucket=prefix.bucket, Prefix=prefix.key, MaxKeys=1
            )
        except (BotoCoreError, ClientError):
            return False
        return bool(listed.get("Contents"))

    async def keys(self, prefix: Location) -> list[str]:
        """The keys under a prefix. Raises `StorageError`."""
        return await asyncio.to_thread(self._keys, prefix)

    async def read(self, place: Location) -> bytes:
        """A small object. Raises `StorageError`."""
        return await asyncio.to_thread(self._read, place)

    async def download(self, place: Location, file: Path) -> None:
        """An object into a file. Raises `StorageError`."""
        await asyncio.to_thread(self._download, place, file)

    async def upload(self, file: Path, place: Location, kms_key: str | None) -> None:
        """A file to an object, whole or not at all. Raises `StorageError`."""
        await asyncio.to_thread(self._upload, file, place, kms_key)

    def _keys(self, prefix: Location) -> list[str]:
        try:
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=prefix.bucket, Prefix=prefix.key)
            return [row["Key"] for page in pages for row in page.get("Contents", ())]
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"{prefix.uri} cannot be listed: {error}") from error

    def _read(self, place: Location) -> bytes:
        try:
            return self.client.get_object(Bucket=place.bucket, Key=place.key)["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"{place.uri} cannot be read: {error}") from error

    def _download(self, place: Location, file: Path) -> None:
        try:
            self.client.download_file(place.bucket, place.key, str(file), Config=PARTS)
        except (BotoCoreError, ClientError, Boto3Error) as error:
            raise StorageError(f"{place.uri} cannot be read: {error}") from error
        except OSError as error:
            raise StorageError(f"{place.uri} cannot be kept on the instance: {error.strerror}") from error

    def _upload(self, file: Path, place: Location, kms_key: str | None) -> None:
        extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
        try:
            self.client.upload_file(str(file), place.bucket, place.key, ExtraArgs=extra, Config=PARTS)
        except (BotoCoreError, ClientError, Boto3Error) as error:
            raise StorageError(f"{place.uri} cannot be written: {error}") from error


def blocks(file: Path, *, gzipped: bool) -> Iterator[bytes]:
    """A file's bytes, decompressed where asked. Raises `StorageError` for what is not gzip."""
    with file.open("rb") as raw:
        if not gzipped:
            while block := raw.read(BLOCK):
                yield block
            return
        try:
            with gzip.open(raw) as plain:
                while block := plain.read(BLOCK):
                    yield block
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise StorageError(f"the object is not gzip, as CompressionType says: {error}") from error
