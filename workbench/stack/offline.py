"""Bring the offline stack up and down, and say how it is.

Three processes: `sagemaker` (our emulator and, below it, the model processes), `gateway` (MiniStack and the way to the
emulator), `bridge` (metrics out of the Lambda logs). They listen on loopback only, on sockets that are opened here, so
that no port is guessed before it is had. A start that fails leaves nothing behind.

When one has died, `up` starts it again: the emulator takes its state up, with the same options on the same port, and
the bridge has none. MiniStack keeps its state only over a clean stop. When it has died everything it held is gone, so
what is left is cleared away and the stack starts blank; what has to be deployed again is told before and then.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from workbench.stack.cloud import REGION, offline_environment
from workbench.stack.layout import Layout, ProcessRecord, StackRecord, project_root
from workbench.stack.processes import (
    StackError,
    find,
    interrupts_deferred,
    listen,
    spawn,
    stop,
    stop_marked,
    wait_until,
)

HOST = "127.0.0.1"
SAGEMAKER, GATEWAY, BRIDGE = NAMES = ("sagemaker", "gateway", "bridge")
"""In the order in which they start."""
MARK = "TMPDIR"
"""Variable by which a process of the stack, and whatever it starts, is known: it names the stack's own folder."""
DEFAULT_PORT = 4566
START_TIMEOUT_S = 30.0
PORT_PATIENCE_S = 2.0


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


def up(layout: Layout, *, port: int | None = None, pace: Pace | None = None, say: Callable[[str], None]) -> StackRecord:
    """Start the stack, or what of it has died; or return the one that runs.

    Port 0 is a free one; None is the one that the stack had, else 4566. Raises `StackError`; a start from nothing that
    fails leaves no process.
    """
    record = layout.read_record()
    if record is not None:
        dead, had = died(record), urlsplit(record.endpoint_url).port
        port = had if port is None else port
        if GATEWAY not in dead and port not in (0, had):
            raise StackError(f"the stack already runs at {record.endpoint_url}: `inferlane down` first")
        if not dead:
            return record
        if GATEWAY not in dead:
            return _repair(layout, record, dead, say)
        say(f"an earlier run died ({', '.join(dead)}): clearing what it left")
        if deployed := _deployed(layout, record):
            say(f"all resources of {', '.join(deployed)} are lost: {_deploy(deployed)}")
    down(layout)
    layout.create()
    return _start(layout, DEFAULT_PORT if port is None else port, pace or Pace(), say)


def down(layout: Layout) -> list[str]:
    """Stop every process of the stack and forget its cloud. Returns the names of what was running."""
    record = layout.read_record()
    stopped: list[str] = []
    if record is not None:
        stopped = [process.name for process in record.processes if find(process) is not None]
        # Against the order of starting: the bridge and the gateway use the emulator, not the other way round.
        for process in reversed(record.processes):
            stop([process])
        # What a killed one left: the emulated Lambda's workers, which do not see their parent's end while they work.
        stop_marked(MARK, str(layout.tmp))
        layout.remove_record()
        shutil.rmtree(layout.deployments(record.endpoint_url), ignore_errors=True)
    for folder in (layout.tmp, layout.sagemaker):
        shutil.rmtree(folder, ignore_errors=True)
    return stopped


def died(record: StackRecord) -> list[str]:
    """Names of the stack's processes that are not there."""
    there = {process.name for process in record.processes if find(process) is not None}
    return [name for name in NAMES if name not in there]


def advice(layout: Layout, record: StackRecord) -> list[str]:
    """What is lost with each process that died, and the way out; nothing where all run."""
    dead = died(record)
    if GATEWAY in dead:
        deployed = _deployed(layout, record)
        lost = f"all resources of {', '.join(deployed)} are lost" if deployed else "nothing was deployed"
        then = f", then {_deploy(deployed)}" if deployed else ""
        log = layout.logs / f"{GATEWAY}.log"
        return [f"the emulated cloud died (log: {log}) and keeps nothing over that; {lost}: `inferlane up`{then}"]
    comes_back = {
        SAGEMAKER: "its models, endpoints and scaling are kept, requests to them fail meanwhile",
        BRIDGE: "metrics of the functions are missing from then on",
    }
    unsaved = [] if SAGEMAKER in dead else _unsaved(record)
    return unsaved + [
        f"{name} died (log: {layout.logs / f'{name}.log'}); {comes_back[name]}: `inferlane up`" for name in dead
    ]


def _unsaved(record: StackRecord) -> list[str]:
    try:
        health = json.loads(_get(_probes(record)[SAGEMAKER]))
    except (OSError, ValueError):  # it does not answer: `health` says so
        return []
    return [f"what changes now would not survive a crash: {health['unsaved']}"] if "unsaved" in health else []


def _deployed(layout: Layout, record: StackRecord) -> list[str]:
    return sorted(file.stem for file in layout.deployments(record.endpoint_url).glob("*.json"))


def _deploy(stacks: list[str]) -> str:
    return ", ".join(f"`inferlane deploy --stack {stack}`" for stack in stacks)


