"""What SNS is told of an asynchronous request's end: the message. Pure.

Its fields are the developer guide's ("async-inference-check-predictions") and those of public consumers. The answer is
included, as Base64, when IncludeInferenceResponseIn names the topic and it is at most 128 KB.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from workbench.stack.sagemaker.records import Asynchronous
from workbench.stack.sagemaker.runtime.asynchronous.request import Request

LARGEST_INCLUDED = 128 * 1024
SUCCESS, ERROR = "SUCCESS_NOTIFICATION_TOPIC", "ERROR_NOTIFICATION_TOPIC"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request. `reason` is None when it was answered."""

    reason: str | None
    content: bytes = b""
    content_type: str | None = None


def topic(config: Asynchronous, result: Result) -> str | None:
    """The topic that is told."""
    return config.success_topic if result.reason is None else config.error_topic


def message(region: str, request: Request, config: Asynchronous, result: Result, now: float) -> str:
    """The notice."""
    asked = {
        "accept": request.parameters.get("Accept"),
        "contentType": request.parameters.get("ContentType"),
        "endpointName": request.endpoint,
        "inputLocation": request.input,
    }
    seen: dict[str, object] = {
        "awsRegion": region,
        "eventTime": _time(now),
        "receivedTime": _time(request.received),
        "invocationStatus": "Completed" if result.reason is None else "Failed",
        "requestParameters": _given(asked),
        "inferenceId": request.inference_id,
        "eventVersion": "1.0",
        "eventSource": "aws:sagemaker",
        "eventName": "InferenceResult",
    }
    if result.reason is None:
        seen["responseParameters"] = _given({"contentType": result.content_type, "outputLocation": request.output})
    else:
        seen["failureReason"] = result.reason
        if request.failure:
            seen["failureLocation"] = request.failure
    wanted = SUCCESS if result.reason is None else ERROR
    if wanted in config.included_in and result.content and len(result.content) <= LARGEST_INCLUDED:
        seen["responseBody"] = {"content": base64.b64encode(result.content).decode(), "encoding": "BASE64"}
    return json.dumps(seen)


def _given(members: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
