"""A cloud that is a dictionary, with one resource type whose every move can be watched and made to fail."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from botocore.model import StructureShape

from workbench.stack.deployer.diff import Goal
from workbench.stack.deployer.engine import Engine
from workbench.stack.deployer.errors import BrokenError, CloudError
from workbench.stack.deployer.progress import Progress
from workbench.stack.deployer.row import Instance
from workbench.stack.deployer.state import StateFile
from workbench.stack.deployer.values import Properties

TYPE = "fake:index:Thing"


class NoCloud:
    """The fake handler needs none."""

    region = "us-east-1"
    account = "000000000000"
    endpoint = "http://localhost"

    def call(self, service: str, operation: str, parameters: Properties) -> dict[str, object]:
        raise AssertionError((service, operation, parameters))

    def shape(self, service: str, operation: str) -> StructureShape:
        raise AssertionError((service, operation))

    def pause(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Things:
    """The handler: `fixed` needs replacement, `name` is the identity, `fail` holds each `"<action> <name>"` to fail."""

    standing: dict[str, dict[str, object]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    fail: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    auto_name: str | None = "name"
    output_names: frozenset[str] = frozenset({"arn"})

    def check(self, instance: Instance) -> None:
        """Everything maps."""

    def replaced_by(self, changed: frozenset[str]) -> frozenset[str]:
        return changed & {"fixed", "name"}

    def same_identity(self, before: Properties, inputs: Properties) -> bool:
        return before.get("name") == inputs.get("name")

    def create(self, instance: Instance) -> None:
        self._do("create", instance)
        name = str(instance.inputs["name"])
        if name in self.standing:
            raise CloudError("create", f"{name} exists")
        self.standing[name] = dict(instance.inputs)
        instance.id = name
        instance.outputs = {"arn": f"arn:{name}"}

    def complete(self, instance: Instance) -> None:
        self._do("complete", instance)
        if instance.id in self.broken:
            raise BrokenError("complete", f"{instance.id} is broken")

    def update(self, instance: Instance) -> None:
        self._do("update", instance)
        self.standing[instance.id] = dict(instance.inputs)

    def exists(self, instance: Instance) -> bool:
        return instance.id in self.standing

    def delete(self, instance: Instance) -> None:
        self._do("delete", instance)
        self.standing.pop(instance.id, None)

    def _do(self, action: str, instance: Instance) -> None:
        name = instance.id if action in ("delete", "complete") else str(instance.inputs["name"])
        self.log.append(f"{action} {name}")
        if f"{action} {name}" in self.fail:
            raise CloudError(action, f"{name} was made to fail")


def goal(logical: str, /, *needs: str, protect: bool = False, **inputs: object) -> Goal:
    """A thing that depends on others by their logical names."""
    dependencies = tuple(urn(one) for one in needs)
    return Goal(urn(logical), TYPE, logical, inputs, dependencies=dependencies, protect=protect)


def urn(name: str) -> str:
    return f"urn:pulumi:test::fakes::{TYPE}::{name}"


def engine(
    file: StateFile,
    things: Things,
    progress: Progress,
    interrupted: threading.Event | None = None,
    first_number: int = 1,
) -> Engine:
    """An engine whose generated names are numbered."""
    numbers = iter(range(first_number, 1000))
    return Engine(
        file, NoCloud(), {TYPE: things}, progress, interrupted or threading.Event(), suffix=lambda: str(next(numbers))
    )
