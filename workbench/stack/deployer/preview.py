"""A preview: what a deploy would do, without one call that changes anything.

The program runs in Pulumi's preview mode. What a resource will only have after the deploy is unknown, and what depends
on an unknown value counts as changed. Every input is still converted, so an unmapped one shows here already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.diff import Goal, plan
from workbench.stack.deployer.engine import Registered
from workbench.stack.deployer.errors import ProgramError, UnmappedError
from workbench.stack.deployer.handler import Handler
from workbench.stack.deployer.progress import Progress
from workbench.stack.deployer.row import Instance
from workbench.stack.deployer.state import State
from workbench.stack.deployer.values import UNKNOWN

_IDENTIFIER = re.compile(r"(?!qualified)(arn|name|.*(Arn|Url|Id))")


@dataclass
class Preview:
    """Stands where the engine stands, with the same `register` and `finish`."""

    state: State
    cloud: Cloud
    handlers: Mapping[str, Handler]
    progress: Progress
    counts: Counter[str] = field(default_factory=Counter)
    _seen: set[str] = field(default_factory=set)

    def register(self, goal: Goal) -> Registered:
        """Plans one resource and answers what is known of it."""
        if goal.urn in self._seen:
            raise ProgramError(f"two resources have the URN {goal.urn}: give one of them another name")
        self._seen.add(goal.urn)
        handler = self.handlers.get(goal.type)
        if handler is None:
            raise UnmappedError(f"{goal.type} has no row: add one in workbench/stack/deployer/rows")
        urns = (goal.urn, *goal.aliases)
        record = next((self.state.resources[urn] for urn in urns if urn in self.state.resources), None)
        if record is not None:
            self._seen.add(record.urn)
        step = plan(goal, record, handler, f"{goal.name}-xxxxxxx")
        instance = Instance(goal.type, goal.name, self.cloud, step.inputs)
        handler.check(instance)
        self.counts[step.action] += 1
        self.progress.resource(step.action, goal.type, goal.name, record.id if record else "", 0.0, step.changed)
        if record is None or step.action in ("create", "replace"):
            outputs: dict[str, object] = dict.fromkeys(handler.output_names, UNKNOWN)
            if handler.auto_name is not None and not step.auto_named:
                outputs[handler.auto_name] = step.inputs[handler.auto_name]  # given by the program, so known
            return Registered("", outputs, step.inputs)
        kept = record.outputs if step.action == "same" else _after_update(record.outputs)
        return Registered(record.id, kept, step.inputs)

    def finish(self) -> None:
        """Names what would be deleted."""
        gone = [record for urn, record in self.state.resources.items() if urn not in self._seen]
        for record in [*self.state.retired, *gone]:
            self.counts["delete"] += 1
            self.progress.resource("delete", record.type, record.name, record.id, 0.0)


def _after_update(outputs: Mapping[str, object]) -> dict[str, object]:
    """An update in place keeps identifiers; versions and what is qualified by one become unknown."""
    return {name: value if _IDENTIFIER.fullmatch(name) else UNKNOWN for name, value in outputs.items()}
