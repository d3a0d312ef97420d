"""The Pulumi program of a project: its configuration, and one run of it in the seam.

Configuration is read as the Pulumi CLI does: defaults of `Pulumi.yaml`, then `Pulumi.<stack>.yaml`, then `--set
key=value`. A key without a namespace belongs to the project. Encrypted values (`secure:`) can only be decrypted by the
CLI, so they are taken from the environment: `PULUMI_SECRET_<KEY>`.

The project's own packages come first on the import path: a copy of this project is deployed with the copy's code.

A process runs a program once: the SDK keeps state of its own, and a second run after a failure can hang.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import runpy
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml
from pulumi.runtime import set_all_config, set_mocks
from pulumi.runtime.settings import set_root_resource
from pulumi.runtime.stack import run_in_stack

from workbench.stack.deployer.errors import ProgramError
from workbench.stack.deployer.monitor import EngineMonitor
from workbench.stack.deployer.values import mapping

THREADS = 32
DEFAULT_REGION = "us-east-1"
CANCEL_LIMIT_S = 1.0


@dataclass(frozen=True)
class Program:
    """A program with the configuration of one stack. `config` values are text, as the CLI passes them."""

    project: str
    stack: str
    root: Path
    """The project's folder."""
    main: Path
    config: Mapping[str, str]
    secret_keys: tuple[str, ...]

    @property
    def region(self) -> str:
        """The region of the stack's AWS provider."""
        return self.config.get("aws:region") or os.environ.get("AWS_REGION") or DEFAULT_REGION


def load(project_dir: Path, stack: str, overrides: Mapping[str, str]) -> Program:
    """Reads the project and stack files; anything missing or malformed is an error with the file's name."""
    project_file = project_dir / "Pulumi.yaml"
    document = _yaml(project_file, "not a Pulumi project")
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise ProgramError(f"{project_file}: `name` is missing")
    stack_file = project_dir / f"Pulumi.{stack}.yaml"
    known = sorted(
        path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in project_dir.glob("Pulumi.*.yaml")
    )
    stack_document = _yaml(stack_file, f"no stack {stack!r}; there are: {', '.join(known) or 'none'}")
    config, secret_keys = _config(name, document, stack_document, stack_file)
    for key, value in overrides.items():
        config[key if ":" in key else f"{name}:{key}"] = value
    main = (project_dir / str(document.get("main", "."))).resolve()
    entry = main if main.is_file() else main / "__main__.py"
    if not entry.is_file():
        raise ProgramError(f"{entry} does not exist: `main` of {project_file} must hold a Python program")
    return Program(name, stack, project_dir.resolve(), entry, config, tuple(secret_keys))


def run(program: Program, monitor: EngineMonitor, *, preview: bool) -> None:
    """Runs the program against the monitor; returns, or raises its failure, when every registration has ended."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="deploy")
    loop.set_default_executor(executor)
    set_all_config(dict(program.config), list(program.secret_keys))
    set_mocks(
        monitor.mocks,
        project=program.project,
        stack=program.stack,
        preview=preview,
        monitor=monitor,
        organization="organization",
    )
    set_root_resource(None)  # type: ignore[arg-type]  # None is how the SDK starts a stack
    folder = str(program.main.parent)
    paths = [folder, str(program.root)]
    with contextlib.chdir(folder):  # as `pulumi up` does: in the program's folder, which is first on the import path
        sys.path[:0] = paths
        try:
            loop.run_until_complete(run_in_stack(lambda: _execute(program.main)))
        finally:
            executor.shutdown(wait=True)
            _close(loop)
            monitor.close()
            for path in paths:
                sys.path.remove(path)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Ends what a failed program left waiting; a loop that is only dropped complains while the interpreter ends."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=CANCEL_LIMIT_S))
    asyncio.set_event_loop(None)
    loop.close()


def _execute(main: Path) -> None:
    runpy.run_path(str(main), run_name="__main__")


def _config(
    project: str, document: Mapping[str, object], stack_document: Mapping[str, object], stack_file: Path
) -> tuple[dict[str, str], list[str]]:
    config: dict[str, str] = {}
    secret_keys: list[str] = []
    for key, item in mapping(document.get("config")).items():
        default = mapping(item).get("default", mapping(item).get("value")) if isinstance(item, Mapping) else item
        if default is not None:
            config[key if ":" in key else f"{project}:{key}"] = _text(default)
    for key, value in mapping(stack_document.get("config")).items():
        full = key if ":" in key else f"{project}:{key}"
        if isinstance(value, Mapping) and set(value) == {"secure"}:
            config[full] = _secret(full, stack_file)
            secret_keys.append(full)
        else:
            config[full] = _text(value)
    return config, secret_keys


def _secret(key: str, stack_file: Path) -> str:
    variable = "PULUMI_SECRET_" + re.sub(r"[^A-Z0-9]", "_", key.split(":", 1)[1].upper())
    if variable not in os.environ:
        raise ProgramError(f"{stack_file}: {key} is encrypted for the Pulumi CLI; offline, set {variable} to its value")
    return os.environ[variable]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _yaml(path: Path, otherwise: str) -> dict[str, object]:
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise ProgramError(f"{path} does not exist: {otherwise}") from None
    except yaml.YAMLError as error:
        raise ProgramError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ProgramError(f"{path} must hold a mapping")
    return mapping(document)
