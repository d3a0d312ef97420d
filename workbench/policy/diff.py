"""What differs between two policies, in the words of the language: by rule, signal, tenant, route, tier.

Compared is what is meant, not how it is written: `5m` is `300s`, `2MB` is `2000000`, an empty `when` is none, header
names ignore case. In rules, experiments, routes and tenants the first match counts, so a change of their order is a
difference; of what was reordered, as few as possible are called moved.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from functions.core.document import DocumentError
from functions.core.document import Path as KeyPath
from functions.core.units import duration_s, percent, size_bytes
from workbench.policy.document import one_line

Values = Mapping[str, object]
Kind = Literal["added", "removed", "changed", "moved"]

_NAMED: Final = (("tiers", "tier"), ("signals", "signal"))
_LISTED: Final = (("tenants", "tenant"), ("routes", "route"), ("experiments", "experiment"), ("rules", "rule"))
_IDENTITIES: Final = ("identity", "claim", "api_key")
_IMPLIED: Final = {"timezone": "UTC", "objective": "rules"}
_BOUNDS: Final = ("above", "below", "at_least", "at_most")
_READERS: Final[Mapping[str, Callable[[object, KeyPath], float]]] = {
    **dict.fromkeys(("for", "until_for", "within"), duration_s),
    **dict.fromkeys(("share", "max_error_rate", "max_late_rate"), percent),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `field` is None when the whole thing came, went or moved."""

    kind: Kind
    what: str
    """`version`, `rule`, `signal`, …"""
    name: str
    """Which one; empty for what there is one of."""
    field: str | None
    before: object
    after: object

    def __str__(self) -> str:
        subject = f"{self.what} {self.name}".strip()
        if self.kind == "moved":
            return one_line(f"{subject}: moved from place {self.before} to {self.after}")
        if self.kind != "changed":
            value = self.after if self.kind == "added" else self.before
            return one_line(f"{subject}: {self.kind}: {_shown(value)}")
        field = "" if self.field is None else f".{self.field}"
        return one_line(f"{subject}{field}: {_shown(self.before)} -> {_shown(self.after)}")

    def to_json(self) -> dict[str, object]:
        """For --json."""
        about = {"kind": self.kind, "what": self.what, "name": self.name, "field": self.field}
        return {**about, "before": self.before, "after": self.after}


def changes(before: Values, after: Values) -> list[Change]:
    """The differences between two valid policy documents, in the order of the language."""
    found: list[Change] = []
    for key in ("version", "timezone", "objective"):
        old, new = (values.get(key) or _IMPLIED.get(key) for values in (before, after))
        if old != new:
            found.append(Change("changed", key, "", None, old, new))
    found += _fields("defaults", "", _mapping(before, "defaults"), _mapping(after, "defaults"))
    for section, what in _NAMED:
        found += _things(what, _mapping(before, section), _mapping(after, section))
    for section, what in _LISTED:
        found += _listed(what, _keyed(before.get(section)), _keyed(after.get(section)))
    return found


def _things(what: str, before: Values, after: Values) -> list[Change]:
    """Differences between things by name: gone, new, and those with other fields."""
    found = [Change("removed", what, name, None, before[name], None) for name in before if name not in after]
    for name, thing in after.items():
        if name not in before:
            found.append(Change("added", what, name, None, None, thing))
        else:
            found += _fields(what, name, _as_mapping(before[name]), _as_mapping(thing))
    return found


def _listed(what: str, before: Values, after: Values) -> list[Change]:
    """The same where the order counts."""
    found = _things(what, before, after)
    old_order = [name for name in before if name in after]
    new_order = [name for name in after if name in before]
    stayed = _longest_rising([old_order.index(name) for name in new_order])
    places = {name: (list(before).index(name) + 1, list(after).index(name) + 1) for name in new_order}
    for position, name in enumerate(new_order):
        if position not in stayed:
            found.append(Change("moved", what, name, None, *places[name]))
    return found


def _fields(what: str, name: str, before: Values, after: Values) -> list[Change]:
    keys = [*before, *(key for key in after if key not in before)]
    return [
        Change("changed", what, name, key, before.get(key), after.get(key))
        for key in keys
        if meaning(before.get(key), (key,)) != meaning(after.get(key), (key,))
    ]


def meaning(value: object, path: tuple[str, ...]) -> object:
    """A value as it is meant, whatever way it is written; `path` is the keys above it, its own last."""
    if isinstance(value, Mapping):
        header = path[-1] == "header"
        parts = {(key.lower() if header else key): meaning(part, (*path, key)) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None} or (None if path[-1] == "when" else {})
    if isinstance(value, list):
        parts_of = [meaning(part, path) for part in value]
        return sorted(parts_of, key=str) if path[-1] == "weekday" else parts_of
    reader = _reader(path)
    try:
        return value if reader is None or value is None else reader(value, ())
    except DocumentError:
        return value


def _reader(path: tuple[str, ...]) -> Callable[[object, KeyPath], float] | None:
    if path[-1] in _BOUNDS and len(path) > 1:
        if path[-2] == "bytes":
            return size_bytes
        if path[-2] == "deadline_ms":
            return _milliseconds
    return _READERS.get(path[-1])


def _milliseconds(value: object, path: KeyPath) -> float:
    return duration_s(value, path) * 1000 if isinstance(value, str) else float(str(value))


def _keyed(items: object) -> dict[str, object]:
    """The items of a list by what tells them apart: a rule's id, a route's path, whom a tenants entry is for."""
    found: dict[str, object] = {}
    for item in items if isinstance(items, list) else ():
        fields = _as_mapping(item)
        name = str(fields.get("id") or fields.get("path") or _whom(fields))
        twins = sum(1 for key in found if key == name or key.startswith(f"{name} #"))
        found[f"{name} #{twins + 1}" if twins else name] = item
    return found


def _whom(fields: Values) -> str:
    for key in _IDENTITIES:
        if key in fields:
            value = fields[key]
            return f"{key} {value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
    return "?"


def _mapping(values: Values, key: str) -> Values:
    return _as_mapping(values.get(key))


def _as_mapping(value: object) -> Values:
    return value if isinstance(value, Mapping) else {}


def _shown(value: object) -> str:
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _longest_rising(numbers: Sequence[int]) -> set[int]:
    """Positions of a longest rising subsequence (patience sorting), so that the fewest others count as moved."""
    ends: list[int] = []
    holders: list[int] = []
    before: list[int] = []
    for position, number in enumerate(numbers):
        pile = bisect_left(ends, number)
        before.append(holders[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [number]
        holders[pile : pile + 1] = [position]
    found: set[int] = set()
    position = holders[-1] if holders else -1
    while position >= 0:
        found.add(position)
        position = before[position]
    return found
