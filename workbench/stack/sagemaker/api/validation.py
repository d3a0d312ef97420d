"""Whether a JSON document fits one of botocore's shapes, in the words AWS uses.

botocore itself checks only types and minimums before it sends; the service checks all of it, so this does: required
members, lengths, ranges, patterns, enumerations, in nested structures, lists and maps. Values of the wrong JSON type
raise `MalformedError` (AWS: SerializationException); everything else is collected, as AWS reports all problems at once.
Stricter than AWS in one point: a member the shape does not know is a problem here, where AWS ignores it in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str),
    "blob": (str,),
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
}
_JSON_NAMES: dict[type, str] = {
    str: "STRING_VALUE",
    int: "NUMBER_VALUE",
    float: "DECIMAL_VALUE",
    dict: "START_OBJECT",
    list: "START_ARRAY",
}
_SIZED = {"string", "list", "map", "blob"}
# Java's Unicode classes, and supplementary planes written as surrogate pairs, said in Python's regular expressions.
_JAVA = {
    r"\p{L}": r"\w",
    r"\p{N}": r"\d",
    r"\p{Z}": r"\s",
    r"\p{M}": "",
    r"\uD800\uDC00-\uDBFF\uDFFF": r"\U00010000-\U0010FFFF",
    r"[\p{Print}]": "[ -~]",
    r"\p{Print}": "[ -~]",
    r"\p{ASCII}": r"[\x00-\x7f]",
    r"\z": r"\Z",
}


class MalformedError(ValueError):
    """A value has the wrong JSON type."""


def check(shape: Shape, value: object) -> list[str]:
    """Every rule of the shape that `value` breaks; empty when it fits. Raises `MalformedError` on a wrong type."""
    return list(_check(shape, value, ""))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A service model's (Java) pattern as Python's."""
    for java, python in _JAVA.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _check(shape: Shape, value: Any, path: str) -> Iterator[str]:
    _check_type(shape, value, path)
    yield from (_problem(value, path, rule) for rule in _broken(shape, value))
    if isinstance(shape, StructureShape):
        yield from _check_structure(shape, value, path)
    elif isinstance(shape, ListShape):
        for index, item in enumerate(value, 1):
            yield from _check(shape.member, item, f"{path}.{index}.member")
    elif isinstance(shape, MapShape):
        yield from _check_map(shape, value, path)


def _check_structure(shape: StructureShape, value: dict[str, Any], path: str) -> Iterator[str]:
    for name in value:
        if name not in shape.members:
            where = path or "input"
            yield f'Unknown parameter in {where}: "{name}", must be one of: {", ".join(shape.members)}'
    for name, member in shape.members.items():
        inner = _join(path, name)
        if value.get(name) is not None:
            yield from _check(member, value[name], inner)
        elif name in shape.required_members:
            yield _problem(None, inner, "Member must not be null")


def _check_map(shape: MapShape, value: dict[str, Any], path: str) -> Iterator[str]:
    for key, item in value.items():
        if broken := list(_broken(shape.key, key)):
            yield _problem(value, path, f"Map keys must satisfy constraint: [{', '.join(broken)}]")
        if isinstance(shape.value, StringShape):
            _check_type(shape.value, item, path)
            if broken := list(_broken(shape.value, item)):
                yield _problem(value, path, f"Map value must satisfy constraint: [{', '.join(broken)}]")
        else:
            yield from _check(shape.value, item, f"{path}.{key}.member")


def _check_type(shape: Shape, value: object, path: str) -> None:
    expected = _TYPES.get(shape.type_name)
    if expected is None:
        return
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        raise MalformedError(f"{_json_name(value)} can not be converted to a {shape.type_name} at '{path}'")


def _broken(shape: Shape, value: Any) -> Iterator[str]:
    metadata = shape.metadata
    least, most = metadata.get("min"), metadata.get("max")
    sized = shape.type_name in _SIZED
    size, noun = (len(value), "length") if sized else (value, "value")
    if shape.type_name in _SIZED | {"integer", "long", "float", "double"}:
        if least is not None and size < least:
            yield f"Member must have {noun} greater than or equal to {least}"
        if most is not None and size > most:
            yield f"Member must have {noun} less than or equal to {most}"
    if isinstance(shape, StringShape):
        if shape.enum and value not in shape.enum:
            yield f"Member must satisfy enum value set: [{', '.join(sorted(shape.enum))}]"
        pattern = metadata.get("pattern")
        if pattern and not compiled(pattern).fullmatch(value):
            yield f"Member must satisfy regular expression pattern: {pattern}"


def _problem(value: object, path: str, rule: str) -> str:
    shown = "null" if value is None else f"'{_shown(value)}'"
    return f"Value {shown} at '{path}' failed to satisfy constraint: {rule}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={_shown(v)}" for k, v in value.items()) + "}"
    return str(value)


def _join(path: str, name: str) -> str:
    # AWS's paths start each name in lower case: productionVariants.1.member.modelName
    lowered = name[:1].lower() + name[1:]
    return f"{path}.{lowered}" if path else lowered


def _json_name(value: object) -> str:
    if isinstance(value, bool):
        return f"{value}_VALUE".upper()
    return _JSON_NAMES.get(type(value), "NULL_VALUE")
