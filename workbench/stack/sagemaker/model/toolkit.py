"""The model code's side of the container contract, by the rules of the official sagemaker-inference toolkit.

- The program (`SAGEMAKER_PROGRAM`, default `inference.py`) lies in `code/` of the model directory, which goes on the
  import path.
- `model_fn(model_dir)` loads; `input_fn(body, content_type)`, `predict_fn(data, model)` and
  `output_fn(prediction, accept)` serve, or `transform_fn(model, body, content_type, accept)` alone. Each may take one
  more argument, the context. `pre_model_fn(model_dir)` and `model_warmup_fn(model_dir, model)` run if defined.
- No Accept, or `*/*`, means `SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT` (default application/json). Bodies of exactly the
  types application/json and text/csv are decoded as UTF-8 before `input_fn`; all others stay bytes. The response's
  content type is the accept, unless the function returns `(body, content_type)`.
- A function that answers with a generator of text or bytes streams: its parts go out as they come.
- Without `input_fn` or `output_fn` the toolkit's own codecs serve (`codecs.py`); without `predict_fn` every request is
  a 500.
- An exception is a 500 of its text and the traceback; one of the toolkit's kind, with `status_code` and `message`, has
  that status and that text before the traceback.

Not the toolkit's: an exception with an integer `status` from 400 to 499 answers with that status and its text alone,
and `execution_parameters()` answers GET /execution-parameters where it is defined. A JSON or CSV body that is not UTF-8
goes to `input_fn` as bytes, so that the model's own refusal comes back: the toolkit's 500 would come before the model.
Source: aws/sagemaker-inference-toolkit, transformer.py, parameters.py, environment.py.
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import json
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench.stack.sagemaker.model import codecs

UTF8_TYPES = {"application/json", "text/csv"}
TEXT = "text/plain; charset=utf-8"
TRANSFORM_PARTS = ("input_fn", "predict_fn", "output_fn")


class ContractError(Exception):
    """The model archive's code does not keep the contract; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back over HTTP."""

    status: int
    body: bytes | Iterator[bytes]
    """Whole, or in parts that are made while they are sent; the latter raises whatever the model code raises."""
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Context:
    """What a function with one more argument receives: the part of the toolkit's context that model code uses.

    The signatures are the toolkit's: `index` tells batched requests apart there, and here there is only one.
    """

    def __init__(self, model_dir: str, headers: Mapping[str, str]) -> None:
        self.system_properties = {"model_dir": model_dir, "gpu_id": None}
        self.response_headers: dict[str, str] = {}
        self._headers = {k.lower(): v for k, v in headers.items()}

    def get_all_request_header(self, index: int = 0) -> Mapping[str, str]:  # noqa: ARG002
        """All request headers, names in lower case."""
        return self._headers

    def get_request_header(self, index: int, name: str) -> str | None:  # noqa: ARG002
        """One request header."""
        return self._headers.get(name.lower())

    def set_response_header(self, index: int, name: str, value: str) -> None:  # noqa: ARG002
        """Add a response header."""
        self.response_headers[name] = value


