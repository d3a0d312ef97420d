"""API keys: shown once, kept as a hash."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import boto3
import pytest
from moto import mock_aws

from workbench import keys
from workbench.stack.processes import StackError

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def dynamodb():  # type: ignore[no-untyped-def] # boto3 clients are made at run time
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="t", aws_secret_access_key="t")
        client.create_table(
            TableName="inferlane-local-keys",
            KeySchema=[{"AttributeName": "key_hash", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key_hash", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def test_only_the_hash_is_stored(dynamodb) -> None:  # type: ignore[no-untyped-def]
    """The table never holds the key itself, and the listing shows neither key nor hash."""
    made = keys.create(dynamodb, "local", "demo-app", NOW)
    assert re.fullmatch(r"il_[\w-]{43}", made.key)
    stored = str(dynamodb.scan(TableName="inferlane-local-keys")["Items"])
    assert made.key not in stored
    assert keys.hash_of(made.key) in stored
    assert keys.listing(dynamodb, "local") == [{"key_id": "demo-app", "created_at": NOW.isoformat(), "state": "active"}]


def test_an_id_can_have_two_keys_and_loses_both_on_revoke(dynamodb) -> None:  # type: ignore[no-untyped-def]
    """Two keys of an id differ; revoking the id disables both and no other's."""
    first, second = (keys.create(dynamodb, "local", "demo-app", NOW) for _ in range(2))
    keys.create(dynamodb, "local", "vip-app", NOW)
    assert first.key != second.key
    assert keys.revoke(dynamodb, "local", "demo-app") == 2
    states = {row["key_id"]: row["state"] for row in keys.listing(dynamodb, "local")}
    assert states == {"demo-app": "disabled", "vip-app": "active"}


@pytest.mark.parametrize("key_id", ["", "-x", "Has Space", "a" * 64, "ümlaut", "demo\n"])
def test_a_bad_id_is_refused(dynamodb, key_id: str) -> None:  # type: ignore[no-untyped-def]
    """An id that policies could not match cleanly is a precise error and stores nothing."""
    with pytest.raises(StackError, match="use 1 to 63 of"):
        keys.create(dynamodb, "local", key_id, NOW)
    assert dynamodb.scan(TableName="inferlane-local-keys")["Count"] == 0


def test_a_missing_table_is_named(dynamodb) -> None:  # type: ignore[no-untyped-def]
    """A stack that is not deployed, or has no keys, is told as that."""
    with pytest.raises(StackError, match="stack other has no keys table"):
        keys.create(dynamodb, "other", "demo-app", NOW)


def test_a_key_behind_the_first_megabyte_is_revoked_too(dynamodb) -> None:  # type: ignore[no-untyped-def]
    """A scan answers a megabyte at a time; every page is looked at."""
    for number in range(30):
        row = {"key_hash": {"S": f"{number:064x}"}, "key_id": {"S": "other"}, "created_at": {"S": "2026"}}
        dynamodb.put_item(TableName="inferlane-local-keys", Item={**row, "note": {"S": "x" * 90_000}})
    for number in range(8):
        keys.create(dynamodb, "local", f"app-{number}", NOW)
    assert dynamodb.scan(TableName="inferlane-local-keys").get("LastEvaluatedKey")
    assert [keys.revoke(dynamodb, "local", f"app-{number}") for number in range(8)] == [1] * 8
    assert len(keys.listing(dynamodb, "local")) == 38
