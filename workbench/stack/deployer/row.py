"""One row a resource type: which API calls make, change, read and remove it, as data.

A row is read like this:
- `create` makes it. It carries every input that no step and not `local` claims; `arrange` may first bend the inputs
  into the API's nesting. `id` and `outputs` are templates over what came back.
- `admit` runs before `create` and may refuse: what the cloud should check and an emulator does not.
- `steps` run in order after `create`, and again when one of their inputs changed. A changed input that no step takes
  means *replace*. `upsert` rows have one call for both: any change outside the identity repeats `create`.
- `identity` names the inputs the cloud knows the resource by. If they stay the same, the old one must go before its
  replacement can be made; if they differ (or the cloud assigns the id), the replacement comes first.
- `settle` waits until it works. `read` tells whether it still exists. `delete` removes it; a row without one leaves
  nothing behind that could be removed (`gone_with` says with what it goes).
- `adopt` lists error codes of `create` that mean "exists already" where taking it over is harmless; it is always
  reported.

Templates are text with `{in.x}` (inputs), `{out.X.Y}` (the call's answer), `{own.x}` (outputs already known), `{id}`,
`{account}`, `{region}`, `{endpoint}`; alone in its text a reference keeps its type. A callable takes the `Instance`. A
parameter or output whose template gives `None` is left out. Outputs are filled in the order they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.values import Properties


@dataclass
class Instance:
    """A resource on its way through a row: `inputs` are wanted, `before` stood until now, `outputs` are known."""

    type: str
    name: str
    cloud: Cloud
    inputs: Properties
    before: Properties = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    id: str = ""
    outputs: dict[str, object] = field(default_factory=dict)
    answer: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What the engineer should know about it."""

    def text(self, name: str) -> str:
        """An input that must be there, as text."""
        value = self.inputs.get(name)
        if not isinstance(value, str):
            raise UnmappedError(f"input {name} of {self.type} is missing")
        return value


Template: TypeAlias = str | Callable[[Instance], object]
Arrange: TypeAlias = Callable[[Properties], Properties]
Hook: TypeAlias = Callable[[Instance], None]
Templates: TypeAlias = Mapping[str, Template]


@dataclass(frozen=True)
class Call:
    """One API operation: `take` inputs converted by its shape, `params` filled from templates."""

    operation: str
    take: tuple[str, ...] = ()
    params: Templates = field(default_factory=dict)
    rename: Mapping[str, str | None] = field(default_factory=dict)
    service: str = ""


@dataclass(frozen=True)
class Step:
    """A call or hook for the inputs `on`; `unset` is called instead when the program no longer gives any of them."""

    on: tuple[str, ...]
    run: Call | Hook
    at: Literal["create", "update", "both"] = "both"
    unset: Call | Hook | None = None


@dataclass(frozen=True)
class Tags:
    """How a service changes tags: operations, the parameter that names the resource, and its value."""

    tag: str
    untag: str
    resource: str
    value: Template = "{own.arn}"
    keys: str = "TagKeys"


@dataclass(frozen=True)
class Row:
    """Everything the deployer knows about one resource type (see the module's docstring)."""

    type: str
    service: str
    create: Call
    id: Template
    outputs: Templates = field(default_factory=dict)
    auto_name: str | None = None
    arrange: Arrange | None = None
    admit: Hook | None = None
    steps: tuple[Step, ...] = ()
    tags: Tags | None = None
    upsert: bool = False
    identity: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    settle: Hook | None = None
    read: Call | Hook | None = None
    before_delete: Hook | None = None
    delete: Call | Hook | None = None
    gone_with: str = ""
    adopt: tuple[str, ...] = ()

    def claimed(self) -> frozenset[str]:
        """Inputs that are not part of `create`: taken by a step that also runs at creation, or local."""
        at_create = {name for step in self.steps if step.at != "update" for name in step.on}
        return frozenset(at_create | set(self.local))