def health(record: StackRecord) -> dict[str, str]:
    """State of each process: `up`, `not answering` or `dead`."""
    probes, states = _probes(record), dict.fromkeys(NAMES, "dead")
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
        _get(url, timeout_s)
    except OSError:
        return False
    return True


def _get(url: str, timeout_s: float = 2.0) -> bytes:
    """The answer to a GET. Raises `OSError` where that is not 200."""
    with urllib.request.urlopen(url, timeout=timeout_s) as response:  # noqa: S310 - http to loopback
        if response.status != 200:
            raise OSError(f"{url} gives HTTP {response.status}")
        body: bytes = response.read()
        return body


def _start(layout: Layout, port: int, pace: Pace, say: Callable[[str], None]) -> StackRecord:
    """Everything, from nothing."""
    with listen(HOST, port) as front, listen(HOST, 0) as back:
        record = StackRecord(uuid.uuid4().hex, _url(front), _url(back), (), tuple(pace.options()))
        try:
            record, sagemaker = _launch(layout, record, SAGEMAKER, back, say)
            record, gateway = _launch(layout, record, GATEWAY, front, say)
            front.close()
            back.close()
            _wait(layout, record, sagemaker)
            _wait(layout, record, gateway)
            record, _ = _launch(layout, record, BRIDGE, None, say)
        except BaseException:  # Ctrl-C as well: nothing may stay behind, and a second Ctrl-C must not stop the stopping
            with interrupts_deferred():
                down(layout)
            raise
    return record


def _repair(layout: Layout, record: StackRecord, dead: list[str], say: Callable[[str], None]) -> StackRecord:
    """Start again what died of a stack whose cloud lives. What starts and does not answer is stopped again."""
    say(f"{', '.join(dead)} died: starting again")
    if SAGEMAKER in dead:
        try:
            # A killed process is dead for us before the last of its threads has let go of the port.
            back = listen(HOST, urlsplit(record.sagemaker_url).port or 0, PORT_PATIENCE_S)
        except StackError as error:
            # The functions know the emulator by its old port.
            raise StackError(f"{error}; or give the stack up: `inferlane down`, then `inferlane up`") from error
        with back:
            record, sagemaker = _launch(layout, record, SAGEMAKER, back, say)
        try:
            _wait(layout, record, sagemaker)
        except BaseException:
            stop([sagemaker])
            raise
    if BRIDGE in dead:
        record, _ = _launch(layout, record, BRIDGE, None, say)
    return record


def _launch(
    layout: Layout, record: StackRecord, name: str, listener: socket.socket | None, say: Callable[[str], None]
) -> tuple[StackRecord, ProcessRecord]:
    """Start one process. Returns the record with it, which is also written."""
    arguments = {
        SAGEMAKER: ["--state-dir", str(layout.sagemaker), *record.sagemaker_options],
        GATEWAY: ["--sagemaker", record.sagemaker_url],
        BRIDGE: [],
    }[name]
    if listener is not None:
        arguments += ["--fd", str(listener.fileno())]
    log = layout.logs / f"{name}.log"
    if log.exists():  # it may say why the one before died
        log.replace(log.with_suffix(".previous.log"))
    command = [sys.executable, "-m", f"workbench.stack.{name}", *arguments]
    env, kept = _environment(layout, record), [] if listener is None else [listener]
    with interrupts_deferred():
        process = spawn(name, command, log=log, env=env, cwd=project_root(), keep=kept)
        others = [each for each in record.processes if each.name != name]
        processes = sorted([*others, process], key=lambda each: NAMES.index(each.name))
        record = replace(record, processes=tuple(processes))
        # Written as each one starts: whatever happens next, `down` finds it.
        layout.write_record(record)
    say(f"started {name} (pid {process.pid})")
    return record, process


def _wait(layout: Layout, record: StackRecord, process: ProcessRecord) -> None:
    """Until the process answers."""
    url = _probes(record)[process.name]
    wait_until(lambda: answers(url), process, timeout_s=START_TIMEOUT_S, log=layout.logs / f"{process.name}.log")


def _environment(layout: Layout, record: StackRecord) -> dict[str, str]:
    return offline_environment(record.endpoint_url) | {
        "PYTHONUNBUFFERED": "1",
        MARK: str(layout.tmp),
        # MiniStack's Lambda workers inherit these; the SDKs' own variable sends inference straight to the emulator.
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": record.sagemaker_url,
        "MINISTACK_REGION": REGION,
        "AUTH": "true",  # signatures are verified and IAM policies enforced, for the functions' roles too
        "MINISTACK_VERSION": "1.5.33",
        "LOG_LEVEL": "WARNING",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }


def _probes(record: StackRecord) -> dict[str, str]:
    """Where each process that listens says that it is well."""
    return {
        SAGEMAKER: f"{record.sagemaker_url}/_inferlane/health",
        GATEWAY: f"{record.endpoint_url}/_localstack/health",
    }


def _url(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}"
