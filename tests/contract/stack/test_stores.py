"""What the batch lane keeps, on the offline stack: conditional writes beside indexes, captures under their prefixes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.contract.stack.conftest import ROLE, eventually
from workbench.stack.cloud import Cloud

TABLE, BUCKET = "jobs", "captures"


@pytest.fixture(scope="module")
def dynamodb(cloud: Cloud) -> Iterator[Any]:
    """A client, with a table as the jobs' is: an index by time, and a sparse one."""
    client = cloud.client("dynamodb")
    kinds = {"tenant": "S", "id": "S", "accepted_at": "N", "open": "S"}
    index = {"Projection": {"ProjectionType": "KEYS_ONLY"}}
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()],
        KeySchema=_keys("tenant", "id"),
        GlobalSecondaryIndexes=[
            {"IndexName": "by_time", "KeySchema": _keys("tenant", "accepted_at"), **index},
            {"IndexName": "open", "KeySchema": _keys("open", "id"), **index},
        ],
    )
    yield client
    client.delete_table(TableName=TABLE)


def _keys(hash_key: str, range_key: str) -> list[Any]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


def test_indexes_follow_conditional_writes(dynamodb: Any) -> None:
    """A refused write changes nothing; an index by time is newest first; an item leaves a sparse index with its key."""
    for number in range(3):
        item = {"tenant": {"S": "a"}, "id": {"S": str(number)}, "accepted_at": {"N": str(number)}, "open": {"S": "1"}}
        new = {"ConditionExpression": "attribute_not_exists(id)"}
        dynamodb.put_item(TableName=TABLE, Item=item, **new)
        with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
            dynamodb.put_item(TableName=TABLE, Item=item | {"accepted_at": {"N": "99"}}, **new)
    end: dict[str, Any] = {
        "TableName": TABLE,
        "Key": {"tenant": {"S": "a"}, "id": {"S": "1"}},
        "UpdateExpression": "SET #s = :done REMOVE #o",
        "ConditionExpression": "attribute_not_exists(#s)",
        "ExpressionAttributeNames": {"#s": "state", "#o": "open"},
        "ExpressionAttributeValues": {":done": {"S": "done"}},
    }
    dynamodb.update_item(**end)
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.update_item(**end)

    assert _ids(dynamodb, "by_time", "tenant", "a", ScanIndexForward=False) == ["2", "1", "0"]
    assert _ids(dynamodb, "open", "open", "1") == ["0", "2"]
    first = dynamodb.query(**_query("by_time", "tenant", "a"), Limit=2)
    rest = dynamodb.query(**_query("by_time", "tenant", "a"), ExclusiveStartKey=first["LastEvaluatedKey"])
    assert [each["id"]["S"] for each in (*first["Items"], *rest["Items"])] == ["0", "1", "2"]


def _ids(dynamodb: Any, index: str, key: str, value: str, **more: Any) -> list[str]:
    return [each["id"]["S"] for each in dynamodb.query(**_query(index, key, value), **more)["Items"]]


def _query(index: str, key: str, value: str) -> dict[str, Any]:
    condition = {"KeyConditionExpression": "#k = :v", "ExpressionAttributeNames": {"#k": key}}
    return {"TableName": TABLE, "IndexName": index, **condition, "ExpressionAttributeValues": {":v": {"S": value}}}


def test_captures_lie_under_their_prefix(cloud: Cloud) -> None:
    """A record is stored under its model, date and hour; one that cannot be read lies under the error prefix.

    MiniStack stores each record at once, by itself and as it is; Firehose gathers, and packs with gzip.
    """
    s3, firehose = cloud.client("s3"), cloud.client("firehose")
    s3.create_bucket(Bucket=BUCKET)
    query = [
        {"ParameterName": "MetadataExtractionQuery", "ParameterValue": "{model: .model}"},
        {"ParameterName": "JsonParsingEngine", "ParameterValue": "JQ-1.6"},
    ]
    destination = {
        "RoleARN": ROLE,
        "BucketARN": f"arn:aws:s3:::{BUCKET}",
        "Prefix": "capture/model=!{partitionKeyFromQuery:model}/date=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/",
        "ErrorOutputPrefix": "capture-errors/!{firehose:error-output-type}/",
        "CompressionFormat": "GZIP",
        "DynamicPartitioningConfiguration": {"Enabled": True},
        "ProcessingConfiguration": {
            "Enabled": True,
            "Processors": [{"Type": "MetadataExtraction", "Parameters": query}],
        },
    }
    firehose.create_delivery_stream(DeliveryStreamName="capture", ExtendedS3DestinationConfiguration=destination)
    records = [{"Data": json.dumps({"model": model}).encode() + b"\n"} for model in ("light", "heavy", "light")]
    assert firehose.put_record_batch(DeliveryStreamName="capture", Records=records)["FailedPutCount"] == 0
    firehose.put_record(DeliveryStreamName="capture", Record={"Data": b"no JSON"})

    def keys() -> list[str]:
        found = [row["Key"] for row in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
        return found if len(found) == 4 else []

    found = eventually(keys)
    stamp = datetime.now(UTC).strftime("date=%Y-%m-%d/hour=")
    assert sum(key.startswith(f"capture/model=light/{stamp}") for key in found) == 2
    assert sum(key.startswith(f"capture/model=heavy/{stamp}") for key in found) == 1
    assert sum(key.startswith("capture-errors/processing-failed/") for key in found) == 1
    heavy = next(key for key in found if "model=heavy" in key)
    body = s3.get_object(Bucket=BUCKET, Key=heavy)["Body"].read()
    assert json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body) == {"model": "heavy"}
