"""Settings that an API keeps as a map of texts (SQS, SNS): Pulumi's inputs by the API's names, defaults where unset.

SQS sets many at a time, SNS one. An input that the program no longer gives goes back to the service's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.stack.deployer.row import Arrange, Instance
from workbench.stack.deployer.values import Properties


@dataclass(frozen=True)
class Attribute:
    """The API's name of a setting and what it is when nothing is said."""

    name: str
    default: object


Attributes = Mapping[str, Attribute]
"""By Pulumi's name."""


def gathered(known: Attributes, only_true: frozenset[str] = frozenset()) -> Arrange:
    """Puts what is given into the member `Attributes`; `only_true` names those that may not be said to be false."""

    def arrange(inputs: Properties) -> Properties:
        given = {
            known[name].name: value
            for name, value in inputs.items()
            if name in known and value is not None and not (name in only_true and value is False)
        }
        rest = {name: value for name, value in inputs.items() if name not in known}
        return {**rest, "attributes": given} if given else rest

    return arrange


def changed(known: Attributes, instance: Instance) -> dict[str, object]:
    """What changed, by the API's names, with its new value."""
    return {
        attribute.name: attribute.default if instance.inputs.get(name) is None else instance.inputs[name]
        for name, attribute in known.items()
        if name in instance.changed
    }
