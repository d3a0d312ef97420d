"""S3 as `Objects`: the stack's data bucket, whose own settings encrypt what is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from functions.aws.sdk_errors import code_of, translated
from functions.aws.side_by_side import side_by_side

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ABSENT: Final = ("NoSuchKey", "404")
_BYTES: Final = "application/octet-stream"


class S3Objects:
    """One bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        """The client's signatures must be of version 4, or links would not be."""
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes, content_type: str | None = None) -> None:
        """Write an object (see `batch_ports.Objects`)."""
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type or _BYTES)

    def put_all(self, objects: Mapping[str, bytes], content_type: str | None = None) -> None:
        """Write them (see `batch_ports.Objects`)."""
        side_by_side(lambda key: self.put(key, objects[key], content_type), list(objects))

    def get(self, key: str) -> bytes | None:
        """Its bytes (see `batch_ports.Objects`)."""
        with translated():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if code_of(error) in _ABSENT:
                    return None
                raise
            return answer["Body"].read()

    def get_all(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Those that exist (see `batch_ports.Objects`)."""
        asked = list(dict.fromkeys(keys))
        return {key: body for key, body in zip(asked, side_by_side(self.get, asked), strict=True) if body is not None}

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """Keys and bytes (see `batch_ports.Objects`)."""
        asked: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix}
        sizes: dict[str, int] = {}
        while True:
            with translated():
                answer = self._client.list_objects_v2(**asked)
            sizes.update((entry["Key"], entry["Size"]) for entry in answer.get("Contents", []))
            if not answer.get("IsTruncated"):
                return sizes
            asked["ContinuationToken"] = answer["NextContinuationToken"]

    def link(self, key: str, expires_s: int) -> str:
        """A URL (see `batch_ports.Objects`). Made here: no call is made for it."""
        with translated():
            named = {"Bucket": self._bucket, "Key": key}
            return self._client.generate_presigned_url("get_object", Params=named, ExpiresIn=expires_s)

    def uri(self, key: str) -> str:
        """`s3://…` (see `batch_ports.Objects`)."""
        return f"s3://{self._bucket}/{key}"
