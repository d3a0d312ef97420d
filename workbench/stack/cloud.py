"""Which cloud the offline commands speak to: an endpoint, test credentials, nothing inherited from a real account.

The endpoint is the stack that runs here, unless the usual variables of the SDKs and of LocalStack's client
(AWS_ENDPOINT_URL, LOCALSTACK_HOST) name another one. Offline commands never fall through to AWS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boto3.session import Session
from localstack_client.config import get_service_endpoint

from workbench.stack.layout import Layout
from workbench.stack.processes import StackError, find

REGION = "us-east-1"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
NAMED_BY = ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST")
# Kept although they begin with AWS_: they say whom to trust, not who we are.
KEPT = {"AWS_CA_BUNDLE"}


@dataclass(frozen=True, slots=True)
class Cloud:
    """A LocalStack-compatible endpoint and the identity of what runs behind it."""

    endpoint_url: str
    cloud_id: str
    """Changes when the resources are gone with an earlier process."""

    def client(self, service: str) -> Any:
        """A boto3 client of the service on this endpoint."""
        # Named here, so that no variable of the environment can lead it to another cloud.
        session: Any = Session(region_name=REGION)  # its stubs know services by literal names only
        return session.client(service, endpoint_url=self.endpoint_url, **CREDENTIALS)

    def environment(self) -> dict[str, str]:
        """The environment of a process that must speak to this cloud and to no other."""
        return offline_environment(self.endpoint_url)


def offline_environment(endpoint_url: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` (this process's environment) without any AWS identity, pointed at `endpoint_url`."""
    source = os.environ if base is None else base
    env = {k: v for k, v in source.items() if not k.startswith("AWS_") or k in KEPT}
    for name in (*NAMED_BY, "LOCALSTACK_HOSTNAME", "USE_SSL"):
        env.pop(name, None)
    return env | {
        "AWS_ENDPOINT_URL": endpoint_url,
        **{name.upper(): value for name, value in CREDENTIALS.items()},
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def named_endpoint() -> str | None:
    """The endpoint that the usual variables name, or None when none of them is set."""
    if not any(os.environ.get(name) for name in NAMED_BY):
        return None
    return str(get_service_endpoint("sts")).rstrip("/")


def current(layout: Layout) -> Cloud:
    """The cloud to speak to. Raises `StackError` when no endpoint is named and no stack runs here."""
    named = named_endpoint()
    record = layout.read_record()
    if record is not None and (named is None or named == record.endpoint_url):
        dead = [process.name for process in record.processes if find(process) is None]
        if not dead:
            return Cloud(record.endpoint_url, record.cloud_id)
        if named is None:
            raise StackError(
                f"the offline stack is broken ({', '.join(dead)} died): `inferlane up` repairs it, `inferlane status` "
                "says what is lost"
            )
    if named is None:
        raise StackError("the offline stack is not running: start it with `inferlane up`")
    return Cloud(named, cloud_id=named)
