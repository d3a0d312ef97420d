"""The cloud a stack is deployed to: boto3 calls against any LocalStack-compatible endpoint.

Where it is: `AWS_ENDPOINT_URL_<SERVICE>` for that service, else what `localstack-client` makes of its usual variables
(`AWS_ENDPOINT_URL`, `LOCALSTACK_HOST`, `EDGE_PORT`). Credentials are the usual variables, else `test`/`test`. Errors
are mapped here once. botocore retries twice; on top of that, calls that fail only because a role, policy, model or
configuration made a moment ago has not spread yet are repeated for up to 45 s, as real clouds need.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.model import StructureShape
from localstack_client.config import get_service_endpoints
from localstack_client.session import Session

from workbench.stack.deployer.errors import CloudError, Interrupted

SPREAD_LIMIT_S = 45.0
SPREAD_PAUSE_S = 2.0
CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 60
CONNECTIONS = 32

# What real clouds answer while a fresh role, policy, model or configuration spreads.
_SPREADING = re.compile(
    r"cannot be assumed by|could not assume role|invalid principal|"
    r"could not find (model|endpoint configuration)|failed to write to log|role.*(is invalid|does not exist or)",
    re.IGNORECASE,
)
_GONE_CODE = re.compile(r"not_?found|^NoSuch|NonExistent|DoesNotExist|^404$", re.IGNORECASE)
_GONE_TEXT = re.compile(r"could not find|does not exist|not found|no such|no scalable target", re.IGNORECASE)
# Services that answer "not there" with their word for bad input.
_VAGUE_CODES = {"ValidationException", "ValidationError", "InvalidParameterValueException"}


class Cloud(Protocol):
    """What the rows need from a cloud."""

    region: str

    @property
    def account(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, object]:
        """One API call by its boto3 method name; a failure is a `CloudError`."""
        ...

    def shape(self, service: str, operation: str) -> StructureShape:
        """The input shape of an operation."""
        ...

    def pause(self, seconds: float) -> None:
        """Waits; raises `Interrupted` as soon as the engineer does."""
        ...


class BotoCloud:
    """A cloud behind boto3. Threads may share it."""

    def __init__(
        self, region: str, interrupted: threading.Event | None = None, *, spread_pause_s: float = SPREAD_PAUSE_S
    ) -> None:
        self.region = region
        self._spread_pause_s = spread_pause_s
        self.endpoint = str(get_service_endpoints()["s3"]).rstrip("/")
        self._interrupted = interrupted or threading.Event()
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._account = ""
        self._session = Session(
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "test"),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
            aws_session_token=os.environ.get("AWS_SESSION_TOKEN"),
            region_name=region,
        )

    @property
    def account(self) -> str:
        if not self._account:
            self._account = str(self.call("sts", "get_caller_identity", {})["Account"])
        return self._account

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, object]:
        method = getattr(self._client(service), operation)
        deadline = time.monotonic() + SPREAD_LIMIT_S
        while True:
            try:
                response = cast("dict[str, object]", method(**parameters))
            except ClientError as error:
                failure = self._failure(service, operation, error)
                creates = not operation.startswith(("describe_", "get_", "list_", "delete_", "head_"))
                if not (creates and _SPREADING.search(str(failure)) and time.monotonic() < deadline):
                    raise failure from error
                self.pause(self._spread_pause_s)
            except BotoCoreError as error:
                raise CloudError(f"{service}.{operation}", _one_line(error)) from error
            else:
                response.pop("ResponseMetadata", None)
                return response

    def shape(self, service: str, operation: str) -> StructureShape:
        client = self._client(service)
        name = client.meta.method_to_api_mapping[operation]
        return cast(StructureShape, client.meta.service_model.operation_model(name).input_shape)

    def pause(self, seconds: float) -> None:
        if self._interrupted.wait(seconds):
            raise Interrupted

    def _failure(self, service: str, operation: str, error: ClientError) -> CloudError:
        detail = error.response.get("Error", {})
        code, text = str(detail.get("Code", "")), _one_line(detail.get("Message") or "")
        if not text:
            where = self._client(service).meta.endpoint_url
            text = f"{where} gave no reason: does it offer {service}?"
        return CloudError(f"{service}.{operation}", f"{code}: {text}", code)

    def _client(self, service: str) -> Any:
        with self._lock:  # building a client is not thread-safe; using one is
            if service not in self._clients:
                self._clients[service] = self._build(service)
            return self._clients[service]

    def _build(self, service: str) -> Any:
        config = Config(
            retries={"mode": "standard", "total_max_attempts": 3},
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            max_pool_connections=CONNECTIONS,
            s3={"addressing_style": "path"},
        )
        default: dict[str, Any] = {
            "endpoint_url": self.endpoint,
            "config": config,
            "region_name": self.region,
            "aws_access_key_id": self._session.aws_access_key_id,
            "aws_secret_access_key": self._session.aws_secret_access_key,
            "aws_session_token": self._session.aws_session_token,
        }
        if service in get_service_endpoints():
            client = self._session.client(service, config=config)
        else:  # not in localstack-client's list of services
            client = boto3.client(service, **default)  # type: ignore[call-overload]  # the service is a variable
        # The SDKs name the variable by the service's id, which only the service's model knows.
        variable = "AWS_ENDPOINT_URL_" + client.meta.service_model.service_id.upper().replace(" ", "_").replace(
            "-", "_"
        )
        own = os.environ.get(variable)
        if not own:
            return client
        return boto3.client(service, **{**default, "endpoint_url": own})  # type: ignore[call-overload]


def is_gone(error: CloudError) -> bool:
    """Whether the cloud said that what the call names is not there."""
    if _GONE_CODE.search(error.code):
        return True
    return error.code in _VAGUE_CODES and _GONE_TEXT.search(str(error)) is not None


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
