"""The KeyStore contract, against the fake and against DynamoDB through moto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from functions.aws.keys import DynamoKeys, KeyTableError
from functions.ports import KeyRecord, KeyStore
from tests.unit.handlers.fakes import FakeKeys

TABLE = "inferlane-test-keys"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


@pytest.fixture
def dynamo() -> Iterator[DynamoKeys]:
    with mock_aws():
        client: Any = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key_hash", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key_hash", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName=TABLE, Item={"key_hash": {"S": "h1"}, "key_id": {"S": "demo-app"}})
        client.put_item(
            TableName=TABLE, Item={"key_hash": {"S": "h2"}, "key_id": {"S": "fired"}, "disabled": {"BOOL": True}}
        )
        client.put_item(TableName=TABLE, Item={"key_hash": {"S": "h3"}})
        yield DynamoKeys(client, TABLE)


@pytest.fixture(params=["fake", "dynamodb"])
def keys(request: pytest.FixtureRequest, dynamo: DynamoKeys) -> KeyStore:
    rows = {"h1": KeyRecord("demo-app", False), "h2": KeyRecord("fired", True)}
    return FakeKeys(rows) if request.param == "fake" else dynamo


@pytest.mark.parametrize(
    ("key_hash", "found"),
    [("h1", KeyRecord("demo-app", False)), ("h2", KeyRecord("fired", True)), ("h9", None)],
)
def test_a_key_is_found_by_its_hash(keys: KeyStore, key_hash: str, found: KeyRecord | None) -> None:
    """Enabled, disabled, unknown."""
    assert keys.find(key_hash) == found


@pytest.mark.parametrize(
    ("disabled", "stopped"),
    [
        ({"BOOL": False}, False),
        ({"NULL": True}, False),
        ({"S": "true"}, True),
        ({"N": "1"}, True),
        ({"S": "yes"}, True),
        ({"M": {}}, True),
    ],
)
def test_a_key_that_somebody_wanted_stopped_is_stopped(disabled: dict[str, object], stopped: bool) -> None:
    """However the attribute was written; only a plain no, or nothing, lets the key live."""
    with mock_aws():
        client: Any = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key_hash", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key_hash", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        row = {"key_hash": {"S": "h"}, "key_id": {"S": "hand-made"}, "disabled": disabled}
        client.put_item(TableName=TABLE, Item=row)
        assert DynamoKeys(client, TABLE).find("h") == KeyRecord("hand-made", stopped)


def test_a_malformed_row_is_an_error_not_a_stranger(dynamo: DynamoKeys) -> None:
    """A row without key_id is ours to mend."""
    with pytest.raises(KeyTableError):
        dynamo.find("h3")


def test_a_missing_table_is_an_error() -> None:
    """Not "unknown key": the gateway must answer 500, not 403."""
    with mock_aws():
        client: Any = boto3.client("dynamodb", region_name="us-east-1")
        with pytest.raises(ClientError):
            DynamoKeys(client, "nothing").find("h1")
