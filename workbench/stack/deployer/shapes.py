"""Pulumi inputs into botocore parameters, led by botocore's own input shapes.

Rules, per member of the shape:
- Names match without case and underscores; then with a plural or singular ending (Pulumi pluralises lists,
  `dimensions`, and singles out one-element lists). A rename (`"productionVariants.serverlessConfig.memorySizeInMb":
  "MemorySizeInMB"`, a path of Pulumi names without list positions) comes first; renaming to `None` drops the property.
- Pulumi hands every number as a float: whole ones become ints where the shape wants them, a fraction there is an error.
  Text shapes take numbers and booleans in their JSON spelling; number and boolean shapes take that text back.
- A single value stands for a one-element list, a one-element list for a structure.
- A mapping where the API wants key-value pairs (tags, dimensions) becomes a list of pairs, sorted by key.
- Anything that finds no member is an `UnmappedError` that names the path.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.model import ListShape, MapShape, Shape, StructureShape

from workbench.stack.deployer.errors import ProgramError, UnmappedError
from workbench.stack.deployer.values import UNKNOWN, Payload, Properties, Unknown

Renames = Mapping[str, str | None]

_PAIR_KEYS = ("key", "name", "tagkey")
_PAIR_VALUES = ("value", "tagvalue")


def to_parameters(inputs: Properties, shape: StructureShape, renames: Renames) -> dict[str, object]:
    """The parameters of the operation whose input shape is `shape`; unknown values stay `UNKNOWN` (previews)."""
    return _structure(inputs, shape, renames, "")


def _value(value: object, shape: Shape, renames: Renames, path: str) -> object:
    if isinstance(value, Unknown):
        return UNKNOWN
    if isinstance(shape, StructureShape):
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        if not isinstance(value, Mapping):
            raise ProgramError(f"{path}: {shape.name} wants a mapping, not {type(value).__name__}")
        return _structure(value, shape, renames, f"{path}.")
    if isinstance(shape, ListShape):
        return _list(value, shape, renames, path)
    if isinstance(shape, MapShape):
        if not isinstance(value, Mapping):
            raise ProgramError(f"{path}: {shape.name} wants a mapping, not {type(value).__name__}")
        return {str(key): _value(item, shape.value, renames, f"{path}.{key}") for key, item in value.items()}
    return _scalar(value, shape, path)


def _structure(value: Properties, shape: StructureShape, renames: Renames, prefix: str) -> dict[str, object]:
    members = {_plain(member): member for member in shape.members}
    out: dict[str, object] = {}
    for name, item in value.items():
        path = f"{prefix}{name}"
        target = renames.get(path, name)
        if target is None or item is None:
            continue
        member = target if target in shape.members else _match(_plain(target), members)
        if member is None:
            raise UnmappedError(
                f"input {path} has no place in {shape.name}: it takes {', '.join(sorted(shape.members))}"
            )
        out[member] = _value(item, shape.members[member], renames, path)
    return out


def _match(plain: str, members: Mapping[str, str]) -> str | None:
    candidates = [plain, f"{plain}s", f"{plain}es"]
    if plain.endswith("s"):
        candidates.append(plain[:-1])
    if plain.endswith("ies"):
        candidates.append(f"{plain[:-3]}y")
    if plain.endswith("y"):
        candidates.append(f"{plain[:-1]}ies")
    return next((members[candidate] for candidate in candidates if candidate in members), None)


def _list(value: object, shape: ListShape, renames: Renames, path: str) -> list[object]:
    if isinstance(value, Mapping) and isinstance(shape.member, StructureShape):
        pair = _pair_members(shape.member)
        if pair is not None and not {_plain(str(key)) for key in value} <= {_plain(m) for m in shape.member.members}:
            key_member, value_member = pair
            text = shape.member.members[value_member]
            return [{key_member: str(k), value_member: _scalar(value[k], text, f"{path}.{k}")} for k in sorted(value)]
    values = value if isinstance(value, list | tuple) else [value]
    return [_value(item, shape.member, renames, path) for item in values]


def _pair_members(shape: StructureShape) -> tuple[str, str] | None:
    members = {_plain(member): member for member in shape.members}
    keys = [members[name] for name in _PAIR_KEYS if name in members]
    values = [members[name] for name in _PAIR_VALUES if name in members]
    return (keys[0], values[0]) if keys and values else None


def _scalar(value: object, shape: Shape, path: str) -> object:
    if isinstance(value, Unknown):
        return UNKNOWN
    kind = shape.type_name
    if kind in ("integer", "long"):
        return _whole(value, path)
    if kind in ("float", "double"):
        return _number(value, path)
    if kind == "boolean":
        return _boolean(value, path)
    if kind == "string":
        return _text(value, path)
    if kind == "blob":
        return _blob(value, path)
    return value  # timestamps: botocore parses ISO 8601 text itself


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ProgramError(f"{path}: a number is wanted, not {value!r}")
    try:
        return float(value)
    except ValueError:
        raise ProgramError(f"{path}: a number is wanted, not {value!r}") from None


def _whole(value: object, path: str) -> int:
    number = _number(value, path)
    if not number.is_integer():
        raise ProgramError(f"{path}: a whole number is wanted, not {value!r}")
    return int(number)


def _boolean(value: object, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ProgramError(f"{path}: true or false is wanted, not {value!r}")


def _text(value: object, path: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else str(value)
    raise ProgramError(f"{path}: text is wanted, not {type(value).__name__}")


def _blob(value: object, path: str) -> bytes:
    if isinstance(value, Payload):
        return value.read()
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ProgramError(f"{path}: bytes are wanted, not {type(value).__name__}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
