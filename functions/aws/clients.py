"""AWS clients for what is read beside a request: short timeouts, one attempt, made once when first needed.

botocore's session is enough (boto3 adds import time and nothing that is used here). A policy or metric that cannot
be read in time serves from its last good value, so waiting or retrying would only add to a request's latency.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from botocore.config import Config
from botocore.session import Session, get_session

if TYPE_CHECKING:
    from mypy_boto3_appconfigdata import AppConfigDataClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient

_CONFIG: Final = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1})


_BESIDE: Final = _CONFIG.merge(Config(connect_timeout=0.3, read_timeout=0.5))
"""For what instances tell each other: DynamoDB answers in milliseconds, and the last known value serves as well."""


def session() -> Session:
    """A session with the process's own credentials and region."""
    return get_session()


def cloudwatch(session: Session) -> Callable[[], CloudWatchClient]:
    """Makes the CloudWatch client once."""
    return cache(lambda: cast("CloudWatchClient", session.create_client("cloudwatch", config=_CONFIG)))


def appconfigdata(session: Session) -> Callable[[], AppConfigDataClient]:
    """Makes the AppConfigData client once."""
    return cache(lambda: cast("AppConfigDataClient", session.create_client("appconfigdata", config=_CONFIG)))


def dynamodb(session: Session) -> Callable[[], DynamoDBClient]:
    """Makes the DynamoDB client once."""
    return cache(lambda: cast("DynamoDBClient", session.create_client("dynamodb", config=_CONFIG)))


def dynamodb_beside(session: Session) -> Callable[[], DynamoDBClient]:
    """Makes a DynamoDB client once that gives up soon."""
    return cache(lambda: cast("DynamoDBClient", session.create_client("dynamodb", config=_BESIDE)))
