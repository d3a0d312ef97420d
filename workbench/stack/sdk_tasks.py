"""Step Functions' tasks `aws-sdk:sagemaker:*` on the offline stack: our emulator answers them, under AWS's error names.

MiniStack knows the services that a state machine may call by a table, and has no SageMaker in it. Here it gets one:
what a task calls goes to our emulator, and an error comes back under the name that Step Functions gives it on AWS,
which is that of the Java SDK's exception: the error's own name with `Exception` at its end (`ResourceLimitExceeded` is
`SageMaker.ResourceLimitExceededException`), and `SageMaker.SageMakerException` for what SageMaker's model does not list
(`ValidationException`, `ThrottlingException`). Source: Step Functions developer guide, "AWS SDK service integrations".

One of the files that know MiniStack's internals: three names, which a contract test holds.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import botocore.session

SERVICE = "sagemaker"
PREFIX = "SageMaker"
UNLISTED = "SageMakerException"

Answer = tuple[int, Mapping[str, str], bytes]
Call = Callable[[Mapping[str, str], bytes], Awaitable[Answer]]
"""One call of SageMaker's control plane: headers and body in, status, headers and body out."""


def offer_sagemaker(call: Call) -> None:
    """Let state machines call SageMaker; `call` carries each call out on MiniStack's event loop."""
    from ministack import app
    from ministack.services import stepfunctions

    model: Any = botocore.session.get_session().get_service_model(SERVICE)
    listed = frozenset(shape.name for shape in model.error_shapes)

    async def serve(_: str, __: str, headers: Mapping[str, str], body: str | bytes, ___: object) -> Answer:
        status, answered, text = await call(headers, body.encode() if isinstance(body, str) else body)
        return status, answered, renamed(text, listed) if status >= 400 else text

    stepfunctions._AWS_SDK_SERVICE_MAP[SERVICE] = {"target_prefix": PREFIX, "protocol": "json"}
    stepfunctions._AWS_SDK_ERROR_PREFIX[SERVICE] = PREFIX
    app.SERVICE_HANDLERS[SERVICE] = serve


def renamed(error: bytes, listed: frozenset[str]) -> bytes:
    """A control plane's error with Step Functions' name for it; `listed` are the errors of SageMaker's model."""
    try:
        document = json.loads(error)
        name = str(document["__type"]).rpartition("#")[2]
    except (ValueError, KeyError, TypeError):  # not an error in AWS's form: the emulator itself does not answer
        document, name = {"message": error.decode(errors="replace")}, UNLISTED
    if name not in listed:
        name = UNLISTED
    return json.dumps(document | {"__type": name if name.endswith("Exception") else f"{name}Exception"}).encode()
