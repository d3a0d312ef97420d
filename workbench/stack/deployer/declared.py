"""Outputs that nobody mapped must never pass for `None`.

Pulumi's SDK resolves a property its engine does not return to `None`, silently. So every output that the resource's
class declares gets a value here: the mapped one, else the input of the same name, else (for properties pulumi-aws
derives on its own) tags and region, else a mark. Wherever a mark turns up (another resource's inputs, a function's
arguments, an archive's text, a stack output) the program read an unmapped output: an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pulumi
from pulumi._types import resource_types, unwrap_optional_type  # the SDK offers them nowhere public

from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.values import Payload, Properties, leaves

_MARK = re.compile(r"__unmapped\(([^()]+)\)\(([^()]+)\)__")


def complete(type_: str, inputs: Properties, outputs: Mapping[str, object], region: str) -> dict[str, object]:
    """Every declared output of the type, marked where nothing is known of it. Payloads are left to the SDK's echo."""
    derived: dict[str, object] = {"tagsAll": inputs.get("tags") or {}, "region": region}
    done: dict[str, object] = {}
    for name in declared_outputs(type_) | outputs.keys():
        if name in outputs:
            done[name] = outputs[name]
        elif inputs.get(name) is not None:
            if not isinstance(inputs[name], Payload):
                done[name] = inputs[name]
        elif name in derived:
            done[name] = derived[name]
        else:
            done[name] = f"__unmapped({type_})({name})__"
    return done


def refuse_marks(value: object, reader: str) -> None:
    """Raises when a mark is anywhere in the tree."""
    for leaf in leaves(value):
        text = leaf.source if isinstance(leaf, Payload) else leaf
        if isinstance(text, bytes):
            text = text.decode("utf-8", "ignore")
        found = _MARK.search(text) if isinstance(text, str) else None
        if found:
            raise UnmappedError(
                f"output {found[2]} of {found[1]} is not mapped, but {reader} reads it: map it in the type's row"
            )


def declared_outputs(type_: str) -> frozenset[str]:
    """The output properties that the type's class declares, by their Pulumi names."""
    return frozenset(output_types(type_))


@cache
def output_types(type_: str) -> Mapping[str, object]:
    """The declared outputs with their Python types, `Optional` taken off."""
    for cls in _subclasses(pulumi.CustomResource):
        if getattr(cls, "pulumi_type", None) == type_:
            return {name: unwrap_optional_type(one) for name, one in resource_types(cls).items()}
    raise UnmappedError(f"{type_}: no imported class declares this type, so its outputs are unknown")


def _subclasses(cls: type[object]) -> Iterator[type[object]]:
    for sub in type.__subclasses__(cls):
        yield sub
        yield from _subclasses(sub)
