"""Error forms as botocore reads them."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.parsers import create_parser

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.wire import Answer, AwsError, LogPlace

PLACE = LogPlace("us-east-1", "000000000000", "chat")


def parsed(answer: Answer) -> Any:
    """What botocore makes of an answer of InvokeEndpoint."""
    model = botocore.session.get_session().get_service_model("sagemaker-runtime")
    shape = model.operation_model("InvokeEndpoint").output_shape
    assert shape is not None
    response = {
        "status_code": answer.status,
        "headers": {k.lower(): v for k, v in answer.headers.items()},
        "body": answer.body,
    }
    return create_parser("rest-json").parse(response, shape)


@pytest.mark.fidelity(
    "runtime errors",
    "A throttle is HTTP 400 with message null; a 413 has no error type, so that its code is 413",
    source="opensearch-project/ml-commons#2429; aws/amazon-sagemaker-examples#245",
)
@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (wire.throttled(), 400, "ThrottlingException", None),
        (AwsError("413", "too big", 413), 413, "413", "too big"),
        (AwsError("ServiceUnavailable", "no instance", 503), 503, "ServiceUnavailable", "no instance"),
        (AwsError("ValidationError", "not found"), 400, "ValidationError", "not found"),
    ],
)
def test_runtime_errors(error: AwsError, status: int, code: str, message: str | None) -> None:
    """botocore finds code and message; a throttle's message is null, and a 413's code is its status."""
    answer = wire.runtime_error(error, "id")
    assert answer.status == status
    assert parsed(answer)["Error"] == {"Code": code, "Message": message}


@pytest.mark.fidelity(
    "runtime errors",
    "ModelError (424) names client or server side, the container's status and text, and the log group",
    source="aws/sagemaker-xgboost-container#390; botocore: ModelError",
)
def test_model_error() -> None:
    """A ModelError names the side that is to blame and carries the container's status and text."""
    answer = wire.model_error(415, "no such type", PLACE, "id")
    assert answer.status == 424
    assert parsed(answer)["Error"] == {
        "Code": "ModelError",
        "Message": 'Received client error (415) from primary with message "no such type". See https://us-east-1.console.'
        "aws.amazon.com/cloudwatch/home?region=us-east-1#logEventViewer:group=/aws/sagemaker/Endpoints/chat in account "
        "000000000000 for more information.",
    }
    assert b'"OriginalStatusCode": 415' in answer.body
    assert b"Received server error (0)" in wire.model_error(0, wire.TIMED_OUT, PLACE, "id").body


@pytest.mark.fidelity(
    "control errors",
    "A control-plane error's code is in the body and in a header",
    source="AWS JSON 1.1 protocol",
)
def test_control_errors() -> None:
    """A control-plane error has its code in the body and in the header, and a request id."""
    answer = wire.control_error(wire.invalid("wrong"))
    assert answer.status == 400
    assert answer.body == b'{"__type": "ValidationException", "message": "wrong"}'
    assert answer.headers["x-amzn-ErrorType"] == "ValidationException"
    assert answer.headers["x-amzn-RequestId"]
