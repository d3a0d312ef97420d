"""Bring the offline stack up and down, and say how it is.

Three processes: `sagemaker` (our emulator and, below it, the model processes), `gateway` (MiniStack and the way to the
emulator), `bridge` (metrics out of the Lambda logs). They listen on loopback only. An earlier run that died is cleared
away first; a start that fails leaves nothing behind.
"""

from __future__ import annotations

import shutil
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.stack.cloud import REGION, offline_environment
from workbench.stack.layout import Layout, ProcessRecord, StackRecord, project_root
from workbench.stack.processes import (
    StackError,
    find,
    free_port,
    interrupts_deferred,
    require_free,
    spawn,
    stop,
    wait_until,
)

HOST = "127.0.0.1"
DEFAULT_PORT = 4566
START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the emulated SageMaker's clocks tick; all durations are AWS's seconds, passed `time_scale` times faster.

    AWS publishes metrics once a minute, one to three minutes late. That is kept when time itself is sped up; at AWS's
    own speed nobody wants to wait for it, so bins are short and early there unless they are asked for.
    """

    time_scale: float = 1.0
    metric_period_s: int | None = None
    metric_lag_s: float | None = None
    serverless_idle_s: float = 300.0

    def options(self) -> list[str]:
        """As the emulator's options."""
        period_s, lag_s = (10, 1.0) if self.time_scale == 1.0 else (60, 60.0)
        given = {
            "--time-scale": self.time_scale,
            "--metric-period": period_s if self.metric_period_s is None else self.metric_period_s,
            "--metric-lag": lag_s if self.metric_lag_s is None else self.metric_lag_s,
            "--serverless-idle": self.serverless_idle_s,
        }
        return [word for option, value in given.items() for word in (option, str(value))]


def up(
    layout: Layout, *, port: int = DEFAULT_PORT, pace: Pace | None = None, say: Callable[[str], None]
) -> StackRecord:
    """Start the stack, or return the one that runs. Raises `StackError`; a failed start leaves no process."""
    running = layout.read_record()
    if running is not None:
        dead = [process.name for process in running.processes if find(process) is None]
        if not dead:
            if running.endpoint_url != f"http://{HOST}:{port}":
                raise StackError(f"the stack already runs at {running.endpoint_url}: `inferlane down` first")
            return running
        say(f"an earlier run died ({', '.join(dead)}): clearing what it left")
    down(layout)
    require_free(HOST, port)
    layout.create()
    return _start(layout, port, pace or Pace(), say)


def down(layout: Layout) -> list[str]:
    """Stop every process of the stack and forget its cloud. Returns the names of what was running."""
    record = layout.read_record()
    stopped: list[str] = []
    if record is not None:
        stopped = [process.name for process in record.processes if find(process) is not None]
        # Against the order of starting: the bridge and the gateway use the emulator, not the other way round.
        for process in reversed(record.processes):
            stop([process])
        layout.remove_record()
        shutil.rmtree(layout.deployments(record.endpoint_url), ignore_errors=True)
    for folder in (layout.tmp, layout.sagemaker):
        shutil.rmtree(folder, ignore_errors=True)
    return stopped


def health(record: StackRecord) -> dict[str, str]:
    """State of each process: `up`, `not answering` or `dead`."""
    probes = {
        "sagemaker": f"{record.sagemaker_url}/_inferlane/health",
        "gateway": f"{record.endpoint_url}/_localstack/health",
    }
    states = {}
    for process in record.processes:
        if find(process) is None:
            states[process.name] = "dead"
        elif process.name in probes and not answers(probes[process.name]):
            states[process.name] = "not answering"
        else:
            states[process.name] = "up"
    return states


def answers(url: str, timeout_s: float = 2.0) -> bool:
    """Whether a GET of the URL gives 200."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as response:  # noqa: S310 - http to loopback
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def _start(layout: Layout, port: int, pace: Pace, say: Callable[[str], None]) -> StackRecord:
    endpoint_url, sagemaker_url = f"http://{HOST}:{port}", f"http://{HOST}:{free_port()}"
    env = offline_environment(endpoint_url) | {
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(layout.tmp),
        # MiniStack's Lambda workers inherit these; the SDKs' own variable sends inference straight to the emulator.
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": sagemaker_url,
        "MINISTACK_REGION": REGION,
        "AUTH": "true",  # signatures are verified and IAM policies enforced, for the functions' roles too
        "MINISTACK_VERSION": "1.5.33",
        "LOG_LEVEL": "WARNING",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }
    started: list[ProcessRecord] = []
    cloud_id = uuid.uuid4().hex

    def launch(name: str, *arguments: str) -> tuple[ProcessRecord, Path]:
        log = layout.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", f"workbench.stack.{name}", *arguments]
        with interrupts_deferred():
            process = spawn(name, command, log=log, env=env, cwd=project_root())
            started.append(process)
            # Written as each one starts: whatever happens next, `down` finds it.
            layout.write_record(StackRecord(cloud_id, endpoint_url, sagemaker_url, tuple(started)))
        say(f"started {name} (pid {process.pid})")
        return process, log

    try:
        sagemaker, sagemaker_log = launch(
            "sagemaker", "--host", HOST, "--port", sagemaker_url.rsplit(":", 1)[1],
            "--state-dir", str(layout.sagemaker), *pace.options(),
        )  # fmt: skip
        gateway, gateway_log = launch("gateway", "--host", HOST, "--port", str(port), "--sagemaker", sagemaker_url)
        wait_until(
            lambda: answers(f"{sagemaker_url}/_inferlane/health"),
            sagemaker,
            timeout_s=START_TIMEOUT_S,
            log=sagemaker_log,
        )
        wait_until(
            lambda: answers(f"{endpoint_url}/_localstack/health"), gateway, timeout_s=START_TIMEOUT_S, log=gateway_log
        )
        launch("bridge")
    except BaseException:  # Ctrl-C as well: nothing may stay behind, and a second Ctrl-C must not stop the stopping
        with interrupts_deferred():
            down(layout)
        raise
    record = layout.read_record()
    if record is None:
        raise StackError(f"the record of the running stack cannot be read back: {layout.record_file}")
    return record
