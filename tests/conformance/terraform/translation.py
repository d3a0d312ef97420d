"""A captured Pulumi resource in the words of the Terraform provider. Pure: the provider's schema drives the names.

pulumi-aws is made from that provider: properties are its arguments in camel case, lists in the plural, blocks that may
occur once without their list. So an argument is found by its name, its singular or plural, and where Pulumi gave it
another name it is in `RENAMED`. A property that has no place, or one the provider only reads, is an error.

A resource's outputs are answered with marks, `__tf(TYPE.LABEL.ATTRIBUTE)__`, which survive whatever the program does
with text (joining, JSON); in the end each becomes a reference, and all else that looks like a template is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {
    "aws_cloudwatch_metric_alarm": {"name": "alarm_name"},
    "aws_lambda_function": {"name": "function_name", "code": "filename"},
    "aws_lambda_permission": {"function": "function_name"},
}
"""Type -> property (in snake case) -> argument."""
TYPES: Mapping[str, str] = {
    "s3/BucketObjectv2": "aws_s3_object",
    "sqs/RedriveAllowPolicy": "aws_sqs_queue_redrive_allow_policy",
}
"""Module and class -> type, where no rule finds it."""
MARK = re.compile(r"__tf\(([a-z0-9_]+\.[A-Za-z0-9_-]+\.[a-z0-9_]+)\)__")


class TranslationError(ValueError):
    """What the program says cannot be said to the provider."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One argument or result: its type as Terraform's schema has it, and whether it may be given."""

    type: Any
    settable: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A resource's schema, or that of a block in one."""

    attributes: Mapping[str, Attribute]
    blocks: Mapping[str, Block] = field(default_factory=dict)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Block:
        """A `block` of `terraform providers schema -json`."""
        attributes = {
            name: Attribute(a.get("type"), bool(a.get("required") or a.get("optional")))
            for name, a in document.get("attributes", {}).items()
        }
        blocks = {name: cls.parse(b["block"]) for name, b in document.get("block_types", {}).items()}
        return cls(attributes, blocks)

    def find(self, property_: str) -> str | None:
        """The argument or block of a property's name in snake case."""
        known = [*self.attributes, *self.blocks]
        spellings = [property_, property_.removesuffix("s"), property_.removesuffix("es"), property_ + "s"]
        if property_.endswith("ies"):
            spellings.append(property_[:-3] + "y")
        exact = next((s for s in spellings if s in known), None)
        # SizeInMB: where a word ends is a matter of taste.
        flat = {s.replace("_", "") for s in spellings}
        return exact or next((name for name in known if name.replace("_", "") in flat), None)


def snake(name: str) -> str:
    """`memorySizeInMb` -> `memory_size_in_mb`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])", lambda match: f"_{match[0]}", name).lower()


def camel(name: str) -> str:
    """`memory_size_in_mb` -> `memorySizeInMb`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def resource_type(token: str) -> str:
    """`aws:sagemaker/endpointConfiguration:EndpointConfiguration` -> `aws_sagemaker_endpoint_configuration`."""
    _, module, name = token.split(":")
    module = module.split("/")[0]
    return TYPES.get(f"{module}/{name}") or f"aws_{module.rstrip('_')}_{snake(name)}"


def label(name: str) -> str:
    """A resource's logical name as an identifier of Terraform's."""
    text = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return text if text[:1].isalpha() else f"r{text}"


def mark(type_: str, name: str, attribute: str) -> str:
    """Stands for an attribute that only the provider knows."""
    return f"__tf({type_}.{label(name)}.{attribute})__"


def outputs(type_: str, name: str, block: Block, inputs: Mapping[str, object]) -> dict[str, object]:
    """What the program reads of a resource: a mark for each attribute but those it has given itself."""
    names = {argument: property_ for property_, argument in RENAMED.get(type_, {}).items()}
    answers = {camel(names.get(attribute, attribute)): mark(type_, name, attribute) for attribute in block.attributes}
    return {property_: answer for property_, answer in answers.items() if inputs.get(property_) is None}


def arguments(type_: str, inputs: Mapping[str, object], block: Block) -> dict[str, object]:
    """The resource's arguments. Raises `TranslationError` with every property that has no place."""
    renamed = RENAMED.get(type_, {})
    problems: list[str] = []
    said = dict(_arguments({renamed.get(snake(k), snake(k)): v for k, v in inputs.items()}, block, type_, problems))
    if problems:
        raise TranslationError("; ".join(problems))
    return said


def _arguments(
    properties: Mapping[str, object], block: Block, path: str, problems: list[str]
) -> Iterator[tuple[str, object]]:
    for property_, value in properties.items():
        if value is None:
            continue
        name = block.find(property_)
        if name is None:
            problems.append(f"{path}.{property_}: the provider has no such argument")
        elif name in block.blocks:
            rows = value if isinstance(value, list) else [value]
            yield name, [_block(row, block.blocks[name], f"{path}.{name}", problems) for row in rows]
        elif not block.attributes[name].settable:
            problems.append(f"{path}.{property_}: the provider only reads it")
        else:
            yield name, _value(value, block.attributes[name].type)


def _block(row: object, block: Block, path: str, problems: list[str]) -> dict[str, object]:
    if not isinstance(row, Mapping):
        raise TranslationError(f"{path}: expected a mapping, not {row!r}")
    return dict(_arguments(_keys_by_role({snake(k): v for k, v in row.items()}, block), block, path, problems))


def _keys_by_role(properties: Mapping[str, object], block: Block) -> Mapping[str, object]:
    """An index's keys as provider 5 has them: `hash_key` and `range_key` for a list of `key_schemas`."""
    keys = properties.get("key_schemas")
    if not isinstance(keys, list) or "hash_key" not in block.attributes or block.find("key_schemas"):
        return properties
    roles = {f"{key['keyType'].lower()}_key": key["attributeName"] for key in keys}
    return {**{name: value for name, value in properties.items() if name != "key_schemas"}, **roles}


def _value(value: object, type_: Any) -> object:
    """An attribute's value: one that may occur once stands in a list; an object's keys are the provider's."""
    match type_:
        case ["list" | "set", inner]:
            return [_value(each, inner) for each in (value if isinstance(value, list) else [value])]
        case ["object", fields] if isinstance(value, Mapping):
            names = {name.replace("_", ""): name for name in fields}
            return {names[snake(key).replace("_", "")]: _value(each, None) for key, each in value.items()}
        case _:
            return int(value) if isinstance(value, float) and value.is_integer() else value


def rendered(value: object) -> object:
    """The value with its marks as references and everything else taken literally."""
    if isinstance(value, str):
        literal = value.replace("${", "$${").replace("%{", "%%{")
        return MARK.sub(lambda match: f"${{{match[1]}}}", literal)
    if isinstance(value, Mapping):
        return {key: rendered(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rendered(item) for item in value]
    return value
