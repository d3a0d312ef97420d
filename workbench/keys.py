"""API keys of a stack with `auth: api_key`: created here, stored only as a hash, shown once.

A key is 256 random bits behind a readable prefix, so a plain SHA-256 of it is as strong as the key (a slow hash guards
guessable passwords, which these are not). The table's rows are `{key_hash, key_id, created_at, disabled?}`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from workbench.stack.processes import StackError

KEY_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
PREFIX = "il_"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A new key: `key` is the secret, told once; `key_id` is what policies match and logs show."""

    key_id: str
    key: str


def table_of(stack: str) -> str:
    """Name of the stack's keys table."""
    return f"inferlane-{stack}-keys"


def hash_of(key: str) -> str:
    """What the table holds of a key: hex SHA-256."""
    return hashlib.sha256(key.encode()).hexdigest()


def create(dynamodb: Any, stack: str, key_id: str, now: datetime) -> ApiKey:
    """Make a key for `key_id`. One id may have several keys, so that a key can be changed without an outage."""
    if not KEY_ID.fullmatch(key_id):
        raise StackError(f"key id {key_id!r}: use 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit")
    key = PREFIX + secrets.token_urlsafe(32)
    item = {"key_hash": {"S": hash_of(key)}, "key_id": {"S": key_id}, "created_at": {"S": now.isoformat()}}
    _call(dynamodb.put_item, stack, TableName=table_of(stack), Item=item)
    return ApiKey(key_id, key)


def listing(dynamodb: Any, stack: str) -> list[dict[str, str]]:
    """The keys there are: id, time of creation, state; never a hash or a key."""
    rows = [
        {
            "key_id": item["key_id"]["S"],
            "created_at": item["created_at"]["S"],
            "state": "disabled" if item.get("disabled", {}).get("BOOL") else "active",
        }
        for item in _rows(dynamodb, stack)
    ]
    return sorted(rows, key=lambda row: (row["key_id"], row["created_at"]))


def revoke(dynamodb: Any, stack: str, key_id: str) -> int:
    """Disable every key of an id. Returns how many; the gateway may serve a cached yes for up to its authorizer TTL."""
    hashes = [item["key_hash"] for item in _rows(dynamodb, stack) if item["key_id"]["S"] == key_id]
    for key_hash in hashes:
        _call(
            dynamodb.update_item,
            stack,
            TableName=table_of(stack),
            Key={"key_hash": key_hash},
            UpdateExpression="SET disabled = :yes",
            ExpressionAttributeValues={":yes": {"BOOL": True}},
        )
    return len(hashes)


def _rows(dynamodb: Any, stack: str) -> list[Mapping[str, Any]]:
    """Every row, in as many calls as it takes: a scan answers 1 MB at a time, and a key that is missed is not revoked.

    Consistent, so that a key made a moment ago is among them.
    """
    rows: list[Mapping[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = _call(dynamodb.scan, stack, TableName=table_of(stack), ConsistentRead=True, **more)
        rows += page["Items"]
        if not page.get("LastEvaluatedKey"):
            return rows
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _call(operation: Any, stack: str, **arguments: Any) -> Any:
    try:
        return operation(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            raise StackError(
                f"stack {stack} has no keys table: it is not deployed, or its auth is not api_key"
            ) from error
        raise
