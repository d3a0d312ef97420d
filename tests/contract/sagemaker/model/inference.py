"""The tests' model: does what each request tells it, and says which process of which version did it."""

import json
import os
import time
from typing import Any

VERSION = os.environ.get("VERSION", "1")
if VERSION == "broken":
    raise ImportError("no module named 'moon'")


class CallerError(ValueError):
    """Carries the HTTP status the caller is to get."""

    status = 415


def model_fn(model_dir: str) -> dict[str, Any]:
    time.sleep(float(os.environ.get("LOAD_S", "0")))
    return {"pid": os.getpid(), "version": VERSION, "files": sorted(os.listdir(model_dir))}


def input_fn(body: str | bytes, content_type: str | None) -> Any:
    if content_type == "application/octet-stream":
        return {"bytes": len(body)}
    return json.loads(body)


def predict_fn(data: dict[str, Any], model: dict[str, Any], context: Any) -> dict[str, Any]:
    time.sleep(data.get("sleep_s", 0))
    if data.get("fail") == "server":
        raise RuntimeError("the model broke")
    if data.get("fail") == "client":
        raise CallerError("only cats are understood")
    attributes = context.get_request_header(0, "X-Amzn-SageMaker-Custom-Attributes")
    if attributes:
        context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", f"seen:{attributes}")
    return {"input": data, **model}


def output_fn(prediction: dict[str, Any], accept: str) -> str:
    return json.dumps(prediction)
