"""`python -m workbench.stack.deployer {up,preview,destroy,outputs}`: one process a deploy.

Exit codes: 0 done, 1 failed (the last line says why and what stands), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from workbench.stack.deployer import functions, program
from workbench.stack.deployer.cloud import BotoCloud
from workbench.stack.deployer.engine import Engine
from workbench.stack.deployer.errors import DeployError, Interrupted, ProgramError, ResourceError
from workbench.stack.deployer.handler import handlers
from workbench.stack.deployer.monitor import EngineMonitor
from workbench.stack.deployer.preview import Preview
from workbench.stack.deployer.progress import JsonProgress, Progress, TextProgress
from workbench.stack.deployer.state import State, StateFile
from workbench.stack.deployer.table import ROWS
from workbench.stack.deployer.values import encode, is_unknown

SAME_CTRL_C_S = 2.0
SECRET = "[secret]"  # noqa: S105  what is shown in a secret's place


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one action; everything that goes wrong ends in one error event and an exit code."""
    options = _parser().parse_args(arguments)
    progress: Progress = JsonProgress(sys.stdout) if options.json_events else TextProgress(sys.stdout, sys.stderr)
    interrupted = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _Interruption(interrupted))
    try:
        _act(options, progress, interrupted)
    except Interrupted as error:
        progress.error(str(error))
        return 130
    except DeployError as error:
        progress.error(str(error))
        return 1
    return 0


def _act(options: argparse.Namespace, progress: Progress, interrupted: threading.Event) -> None:
    started = time.monotonic()
    wanted = program.load(options.project_dir.resolve(), options.stack, dict(options.set))
    file = StateFile.open(options.state.resolve(), wanted.project, wanted.stack)
    if options.action == "outputs":
        if options.cloud_id not in ("", file.state.cloud_id):
            raise ProgramError(f"stack {options.stack} is not deployed on this cloud: deploy it first")
        progress.result(file.state.outputs, {}, time.monotonic() - started)
        return
    with file.exclusive():
        _match_cloud(file, options.cloud_id, progress)
        cloud = BotoCloud(wanted.region, interrupted)
        if options.action == "preview":
            _preview(wanted, file, cloud, progress, started)
            return
        engine = Engine(file, cloud, handlers(ROWS), progress, interrupted)
        up = options.action == "up"
        outputs = _up(wanted, engine, show_secrets=options.show_secrets) if up else _destroy(engine)
        progress.result(outputs, dict(engine.counts), time.monotonic() - started)


def _up(wanted: program.Program, engine: Engine, *, show_secrets: bool) -> Mapping[str, object]:
    monitor = EngineMonitor(engine, partial(functions.call, engine.cloud), engine.cloud.region)
    try:
        program.run(wanted, monitor, preview=False)
        engine.finish()
    except Interrupted:
        raise
    except Exception as error:
        if engine.interrupted.is_set():
            raise Interrupted from error
        raise _failed(engine, error) from error
    shown = {name: _sorted(encode(value)) for name, value in sorted(monitor.outputs.items())}
    masked = {name: SECRET if name in monitor.secret_outputs else value for name, value in shown.items()}
    with engine.file.change() as state:
        state.outputs = masked
    return shown if show_secrets else masked


def _preview(wanted: program.Program, file: StateFile, cloud: BotoCloud, progress: Progress, started: float) -> None:
    preview = Preview(file.state, cloud, handlers(ROWS), progress)
    monitor = EngineMonitor(preview, partial(functions.call, cloud), cloud.region)
    try:
        program.run(wanted, monitor, preview=True)
    except DeployError:
        raise
    except Exception as error:
        raise ProgramError(_cause(error)) from error
    preview.finish()
    known = {
        name: SECRET
        if name in monitor.secret_outputs
        else "(known after deploy)"
        if is_unknown(value)
        else encode(value)
        for name, value in monitor.outputs.items()
    }
    progress.result(known, dict(preview.counts), time.monotonic() - started)


def _destroy(engine: Engine) -> Mapping[str, object]:
    try:
        engine.destroy()
    except ResourceError as error:
        left = [*engine.state.retired, *engine.state.resources.values()]
        names = ", ".join(sorted(f'{record.type.split(":")[-1]} "{record.name}" ({record.id})' for record in left))
        raise DeployError(f"{error}; still standing: {names}; run destroy again") from error
    with engine.file.change() as state:
        state.outputs = {}
    return {}


def _sorted(value: object) -> object:
    """Pulumi's wire format has no order of keys; ours is the alphabet's."""
    result: object = json.loads(json.dumps(value, sort_keys=True))
    return result


def _failed(engine: Engine, error: Exception) -> DeployError:
    """One line: the first failure, how many others, what stands, the way on."""
    first = engine.failures[0] if engine.failures else error
    others = len(engine.failures) - 1
    more = f" (and {others} more)" if others > 0 else ""
    return DeployError(
        f"{_cause(first)}{more}; {engine.standing()} resources stand and are in {engine.file.path.name}: "
        "fix the cause and run the same command to continue"
    )


def _cause(error: Exception) -> str:
    """In one line; an error of the program's own gets its type said."""
    text = " ".join(str(error).split())
    return text if isinstance(error, DeployError) else f"the program failed: {type(error).__name__}: {text}"


def _match_cloud(file: StateFile, cloud_id: str, progress: Progress) -> None:
    """A state belongs to one life of a cloud: what an emulator forgot when it ended does not stand any more."""
    state = file.state
    if not cloud_id or state.cloud_id == cloud_id:
        return
    if not state.is_empty():
        progress.notice("the earlier cloud is gone; deploying anew")
    file.state = State(state.project, state.stack, cloud_id)


class _Interruption:
    """The first Ctrl-C asks for an orderly end. A terminal and a parent may both pass it on, so a second one at once is
    the same one; later, it means that the engineer waits no longer."""

    def __init__(self, interrupted: threading.Event) -> None:
        self._interrupted = interrupted
        self._first = 0.0

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._interrupted.is_set():
            self._first = time.monotonic()
            self._interrupted.set()
        elif time.monotonic() - self._first > SAME_CTRL_C_S:
            os._exit(130)


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workbench.stack.deployer", description=__doc__)
    parser.add_argument("action", choices=["up", "preview", "destroy", "outputs"])
    parser.add_argument("--stack", required=True)
    parser.add_argument("--project-dir", type=Path, default=Path())
    parser.add_argument("--state", type=Path, required=True, help="the JSON file that remembers what stands")
    parser.add_argument(
        "--set", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="override a config value"
    )
    parser.add_argument("--cloud-id", default="", help="the life of the cloud; a state of another life is dropped")
    parser.add_argument("--json-events", action="store_true", help="report JSON lines")
    parser.add_argument("--show-secrets", action="store_true", help="print secret outputs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
