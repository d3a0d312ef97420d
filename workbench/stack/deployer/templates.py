"""Fills a row's templates from an instance. An unknown reference is an error, never an empty text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.row import Instance, Template
from workbench.stack.deployer.values import UNKNOWN, Unknown

_REFERENCE = re.compile(r"\{([a-z]+)((?:\.[A-Za-z0-9_]+)*)\}")


class AbsentError(UnmappedError):
    """The reference names nothing the instance has."""


def fill(template: Template, instance: Instance) -> object:
    """The template's value; a reference alone keeps its type, in longer text it becomes text."""
    if not isinstance(template, str):
        return template(instance)
    whole = _REFERENCE.fullmatch(template)
    if whole:
        return _resolve(whole, instance)
    values = [_resolve(match, instance) for match in _REFERENCE.finditer(template)]
    if any(isinstance(value, Unknown) for value in values):
        return UNKNOWN
    return _REFERENCE.sub(lambda match: str(_resolve(match, instance)), template)


def _resolve(match: re.Match[str], instance: Instance) -> object:
    root, path = match[1], [part for part in match[2].split(".") if part]
    if root in ("id", "account", "region", "endpoint") and not path:
        return {
            "id": lambda: instance.id,
            "account": lambda: instance.cloud.account,
            "region": lambda: instance.cloud.region,
            "endpoint": lambda: instance.cloud.endpoint,
        }[root]()
    roots: dict[str, Mapping[str, object]] = {
        "in": instance.inputs,
        "out": instance.answer,
        "own": instance.outputs,
    }
    if root not in roots or not path:
        raise UnmappedError(f"template reference {match[0]} of {instance.type} is not one of in, out, own, id, …")
    value: object = roots[root]
    for part in path:
        if isinstance(value, Unknown):
            return UNKNOWN
        if not isinstance(value, Mapping) or part not in value:
            raise AbsentError(f"{match[0]} of {instance.type}: the cloud's answer or the inputs have no {part}")
        value = value[part]
    return value
