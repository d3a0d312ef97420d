"""The runtime's three operations: the headers each takes, and whether their values fit. By botocore's model alone.

A parameter of the API is a header of the request; which one depends on the operation (Accept is `Accept` of
InvokeEndpoint, `X-Amzn-SageMaker-Accept` of the other two). What breaks a length, a range or a pattern is a
ValidationError in the service's words, all problems at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape

from workbench.stack.sagemaker.api.validation import check
from workbench.stack.sagemaker.api.wire import AwsError

SYNC, ASYNC, STREAM = "InvokeEndpoint", "InvokeEndpointAsync", "InvokeEndpointWithResponseStream"
Parameters = Mapping[str, Any]
"""Values by the API's names: strings, and the numbers of the asynchronous operation."""


@dataclass(frozen=True, slots=True, eq=False)
class _Parameter:
    name: str
    header: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the runtime."""

    name: str
    takes: tuple[_Parameter, ...]
    gives: Mapping[str, str]
    """Header of each parameter of its answer."""

    def parse(self, headers: Mapping[str, str]) -> Parameters:
        """What a request says. Raises `AwsError`."""
        given: dict[str, Any] = {}
        problems: list[str] = []
        for parameter in self.takes:
            text = headers.get(parameter.header)
            if text is None:
                continue
            value = _value(parameter, text)
            given[parameter.name] = value
            problems.extend(_problems(parameter, value))
        if problems:
            plural = "errors" if len(problems) > 1 else "error"
            raise AwsError("ValidationError", f"{len(problems)} validation {plural} detected: {'; '.join(problems)}")
        return given


def operations() -> Mapping[str, Operation]:
    """The three, by name."""
    model = ServiceModel(Loader().load_service_model("sagemaker-runtime", "service-2"), "sagemaker-runtime")
    return {name: _operation(model, name) for name in (SYNC, ASYNC, STREAM)}


def _operation(model: ServiceModel, name: str) -> Operation:
    found = model.operation_model(name)
    if found.input_shape is None or found.output_shape is None:
        raise RuntimeError(f"botocore's model of {name} has no input or no output")
    takes = tuple(
        _Parameter(member, shape.serialization["name"], shape)
        for member, shape in found.input_shape.members.items()
        if shape.serialization.get("location") == "header"
    )
    gives = {
        member: shape.serialization["name"]
        for member, shape in found.output_shape.members.items()
        if shape.serialization.get("location") == "header"
    }
    return Operation(name, takes, gives)


@lru_cache(maxsize=1024)
def _problems(parameter: _Parameter, value: str | int) -> tuple[str, ...]:
    """A member's own rules that are broken, under the name that it has in the whole request. Types repeat all day."""
    return tuple(p.replace("at ''", f"at '{_path(parameter)}'") for p in check(parameter.shape, value))


def _value(parameter: _Parameter, text: str) -> str | int:
    if parameter.shape.type_name != "integer":
        return text
    try:
        return int(text)
    except ValueError as error:
        raise AwsError("ValidationError", f"{parameter.name} must be a whole number; got {text!r}") from error


def _path(parameter: _Parameter) -> str:
    return parameter.name[:1].lower() + parameter.name[1:]
