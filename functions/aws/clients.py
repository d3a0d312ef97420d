"""AWS clients for what is read beside a request: short timeouts, one attempt, made once when first needed.

botocore's session is enough (boto3 adds import time and nothing that is used here). A policy or metric that cannot
be read in time serves from its last good value, so waiting or retrying would only add to a request's latency. botocore
itself is imported with the first client: most instances never need one (see `direct`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_cloudwatch import CloudWatchClient


def session() -> Session:
    """A session with the process's own credentials and region."""
    from botocore.session import get_session

    return get_session()


def cloudwatch(session: Callable[[], Session]) -> Callable[[], CloudWatchClient]:
    """Makes the CloudWatch client once."""
    return cache(lambda: _client(session()))


def _client(session: Session) -> CloudWatchClient:
    from botocore.config import Config

    config = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1})
    return cast("CloudWatchClient", session.create_client("cloudwatch", config=config))
