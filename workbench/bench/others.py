"""Other routers in front of the same backend: the article's FastAPI sketch, and LiteLLM's proxy.

They are installed from PyPI, at fixed versions, into a virtual environment under `build/bench/`, and are no dependency
of this project. Both run as their authors start them: uvicorn with its fast loop and parser, `litellm --config`. A
Redis server that answers at once is assumed for the sketch: its load is a value in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from workbench.bench import scene
from workbench.bench.processes import BenchError
from workbench.stack.layout import project_root
from workbench.stack.processes import free_port

REQUIREMENTS: Final = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", "requests==2.34.2", "litellm[proxy]==1.108.7")
FOLDER: Final = project_root() / "build/bench/venv"
_INSTALL_S: Final = 900
_START_S: Final = 90
_STOP_S: Final = 10

# Text, not a module: it imports what this project does not depend on. The article's pseudo-code, made to run: `os` is
# imported, the load is a value in memory, and the three back ends are paths of one server.
SKETCH: Final = """\
import os
import requests
from fastapi import FastAPI, Request

app = FastAPI()
loads = {"dedicated_cluster_load": "42"}


@app.post("/predict")
async def predict(request: Request):
    data = await request.json()
    current_load = float(loads.get("dedicated_cluster_load"))
    user_priority = data.get("priority", "normal")
    if user_priority == "vip" or current_load < 70:
        backend_url = os.environ["BACKEND"] + "/vip/predict"
    elif current_load < 90:
        backend_url = os.environ["BACKEND"] + "/normal/predict"
    else:
        backend_url = os.getenv("SERVERLESS_FUNCTION_URL")
    resp = requests.post(backend_url, json=data)
    return resp.json()
"""


@dataclass(frozen=True, slots=True)
class Other:
    """One router that runs: where it is called."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class _Start:
    command: list[str]
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)


class NotInstalledError(BenchError):
    """The other routers cannot be had here; the message says why."""


def installed(folder: Path = FOLDER, base: str = sys.executable) -> Path:
    """The virtual environment with both of them, made by the interpreter `base`. Raises `NotInstalledError`."""
    stamp = folder / "installed.txt"
    wanted = "\n".join(REQUIREMENTS) + "\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return folder
    python = str(folder / "bin/python")
    quiet = ["-qq", "--disable-pip-version-check"]
    for command in (
        [base, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", *quiet, *REQUIREMENTS],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)  # noqa: S603
        except subprocess.TimeoutExpired as error:
            raise NotInstalledError(f"pip was not done after {_INSTALL_S} s") from error
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise NotInstalledError(f"{' '.join(command[1:4])} failed: {last}")
    stamp.write_text(wanted)
    return folder


@contextmanager
def article(venv: Path, backend: str, folder: Path) -> Iterator[Other]:
    """The article's sketch under uvicorn, one worker."""
    (folder / "sketch.py").write_text(SKETCH)
    port = free_port()
    command = [str(venv / "bin/uvicorn"), "sketch:app", "--port", str(port), "--no-access-log"]
    url = f"http://127.0.0.1:{port}"
    with _running(_Start(command, f"{url}/openapi.json", {"BACKEND": backend}), folder):
        yield Other("article_fastapi", f"{url}/predict")


@contextmanager
def litellm(venv: Path, backend: str, folder: Path) -> Iterator[Other]:
    """LiteLLM's proxy with the backend as its one OpenAI-compatible deployment."""
    deployment = {"model": f"openai/{scene.MODEL}", "api_base": f"{backend}/v1", "api_key": "unused"}
    config = {
        "model_list": [{"model_name": scene.MODEL, "litellm_params": deployment}],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
    }
    (folder / "litellm.yaml").write_text(json.dumps(config))
    port = free_port()
    command = [str(venv / "bin/litellm"), "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "LITELLM_MASTER_KEY": scene.BEARER,
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no look at the internet
    }
    url = f"http://127.0.0.1:{port}"
    with _running(_Start(command, f"{url}/health/liveliness", environment), folder):
        yield Other("litellm_proxy", f"{url}/v1/chat/completions")


@contextmanager
def _running(start: _Start, folder: Path) -> Iterator[None]:
    log = folder / f"{Path(start.command[0]).name}.log"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LITELLM_"))}
    environment = {**inherited, "NO_PROXY": "127.0.0.1", **start.environment}
    with log.open("w") as out:
        process = subprocess.Popen(  # noqa: S603 - what `installed` has put there
            start.command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment
        )
    try:
        _wait(process, start.ready, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise BenchError(f"{log.stem} did not start: {log.read_text()[-1500:].strip()}")
