"""The tests' model: does what each request tells it, and says which process of which version did it."""

import json
import os
import time
from collections.abc import Iterator
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
    if "write" in data:
        with open(data["write"], "w") as file:
            file.write("x")
    if data.get("fail") == "client":
        raise CallerError("only cats are understood")
    attributes = context.get_request_header(0, "X-Amzn-SageMaker-Custom-Attributes")
    if attributes:
        context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", f"seen:{attributes}")
    headers = {k: v for k, v in context.get_all_request_header(0).items() if k != "host"}
    return {"input": data, "headers": headers, **model}


def output_fn(prediction: dict[str, Any], accept: str) -> str | Iterator[str]:
    told = prediction["input"]
    return parts(told) if "parts" in told else json.dumps(prediction)


def parts(told: dict[str, Any]) -> Iterator[str]:
    for number in range(told["parts"]):
        if told.get("die_at") == number:
            os._exit(1)
        if told.get("fail_at") == number:
            raise RuntimeError("the model broke in the middle")
        yield f"part {number};"
        time.sleep(told.get("pause_s", 0))
