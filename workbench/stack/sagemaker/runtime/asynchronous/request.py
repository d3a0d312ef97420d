"""An asynchronous request: what was asked, and where its answer goes. Pure.

- The answer goes to `S3OutputPath/[S3OutputPathExtension/]FILE`, where FILE is the request's Filename or a fresh id
  with `.out` (seen: not the inference id, which notices carry). What failed goes to `S3FailurePath/ID-error.out`, and
  nowhere without that path. Without S3OutputPath there is no object, only what the notice includes.
- Body and InputLocation exclude each other, and one must be given (botocore, InvokeEndpointAsync).
- A request that has waited longer than RequestTTLSeconds (21,600 unless given) expires; the model has
  InvocationTimeoutSeconds (900).
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.stack.sagemaker.api.invocations import Parameters
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.records import Asynchronous

TTL_S = 21_600
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Request:
    """One that was accepted."""

    endpoint: str
    inference_id: str
    parameters: Parameters
    body: bytes | None
    """Given with the call; else it is at `input`."""
    input: str | None
    output: str | None
    failure: str | None
    received: float
    """Epoch second."""
    queued: float
    """The same on the emulated clock."""
    ttl_s: float
    """Emulated seconds it may wait."""
    timeout_s: float
    key: str
    """Its own, whatever inference id the caller gave."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Fresh ids for a request that does not bring them."""

    inference: str
    file: str


def accepted(
    endpoint: str, parameters: Parameters, body: bytes, config: Asynchronous, ids: Ids, now: tuple[float, float]
) -> Request:
    """The request of a call; `now` is the wall clock's time and the emulated one. Raises `AwsError`."""
    source = parameters.get("InputLocation")
    if bool(source) == bool(body):
        raise AwsError("ValidationError", "Provide exactly one of Body and InputLocation.")
    received, emulated = now
    return Request(
        endpoint,
        parameters.get("InferenceId") or ids.inference,
        parameters,
        body or None,
        source,
        _output(parameters, config, ids),
        f"{config.failure_path.rstrip('/')}/{ids.file}-error.out" if config.failure_path else None,
        received,
        emulated,
        parameters.get("RequestTTLSeconds", TTL_S),
        parameters.get("InvocationTimeoutSeconds", TIMEOUT_S),
        ids.file,
    )


def _output(parameters: Parameters, config: Asynchronous, ids: Ids) -> str | None:
    if config.output_path is None:
        return None
    parts = (config.output_path, parameters.get("S3OutputPathExtension"), parameters.get("Filename", f"{ids.file}.out"))
    return "/".join(part.rstrip("/") for part in parts if part)
