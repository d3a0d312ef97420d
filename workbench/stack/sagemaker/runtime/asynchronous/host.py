"""The account's S3 and SNS, as asynchronous requests use them. Foreign errors become `HostError` here."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

_URI = re.compile(r"(?:s3|https)://([^/]+)/(.+)")


class HostError(Exception):
    """A service did not do what was asked; the message says what and why."""


class Objects(Protocol):
    """S3, as far as it is used here: boto3's client."""

    def download_file(self, Bucket: str, Key: str, Filename: str) -> None:  # noqa: N803
        """An object into a file."""

    def upload_file(self, Filename: str, Bucket: str, Key: str, ExtraArgs: dict[str, str]) -> None:  # noqa: N803
        """A file to an object."""

    def head_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803
        """What an object is."""


class Topics(Protocol):
    """SNS, as far as it is used here: boto3's client."""

    def publish(self, *, TopicArn: str, Message: str) -> Any:  # noqa: N803
        """Publish."""


@dataclass(frozen=True, slots=True)
class Host:
    """Both, off the event loop."""

    objects: Objects
    topics: Topics

    async def download(self, uri: str, file: Path, most_bytes: int) -> None:
        """An object into a file. Raises `HostError`."""
        await asyncio.to_thread(self._download, uri, file, most_bytes)

    async def upload(self, file: Path, uri: str, extra: dict[str, str]) -> None:
        """A file to an object, whole or not at all. Raises `HostError`."""
        await asyncio.to_thread(self._upload, file, uri, extra)

    async def tell(self, topic: str, text: str) -> None:
        """Publish a notice. Raises `HostError`."""
        try:
            await asyncio.to_thread(self.topics.publish, TopicArn=topic, Message=text)
        except (BotoCoreError, ClientError) as error:
            raise HostError(f"{topic} cannot be told: {error}") from error

    def _download(self, uri: str, file: Path, most_bytes: int) -> None:
        bucket, key = _parts(uri)
        try:
            size = self.objects.head_object(Bucket=bucket, Key=key)["ContentLength"]
            if size > most_bytes:
                raise HostError(f"{uri} has {size} bytes, of at most {most_bytes}.")
            self.objects.download_file(bucket, key, str(file))
        except (BotoCoreError, ClientError, Boto3Error, OSError) as error:
            raise HostError(f"{uri} cannot be read: {error}") from error

    def _upload(self, file: Path, uri: str, extra: dict[str, str]) -> None:
        bucket, key = _parts(uri)
        try:
            self.objects.upload_file(str(file), bucket, key, extra)
        except (BotoCoreError, ClientError, Boto3Error, OSError) as error:
            raise HostError(f"{uri} cannot be written: {error}") from error


def _parts(uri: str) -> tuple[str, str]:
    match = _URI.fullmatch(uri)
    if match is None:
        raise HostError(f"{uri} names no object on S3.")
    return match[1], match[2]