class Handler:
    """A loaded model that answers requests. Thread-safe as far as the model code is."""

    def __init__(self, model_dir: Path, environment: Mapping[str, str]) -> None:
        """Import the program and load the model. Raises whatever the model code raises, or `ContractError`."""
        self._model_dir = str(model_dir)
        self._default_accept = environment.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", "application/json")
        module = _import(model_dir, environment.get("SAGEMAKER_PROGRAM", "inference.py"))
        self._parts = _functions(module)
        self._parameters: Callable[[], object] | None = getattr(module, "execution_parameters", None)
        context = Context(self._model_dir, {})
        if before := getattr(module, "pre_model_fn", None):
            _call(before, [self._model_dir], context)
        self._model = _call(self._parts["model_fn"], [self._model_dir], context)
        if warm_up := getattr(module, "model_warmup_fn", None):
            _call(warm_up, [self._model_dir, self._model], context)

    def execution_parameters(self) -> Mapping[str, object] | None:
        """What the program says of batch transform; None when it says nothing."""
        return dict(self._parameters()) if self._parameters else None  # type: ignore[call-overload]

    def answer(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Serve one request; never raises for what the model code does. Tracebacks go to standard error."""
        context = Context(self._model_dir, headers)
        try:
            content_type = context.get_request_header(0, "content-type")
            accept = context.get_request_header(0, "accept")
            if not accept or accept == "*/*":
                accept = self._default_accept
            result = self._transform(_decoded(body, content_type), content_type, accept, context)
            if isinstance(result, tuple):
                result, accept = result
            return Reply(200, _encoded(result), accept, context.response_headers)
        except Exception as error:  # whatever model code raises becomes an HTTP answer
            traceback.print_exc(file=sys.stderr)
            return _refusal(error)

    def _transform(self, data: str | bytes, content_type: str | None, accept: str, context: Context) -> Any:
        if transform := self._parts.get("transform_fn"):
            return _call(transform, [self._model, data, content_type, accept], context)
        parsed = _call(self._parts["input_fn"], [data, content_type], context)
        prediction = _call(self._parts["predict_fn"], [parsed, self._model], context)
        return _call(self._parts["output_fn"], [prediction, accept], context)


def _import(model_dir: Path, program: str) -> ModuleType:
    code = model_dir / "code"
    file = code / program
    if not file.is_file():
        nested = [str(p.relative_to(model_dir)) for p in sorted(model_dir.glob(f"*/code/{program}"))]
        hint = f"; found {nested[0]}: files must be at the archive's root" if nested else ""
        raise ContractError(f"the model archive has no code/{program}{hint}")
    sys.path.insert(0, str(code))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ContractError(f"code/{program} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    found = {n: f for n in ("model_fn", "transform_fn", *TRANSFORM_PARTS) if callable(f := getattr(module, n, None))}
    if "transform_fn" in found and any(n in found for n in TRANSFORM_PARTS):
        raise ContractError(
            "Cannot use transform_fn implementation in conjunction with input_fn, predict_fn, and/or output_fn "
            "implementation"
        )
    if "model_fn" not in found:
        raise ContractError(f"{Path(str(module.__file__)).name} does not define model_fn")
    return found if "transform_fn" in found else {**DEFAULTS, **found}


def _no_predict_fn(data: Any, model: Any) -> Any:
    raise NotImplementedError(
        "\nPlease provide a predict_fn implementation.\n"
        "See documentation for predict_fn at https://sagemaker.readthedocs.io/en/stable/\n"
    )


DEFAULTS: Mapping[str, Callable[..., Any]] = {
    "input_fn": codecs.decoded,
    "predict_fn": _no_predict_fn,
    "output_fn": codecs.encoded,
}


def _call(function: Callable[..., Any], arguments: list[Any], context: Context) -> Any:
    # The toolkit's rule: one parameter more than there are arguments means that the function wants the context.
    wanted = len(inspect.signature(function).parameters)
    if wanted == len(arguments) + 1:
        return function(*arguments, context)
    return function(*arguments)


def _decoded(body: bytes, content_type: str | None) -> str | bytes:
    if content_type not in UTF8_TYPES:
        return body
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body


def _encoded(result: object) -> bytes | Iterator[bytes]:
    if not isinstance(result, Generator):
        return _part(result)
    # The first part is awaited here, so that what fails before it is still an HTTP error.
    first = list(itertools.islice(result, 1))
    return map(_part, itertools.chain(first, result))


def _part(result: object) -> bytes:
    if isinstance(result, bytes | bytearray | memoryview):
        return bytes(result)
    return result.encode("utf-8") if isinstance(result, str) else json.dumps(result).encode("utf-8")


def _refusal(error: Exception) -> Reply:
    status = getattr(error, "status", None)
    if isinstance(status, int) and 400 <= status < 500:
        return Reply(status, str(error).encode(), TEXT)
    told, message = getattr(error, "status_code", None), error
    if isinstance(told, int) and 400 <= told < 600:
        status, message = told, getattr(error, "message", error)
    else:
        status = 500
    return Reply(status, f"{message}\n{traceback.format_exc()}".encode(), TEXT)
