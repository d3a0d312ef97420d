"""Deploy a stack of the Pulumi program to the offline cloud: one deployer process a run, its events passed on.

The deployer runs in a process of its own because a second run of Pulumi's runtime in one process can hang.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout, project_root
from workbench.stack.processes import StackError

Action = Literal["up", "preview", "destroy", "outputs"]
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a run of the deployer ended with."""

    stack: str
    outputs: Mapping[str, Any]
    counts: Mapping[str, int]
    """Resources by what was done to them: create, update, replace, delete, same."""
    seconds: float

    @property
    def url(self) -> str:
        """Base URL of the front door, without a trailing slash."""
        return str(self.outputs["url"]).rstrip("/")

    @property
    def changed(self) -> int:
        """How many resources were touched."""
        return sum(number for action, number in self.counts.items() if action != "same")

    def lane(self, lane: str, model: str | None = None) -> Mapping[str, Any]:
        """One lane of the topology. Raises `StackError` naming what there is."""
        models: Mapping[str, Any] = self.outputs["topology"]["models"]
        name = model or next(iter(models))
        if name not in models:
            raise StackError(f"stack {self.stack} has no model {name!r}; it has: {', '.join(models)}")
        lanes: Mapping[str, Mapping[str, Any]] = models[name]["lanes"]
        if lane not in lanes:
            raise StackError(f"model {name} has no lane {lane!r} in stack {self.stack}; it has: {', '.join(lanes)}")
        return lanes[lane]


def run(
    action: Action,
    stack: str,
    *,
    cloud: Cloud,
    layout: Layout,
    settings: Sequence[str] = (),
    project: Path | None = None,
    on_event: Callable[[Event], None] = lambda _event: None,
) -> Deployment:
    """Run the deployer. `settings` are `key=value` overrides of the stack's configuration.

    Raises `StackError` with the deployer's own one-line cause. On Ctrl-C the deployer finishes the calls in flight and
    saves its state before this returns.
    """
    root = project or project_root()
    require_stack(root, stack)
    state = layout.deployments(cloud.endpoint_url) / f"{stack}.json"
    if action in ("outputs", "destroy") and not state.exists():
        raise StackError(f"stack {stack} is not deployed: `inferlane deploy --stack {stack}`")
    state.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "workbench.stack.deployer", action, "--stack", stack, "--project-dir", str(root)]
    command += ["--state", str(state), "--cloud-id", cloud.cloud_id, "--json-events"]
    for setting in settings:
        command += ["--set", setting]
    layout.logs.mkdir(parents=True, exist_ok=True)
    log = layout.logs / f"deploy-{stack}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=cloud.environment(), cwd=project_root()
        )
        result, message = _follow(process, process.stdout or (), on_event)
    if result is None:
        raise StackError(message or f"the deployer ended with exit code {process.returncode} (log: {log})")
    if action == "destroy":
        state.unlink(missing_ok=True)
    return Deployment(stack, result.get("outputs", {}), result.get("counts", {}), float(result.get("seconds", 0.0)))


def stacks(layout: Layout, cloud: Cloud) -> list[str]:
    """Names of the stacks deployed to the cloud."""
    return sorted(file.stem for file in layout.deployments(cloud.endpoint_url).glob("*.json"))


def require_stack(root: Path, stack: str) -> None:
    """Raise `StackError` naming the stacks there are, when there is no file for this one."""
    if not (root / f"Pulumi.{stack}.yaml").exists():
        known = sorted(file.name.split(".")[1] for file in root.glob("Pulumi.*.yaml"))
        raise StackError(f"there is no stack {stack!r} (Pulumi.{stack}.yaml); there are: {', '.join(known) or 'none'}")


def _follow(
    process: subprocess.Popen[str], lines: Iterable[str], on_event: Callable[[Event], None]
) -> tuple[Event | None, str]:
    result: Event | None = None
    message = ""
    try:
        for line in lines:
            if not line.startswith("{"):
                continue  # something in the program printed; it is not an event
            event = json.loads(line)
            if event["event"] == "result":
                result = event
            elif event["event"] == "error":
                message = event["message"]
            on_event(event)
        process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)  # the terminal's Ctrl-C reached it too; a second one is harmless
        process.wait()
        raise
    return (result if process.returncode == 0 else None), message
