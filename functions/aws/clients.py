"""AWS clients by botocore, made once when first needed.

botocore's session is enough (boto3 adds import time and nothing that is used here), and it is imported with the first
client: most instances of the router never need one (see `direct`).

* Beside a request: short timeouts, one attempt. A metric that cannot be read in time serves from its last good value,
  so waiting or retrying would only add to a request's latency.
* For a caller who waits for just this: two attempts that end well within the gateway's thirty seconds.
* Behind the queue nobody waits: up to three attempts with back-off, and a connection for each of `side_by_side`'s
  hands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from functions.aws.side_by_side import HANDS

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_cloudwatch import CloudWatchClient

_PROMPT_S: Final = 4
"""A record or an object of some kilobytes."""
_PATIENT_S: Final = 20
"""An object of some megabytes; SQS holds a long poll back for a second, all else answers in milliseconds."""


def session() -> Session:
    """A session with the process's own credentials and region."""
    from botocore.session import get_session

    return get_session()


def cloudwatch(session: Callable[[], Session]) -> Callable[[], CloudWatchClient]:
    """Makes the CloudWatch client once."""
    return cache(lambda: _client(session()))


def prompt(session: Session, service: str) -> Any:
    """A client for what somebody waits for; typed by whoever takes it."""
    from botocore.config import Config

    config = Config(
        connect_timeout=1,
        read_timeout=_PROMPT_S,
        retries={"mode": "standard", "total_max_attempts": 2},
        signature_version="s3v4" if service == "s3" else None,
    )
    return session.create_client(service, config=config)


def patient(session: Session, service: str) -> Any:
    """A client for work that nobody waits for; typed by whoever takes it."""
    from botocore.config import Config

    config = Config(
        connect_timeout=2,
        read_timeout=_PATIENT_S,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=HANDS,
        signature_version="s3v4" if service == "s3" else None,  # else a link would be signed the old way
    )
    return session.create_client(service, config=config)


def _client(session: Session) -> CloudWatchClient:
    from botocore.config import Config

    config = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1})
    return cast("CloudWatchClient", session.create_client("cloudwatch", config=config))
