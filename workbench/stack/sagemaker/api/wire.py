"""AWS's wire forms, without I/O: which operation a request names, whether its document is well-formed, how errors look.

Control planes speak JSON 1.1 (`X-Amz-Target: SageMaker.CreateModel`); errors are HTTP 400 with `__type` and `message`
in the body and the code in `x-amzn-ErrorType`. The runtime speaks REST-JSON; its forms are the functions at the end,
each with the public source of its text in FACTS-style notes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from botocore.loaders import Loader
from botocore.model import OperationNotFoundError, ServiceModel, StructureShape

from workbench.stack.sagemaker.api.validation import MalformedError, check

SERVICES = {"SageMaker": "sagemaker", "AnyScaleFrontendService": "application-autoscaling"}
"""Target prefix -> botocore's service name."""

Document = Mapping[str, Any]
"""A request or response body that has passed `check` (or is about to leave): JSON at the edge."""


class AwsError(Exception):
    """A refusal in the form AWS gives it."""

    def __init__(self, code: str, message: str | None, status: int = 400) -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message
        self.status = status


def invalid(message: str) -> AwsError:
    """The error of both control planes for a request that cannot be served as it stands."""
    return AwsError("ValidationException", message)


class Call(NamedTuple):
    """One parsed and validated control-plane request."""

    service: str
    operation: str
    document: Document


@dataclass(frozen=True, slots=True)
class Answer:
    """A response before it becomes the web framework's."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Protocol:
    """Parses calls against botocore's own service models; `known` names the operations that are served."""

    def __init__(self, known: Mapping[str, frozenset[str]]) -> None:
        loader = Loader()
        self._models = {
            service: ServiceModel(loader.load_service_model(service, "service-2"), service)
            for service in SERVICES.values()
        }
        self._known = known

    def parse(self, target: str, body: bytes) -> Call:
        """Raises `AwsError`: unknown operation, one that is not emulated, or a document the shapes refuse."""
        prefix, _, operation = target.partition(".")
        service = SERVICES.get(prefix)
        if service is None or not operation:
            raise AwsError("UnknownOperationException", f"X-Amz-Target {target!r} names no operation served here")
        try:
            shape = self.input_shape(service, operation)
        except OperationNotFoundError as error:
            raise AwsError("UnknownOperationException", f"{service} has no operation {operation}") from error
        if operation not in self._known[service]:
            names = ", ".join(sorted(self._known[service]))
            raise AwsError("UnknownOperationException", f"{operation} is not emulated; {service} serves: {names}")
        try:
            document = json.loads(body or b"{}")
        except ValueError as error:
            raise AwsError("SerializationException", f"the body is not JSON: {error}") from error
        return Call(service, operation, self._checked(shape, document))

    def input_shape(self, service: str, operation: str) -> StructureShape | None:
        """What an operation's request looks like; None when it takes nothing."""
        return self._models[service].operation_model(operation).input_shape

    @staticmethod
    def _checked(shape: StructureShape | None, document: object) -> Document:
        if not isinstance(document, dict):
            raise AwsError("SerializationException", "Start of structure or map expected")
        if shape is not None:
            try:
                problems = check(shape, document)
            except MalformedError as error:
                raise AwsError("SerializationException", str(error)) from error
            if problems:
                plural = "errors" if len(problems) > 1 else "error"
                raise invalid(f"{len(problems)} validation {plural} detected: {'; '.join(problems)}")
        return document


def request_id() -> str:
    """A fresh value of `x-amzn-RequestId`."""
    return str(uuid.uuid4())


