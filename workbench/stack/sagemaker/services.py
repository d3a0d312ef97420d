"""The AWS services the emulator itself uses: S3 (models, batches), CloudWatch (metrics, alarms), EventBridge and SNS.

Each is at the endpoint that the SDK's standard variables or configuration file name for it: AWS_ENDPOINT_URL for all,
AWS_ENDPOINT_URL_S3, _CLOUDWATCH, _EVENTBRIDGE and _SNS for one. Nothing falls through to the real AWS: without an
endpoint for S3 and CloudWatch the emulator does not start, and events and notices without one are dropped. Where no
credentials are found, made-up ones are used, as emulated services take any.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError

from workbench.stack.sagemaker.runtime.asynchronous.host import Topics
from workbench.stack.sagemaker.transform.events import Bus, as_service

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)
NEEDED = {"s3": "AWS_ENDPOINT_URL_S3", "cloudwatch": "AWS_ENDPOINT_URL_CLOUDWATCH"}
"""boto3's name -> the variable that names an endpoint for this service alone."""
AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn")
REACH_S = 2.0


class ServiceError(Exception):
    """A service that is needed is not to be had; the message says why, with the way out."""


@dataclass(frozen=True, slots=True)
class Services:
    """Clients."""

    s3: S3Client
    cloudwatch: CloudWatchClient
    bus: Bus
    topics: Topics


def named(service: str) -> str | None:
    """The endpoint that is named for a service. Raises `ServiceError`."""
    session = botocore.session.get_session()
    try:
        scoped = session.get_scoped_config()
        provider: Any = ConfiguredEndpointProvider(session.full_config, scoped, client_name=service)
        return str(url) if (url := provider.provide()) else None
    except BotoCoreError as error:  # a profile that is not there, a configuration file that cannot be read
        raise ServiceError(f"the AWS configuration cannot be used: {error}") from error


def require_named() -> None:
    """Raises `ServiceError` when no endpoint is named for what is needed."""
    for service, variable in NEEDED.items():
        if named(service) is None:
            raise ServiceError(
                f"no endpoint is named for {service}: set AWS_ENDPOINT_URL, or {variable} for it alone, to where it is "
                "emulated (MiniStack, LocalStack, moto); the real AWS is used only when its URL is named"
            )


def require_answering() -> None:
    """Raises `ServiceError` when nobody listens where S3 is said to be."""
    url = named("s3") or ""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=REACH_S).close()
    except OSError as error:
        raise ServiceError(
            f"S3 at {url} does not answer ({error}): start it, or name another endpoint with AWS_ENDPOINT_URL"
        ) from error


def connect(region: str) -> Services:
    """The clients, once `require_named` has passed."""
    session = boto3.Session(region_name=region)
    if session.get_credentials() is None:
        session = boto3.Session("test", "test", region_name=region)
    # A lost metric call is tried again by Telemetry; a stuck one must not hold up the end of the server.
    brief = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1})
    retries = {"mode": "standard", "total_max_attempts": 3}
    # Emulated hosts have no name for each bucket.
    style = {"addressing_style": "auto" if _is_aws(named("s3")) else "path"}
    patient = Config(connect_timeout=5, read_timeout=60, retries=retries, s3=style)  # type: ignore[arg-type]
    bus: Bus = as_service(session.client("events", config=brief)) if named("events") else _Nobody("events")
    topics: Topics = session.client("sns", config=brief) if named("sns") else _Nobody("notices")
    return Services(session.client("s3", config=patient), session.client("cloudwatch", config=brief), bus, topics)


def _is_aws(url: str | None) -> bool:
    return (urlsplit(url or "").hostname or "").endswith(AWS_DOMAINS)


class _Nobody:
    """In place of EventBridge and SNS where no endpoint is named for them. Says once that nobody hears."""

    def __init__(self, what: str) -> None:
        self._what, self._said = what, False

    def put_events(self, *, Entries: Any) -> Any:  # noqa: N803, ARG002 - boto3's shape
        """PutEvents."""
        return self._drop()

    def publish(self, *, TopicArn: str, Message: str) -> Any:  # noqa: N803, ARG002 - boto3's shape
        """Publish."""
        return self._drop()

    def _drop(self) -> dict[str, Any]:
        if not self._said:
            self._said = True
            log.warning("%s are dropped: no endpoint is named for them", self._what)
        return {}
