"""The batch lane's tables in moto, as the Pulumi program makes them, and clients for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.session import get_session
from moto import mock_aws

from functions.aws import clients

JOBS = "inferlane-test-jobs"
RUNS = "inferlane-test-runs"
_TYPES = {"accepted_at": "N"}


@contextmanager
def tables() -> Iterator[Any]:
    """DynamoDB's client, with both tables empty."""
    with mock_aws():
        client = client_of("dynamodb")
        make(client, JOBS, ("tenant", "id"), by_time=("tenant", "accepted_at"))
        make(client, RUNS, ("name",), open=("open", "name"))
        yield client


def client_of(service: str) -> Any:
    """The client that the functions have, with moto behind it."""
    session = get_session()
    session.set_config_variable("region", "us-east-1")
    return clients.patient(session, service)


def hasty_client_of(service: str) -> Any:
    """One that tries once, for what an error is called: how often it is tried is told elsewhere."""
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=2)
    return get_session().create_client(service, region_name="us-east-1", config=config)


def make(client: Any, name: str, keys: tuple[str, ...], **indexes: tuple[str, str]) -> None:
    """A table with indexes that hold keys only."""
    attributes = sorted({*keys, *(attribute for index in indexes.values() for attribute in index)})
    schemas = [
        {"IndexName": index, "KeySchema": _schema(held), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        for index, held in indexes.items()
    ]
    client.create_table(
        TableName=name,
        KeySchema=_schema(keys),
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": _TYPES.get(attribute, "S")} for attribute in attributes
        ],
        GlobalSecondaryIndexes=schemas,
        BillingMode="PAY_PER_REQUEST",
    )


def _schema(keys: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
