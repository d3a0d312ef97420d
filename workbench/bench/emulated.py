"""The SageMaker emulator with a model that echoes, for measurements: no AWS emulator is needed, only a model archive.

The archive is served as an S3 object by a thread here; every other call the emulator makes of AWS (metrics) is answered
with nothing.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import urllib3

from workbench.bench.processes import BenchError
from workbench.stack.cloud import offline_environment
from workbench.stack.layout import project_root

PROGRAM = """
import json, os, random, time

LEAST_S, MOST_S = map(float, os.environ.get("TAKES_S", "0 0").split())

def model_fn(model_dir): return None
def input_fn(body, content_type): return json.loads(body)
def predict_fn(data, model):
    time.sleep(random.uniform(LEAST_S, MOST_S))
    return data
def output_fn(prediction, accept): return json.dumps(prediction)
"""
ROLE = "arn:aws:iam::000000000000:role/bench"
_START_S = 60


class Model(NamedTuple):
    """A served model: where its own process listens, and where its endpoint is invoked."""

    direct: str
    endpoint: str


@contextmanager
def serving(models: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Model]]:
    """Real-time endpoints of one instance each, by name with their environment, while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="inferlane-bench-") as folder, _store(_archive()) as store:
        errors = Path(folder) / "stderr"
        arguments = ["-m", "workbench.stack.sagemaker", "--port", "0", "--state-dir", str(Path(folder) / "state")]
        with errors.open("w") as stderr:
            process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=project_root(),
                env={**offline_environment(store)},
            )  # fmt: skip
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("ready "):
                raise BenchError(f"the emulator did not start: {errors.read_text()[-1500:].strip()}")
            yield _deployed(line.split()[1], models)
        finally:
            process.terminate()
            process.wait(20)


def _deployed(url: str, models: Mapping[str, Mapping[str, str]]) -> dict[str, Model]:
    client = boto3.Session("test", "test", region_name="us-east-1").client("sagemaker", endpoint_url=url)
    for name, environment in models.items():
        container: Any = {
            "Image": "bench/echo:1",
            "ModelDataUrl": "s3://bench/model.tar.gz",
            "Environment": environment,
        }
        variant: Any = {"VariantName": "AllTraffic", "ModelName": name, "InstanceType": "ml.m5.large"}
        variant["InitialInstanceCount"] = 1
        client.create_model(
            ModelName=name, PrimaryContainer=container, ExecutionRoleArn="arn:aws:iam::000000000000:role/bench"
        )
        client.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
        client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        seen = urllib3.request("GET", f"{url}/_inferlane/endpoints", retries=False).json()["endpoints"]
        if failed := [e["failure_reason"] for e in seen if e["state"] == "Failed"]:
            raise BenchError(f"a model did not start: {failed[0]}")
        if all(e["state"] == "InService" for e in seen):
            return {e["name"]: _model(url, e) for e in seen}
        time.sleep(0.1)
    raise BenchError(f"the models were not in service after {_START_S} s")


def _model(url: str, seen: Mapping[str, Any]) -> Model:
    process = seen["variants"][0]["replicas"][0]["url"]
    return Model(f"{process}/invocations", f"{url}/endpoints/{seen['name']}/invocations")


def _archive() -> bytes:
    out, content = io.BytesIO(), PROGRAM.encode()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        entry = tarfile.TarInfo("code/inference.py")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@contextmanager
def _store(archive: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(archive)

        def do_HEAD(self) -> None:
            self._answer(archive)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(json.dumps({}).encode())

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the emulator tells what goes wrong."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
