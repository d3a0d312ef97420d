"""What a deploy does to one resource: the pure part of the engine.

- no record → create; nothing changed → same; else update, or replace when the handler (or `replaceOnChanges`) says so.
- `ignoreChanges` keeps the recorded value of a property. A name we made up is kept while the resource lives.
- A replacement comes before the deletion of the old one, unless both would have the same identity in the cloud or the
  program asks for `deleteBeforeReplace`.
- A protected resource is never replaced or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from workbench.stack.deployer.errors import ProgramError
from workbench.stack.deployer.handler import Handler
from workbench.stack.deployer.state import Record
from workbench.stack.deployer.values import Properties, encode_inputs, is_unknown

Action = Literal["same", "create", "update", "replace", "delete"]


@dataclass(frozen=True)
class Goal:
    """A resource as the program wants it."""

    urn: str
    type: str
    name: str
    inputs: Properties
    secrets: frozenset[str] = frozenset()
    dependencies: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    protect: bool = False
    retain: bool = False
    ignore_changes: frozenset[str] = frozenset()
    replace_on_changes: frozenset[str] = frozenset()
    delete_before_replace: bool = False


@dataclass(frozen=True)
class Plan:
    """What to do, with which inputs; `changed` are the properties that differ, `first` what goes before the create."""

    action: Action
    inputs: Properties
    changed: frozenset[str] = frozenset()
    auto_named: bool = False
    delete_first: bool = False


def plan(goal: Goal, record: Record | None, handler: Handler, fresh_name: str) -> Plan:
    """Compares the goal with what stands; `fresh_name` is used where a generated name is due."""
    if record is None:
        inputs, auto_named = _named(goal, handler, fresh_name)
        return Plan("create", inputs, frozenset(inputs), auto_named)
    kept, auto_named = _kept(goal, record, handler)
    encoded = encode_inputs(kept, goal.secrets)
    changed = frozenset(
        name
        for name in encoded.keys() | record.inputs.keys()
        if name not in goal.ignore_changes
        and (is_unknown(kept.get(name)) or encoded.get(name) != record.inputs.get(name))
    )
    if not changed:
        return Plan("same", kept, auto_named=auto_named)
    if not handler.replaced_by(changed) and not (changed & goal.replace_on_changes):
        return Plan("update", kept, changed, auto_named)
    if record.protect:
        raise ProgramError(
            f"protected, but {', '.join(sorted(changed))} can only change by replacing it: take protect off first"
        )
    inputs, auto_named = _named(goal, handler, fresh_name)
    same = handler.same_identity(record.inputs, encode_inputs(inputs, goal.secrets))
    return Plan("replace", inputs, changed, auto_named, delete_first=same or goal.delete_before_replace)


def deletion_waves(records: Iterable[Record]) -> list[list[Record]]:
    """Records in the order they can go: no wave holds anything that a later wave depends upon being there."""
    left = {id(record): record for record in records}
    waves = []
    while left:
        needed = {urn for record in left.values() for urn in record.dependencies if urn != record.urn}
        wave = [record for record in left.values() if record.urn not in needed]
        wave = wave or list(left.values())  # a cycle cannot come from Pulumi; a damaged state still has to end
        waves.append(sorted(wave, key=lambda record: record.urn))
        for record in wave:
            del left[id(record)]
    return waves


def _named(goal: Goal, handler: Handler, fresh_name: str) -> tuple[Properties, bool]:
    if handler.auto_name is None or goal.inputs.get(handler.auto_name) is not None:
        return goal.inputs, False
    return {**goal.inputs, handler.auto_name: fresh_name}, True


def _kept(goal: Goal, record: Record, handler: Handler) -> tuple[Properties, bool]:
    """The goal's inputs with the recorded name, where it was generated, and the recorded ignored properties."""
    inputs = dict(goal.inputs)
    for name in goal.ignore_changes:
        inputs.pop(name, None)
        if name in record.inputs:
            inputs[name] = record.inputs[name]
    if handler.auto_name is None or goal.inputs.get(handler.auto_name) is not None:
        return inputs, False
    if record.auto_named:
        inputs[handler.auto_name] = record.inputs[handler.auto_name]
    return inputs, record.auto_named
