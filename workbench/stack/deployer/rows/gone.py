"""Reads that answer with an empty list instead of an error, turned into the error the engine understands."""

from __future__ import annotations

from collections.abc import Callable

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Hook, Instance
from workbench.stack.deployer.values import items, mapping


def listed(
    service: str,
    operation: str,
    parameters: Callable[[Instance], dict[str, object]],
    member: str,
    key: str,
    value: Callable[[Instance], str] = lambda instance: instance.id,
) -> Hook:
    """A read that looks for the item whose `key` is `value` in the list `member` of the answer."""

    def read(instance: Instance) -> None:
        answer = instance.cloud.call(service, operation, parameters(instance))
        if not any(mapping(item).get(key) == value(instance) for item in items(answer.get(member))):
            raise CloudError(f"{service}.{operation}", f"{value(instance)} is not there", "NotFound")

    return read