def control_answer(document: Document) -> Answer:
    """A control-plane success."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": request_id()}
    return Answer(200, headers, json.dumps(document).encode())


def control_error(error: AwsError) -> Answer:
    """A control-plane refusal."""
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "x-amzn-ErrorType": error.code,
        "x-amzn-RequestId": request_id(),
    }
    return Answer(error.status, headers, json.dumps({"__type": error.code, "message": error.message}).encode())


def runtime_error(error: AwsError, id_: str, members: Document | None = None) -> Answer:
    """A runtime refusal; `members` are the error shape's own fields (ModelError has three).

    A throttle has `message` null, which botocore prints as None (opensearch-project/ml-commons#2429). A 413 carries no
    error type, so that its code is the status itself, as clients see it (amazon-sagemaker-examples#245).
    """
    headers = {"Content-Type": "application/json", "x-amzn-RequestId": id_}
    if error.code != str(error.status):
        headers["x-amzn-ErrorType"] = error.code
    key = "Message" if members else "message"
    return Answer(error.status, headers, json.dumps({key: error.message, **(members or {})}).encode())


def throttled() -> AwsError:
    """Over MaxConcurrency, or a platform limit: HTTP 400, not 429, and no text."""
    return AwsError("ThrottlingException", None, 400)


PLATFORM_ERRORS: Mapping[int, tuple[str, str]] = {
    403: ("AccessDeniedException", "User is not authorized to perform: sagemaker:InvokeEndpoint on this resource."),
    429: (
        "ModelNotReadyException",
        "The resources of the serverless endpoint variant are still being provisioned. Try again later.",
    ),
    500: ("InternalFailure", "An internal failure occurred."),
    502: ("502", "Bad Gateway"),
    503: ("ServiceUnavailable", "The service is unavailable."),
    504: ("504", "Gateway Time-out"),
    530: ("InternalDependencyException", "Your request caused an exception with an internal dependency."),
}
"""SageMaker's own refusals of InvokeEndpoint: status -> code, text. Codes and statuses are botocore's model of the
runtime (403 is every AWS service's; 502 and 504 are a load balancer's, whose code is the status); of the texts only the
serverless one has a public source."""


def platform_error(status: int) -> AwsError:
    """One of `PLATFORM_ERRORS`."""
    code, text = PLATFORM_ERRORS[status]
    return AwsError(code, text, status)


def denied(region: str, account: str, endpoint: str) -> AwsError:
    """What IAM answers to whom no policy allows the call."""
    return AwsError(
        "AccessDeniedException",
        f"User: arn:aws:iam::{account}:root is not authorized to perform: sagemaker:InvokeEndpoint on resource: "
        f"arn:aws:sagemaker:{region}:{account}:endpoint/{endpoint.lower()} because no identity-based policy allows the "
        "sagemaker:InvokeEndpoint action",
        403,
    )


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where AWS would keep an endpoint's logs; error texts point there."""

    region: str
    account: str
    endpoint: str

    @property
    def arn(self) -> str:
        """ARN of the endpoint's log group."""
        return f"arn:aws:logs:{self.region}:{self.account}:log-group:/aws/sagemaker/Endpoints/{self.endpoint}"

    @property
    def pointer(self) -> str:
        """The sentence that ends a ModelError's message."""
        group = f"/aws/sagemaker/Endpoints/{self.endpoint}"
        url = f"https://{self.region}.console.aws.amazon.com/cloudwatch/home?region={self.region}"
        return f"See {url}#logEventViewer:group={group} in account {self.account} for more information."


TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the latency metrics for "
    "each container in Amazon CloudWatch, resolve the issue, and try again."
)
"""aws/sagemaker-python-sdk#1119."""


def no_response(endpoint: str) -> str:
    """Of a container whose connection ends before it has answered: aws/amazon-sagemaker-examples#2815 and #3089."""
    return (
        f"Amazon SageMaker could not get a response from the {endpoint} endpoint. This can occur when CPU or memory "
        "utilization is high. To check your utilization, see Amazon CloudWatch. To fix this problem, use an instance "
        "type with more CPU capacity or memory."
    )


def model_error(status: int, text: str, place: LogPlace, id_: str) -> Answer:
    """HTTP 424: the container answered `status` (0: not at all) with `text` (aws/sagemaker-xgboost-container#390)."""
    side = "client" if 400 <= status < 500 else "server"
    message = f'Received {side} error ({status}) from primary with message "{text}". {place.pointer}'
    members = {"OriginalStatusCode": status, "OriginalMessage": text, "LogStreamArn": place.arn}
    return runtime_error(AwsError("ModelError", message, 424), id_, members)
