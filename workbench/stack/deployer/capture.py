"""A run of the program without a cloud: every resource it registers, and the calls a row would make of it.

Outputs are invented by their declared type (`arn:aws:captured:…` for ARNs), so the program runs to its end. `problems`
then checks each resource as a deploy would: a row for its type, a place for every input, and parameters that botocore
accepts. Values that only a deploy knows are replaced by text of the right kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.validate import ParamValidator

from workbench.stack.deployer.cloud import BotoCloud
from workbench.stack.deployer.declared import output_types
from workbench.stack.deployer.diff import Goal
from workbench.stack.deployer.engine import Registered
from workbench.stack.deployer.errors import CloudError, DeployError, ProgramError
from workbench.stack.deployer.handler import RowHandler
from workbench.stack.deployer.row import Instance, Row
from workbench.stack.deployer.values import Unknown, mapping

ACCOUNT = "000000000000"
_SAMPLES: Mapping[str, object] = {"integer": 1, "long": 1, "float": 1.0, "double": 1.0, "boolean": True, "blob": b"x"}

_PAPER_ID = "00000000-0000-0000-0000-000000000000"
"""As long as the longest that AWS asks for."""


@dataclass
class PaperCloud:
    """Knows every API's shapes and answers nobody, except who is asking."""

    region: str
    account: str = ACCOUNT
    endpoint: str = "http://localhost"

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, object]:  # noqa: ARG002
        if (service, operation) == ("sts", "get_caller_identity"):
            return {"Account": self.account, "Arn": f"arn:aws:iam::{self.account}:root", "UserId": self.account}
        raise CloudError(f"{service}.{operation}", "there is no cloud behind a capture")

    def shape(self, service: str, operation: str) -> StructureShape:
        return self._shapes.shape(service, operation)

    def pause(self, seconds: float) -> None:
        raise AssertionError(f"nothing to wait {seconds} s for")

    @cached_property
    def _shapes(self) -> BotoCloud:
        return BotoCloud(self.region)


@dataclass
class Capture:
    """Stands where the engine stands and remembers the goals."""

    rows: Mapping[str, Row]
    goals: list[Goal] = field(default_factory=list)

    def register(self, goal: Goal) -> Registered:
        if any(known.urn == goal.urn for known in self.goals):
            raise ProgramError(f"two resources have the URN {goal.urn}")
        self.goals.append(goal)
        row = self.rows.get(goal.type)
        types = output_types(goal.type)
        outputs = {name: _invented(goal, name, types.get(name, str)) for name in (row.outputs if row else types)}
        inputs = dict(goal.inputs)
        if row and row.auto_name and inputs.get(row.auto_name) is None:
            inputs[row.auto_name] = f"{goal.name}-captured"
        known = {name: inputs[name] for name in outputs if inputs.get(name) is not None}
        return Registered(f"{goal.name}-id", {**outputs, **known}, inputs)


def problems(goals: list[Goal], rows: Mapping[str, Row], cloud: PaperCloud) -> list[str]:
    """What would keep a deploy of these goals from starting, one line each."""
    found = []
    for goal in goals:
        row = rows.get(goal.type)
        if row is None:
            found.append(f"{goal.type} has no row")
            continue
        try:
            found += [f'{goal.type} "{goal.name}": {problem}' for problem in _invalid(goal, row, cloud)]
        except DeployError as error:
            found.append(f'{goal.type} "{goal.name}": {error}')
    return found


def _invalid(goal: Goal, row: Row, cloud: PaperCloud) -> list[str]:
    inputs = dict(goal.inputs)
    if row.auto_name and inputs.get(row.auto_name) is None:
        inputs[row.auto_name] = f"{goal.name}-captured"
    instance = Instance(goal.type, goal.name, cloud, inputs, id=_PAPER_ID)
    found = []
    for service, operation, parameters in RowHandler(row).requests(instance):
        shape = cloud.shape(service, operation)
        report = ParamValidator().validate(mapping(_known(parameters, shape)), shape)
        if report.has_errors():
            found.append(f"{service}.{operation}: {' '.join(report.generate_report().split())}")
    return found


def _known(value: object, shape: Shape) -> object:
    """The value with text or a number where something is only known after a deploy."""
    if isinstance(value, Unknown):
        return _SAMPLES.get(shape.type_name, "known-after-deploy-000")
    if isinstance(value, Mapping) and isinstance(shape, StructureShape):
        return {name: _known(item, shape.members[name]) for name, item in mapping(value).items()}
    if isinstance(value, Mapping) and isinstance(shape, MapShape):
        return {name: _known(item, shape.value) for name, item in mapping(value).items()}
    if isinstance(value, list) and isinstance(shape, ListShape):
        return [_known(item, shape.member) for item in value]
    return value


def _invented(goal: Goal, name: str, type_: object) -> object:
    if type_ in (int, float):
        return 1
    if type_ is bool:
        return True
    if name == "arn" or name.endswith("Arn"):
        return f"arn:aws:captured:us-east-1:{ACCOUNT}:{goal.type.split(':')[-1]}/{goal.name}"
    return f"captured-{goal.name}-{name}"
