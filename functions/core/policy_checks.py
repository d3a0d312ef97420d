"""What is wrong between the parts of a policy that are right by themselves: duplicates, and what can never be reached.

Ids are unique over rules and experiments, since receipts and shares go by them. A tenants entry, a route or a rule is
unreachable when an earlier one takes all that it could: a pattern that covers its pattern, the same path, no condition
or the same condition without a split.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from functions.core.conditions import AllOf, Always, AnyOf, Condition, Not
from functions.core.document import Fields, Path, Problems
from functions.core.patterns import covers
from functions.core.policy import Route, Rule, TenantEntry


def check_ids(root: Fields, notes: Problems) -> None:
    """Note every id that an earlier rule or experiment has."""
    seen: dict[str, str] = {}
    for key in ("rules", "experiments"):
        items = root.values.get(key)
        for i, item in enumerate(items if isinstance(items, list | tuple) else ()):
            found = item.get("id") if isinstance(item, dict) else None
            if not isinstance(found, str):
                continue
            if found in seen:
                notes.add((key, i, "id"), f"{found[:60]!r} is given twice (first at {seen[found]})")
            seen.setdefault(found, f"{key}[{i}]")


def check_routes(routes: Sequence[tuple[Path, Route]], notes: Problems) -> None:
    """Note every route whose path an earlier one has."""
    seen: dict[Hashable, Path] = {}
    for path, route in routes:
        shape = (route.pattern.segments, route.pattern.open_end)
        if shape in seen:
            notes.add((*path, "path"), f"never reached: routes[{seen[shape][-1]}] has the same path")
        seen.setdefault(shape, path)


def check_tenants(tenants: Sequence[tuple[Path, TenantEntry]], notes: Problems) -> None:
    """Note every entry that an earlier one wholly covers."""
    patterns = _Patterns()
    claims: list[tuple[Path, TenantEntry]] = []
    for path, entry in tenants:
        if entry.claims:
            first = next((place for place, other in claims if _covers_claims(other, entry)), None)
            claims.append((path, entry))
        else:
            kind, pattern = ("identity", entry.identity) if entry.identity is not None else ("api_key", entry.api_key)
            first = patterns.first_over(kind, pattern or "")
            patterns.add(kind, pattern or "", path)
        if first is not None:
            notes.add(path, f"never reached: tenants[{first[-1]}] covers it")


class _Patterns:
    """Patterns seen so far, found by the literal text they begin with."""

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[str, str], list[tuple[str, Path]]] = {}

    def add(self, kind: str, pattern: str, path: Path) -> None:
        self._by_prefix.setdefault((kind, _prefix(pattern)), []).append((pattern, path))

    def first_over(self, kind: str, pattern: str) -> Path | None:
        """The place of an earlier pattern that covers `pattern`; only one with a prefix of its prefix can."""
        start = _prefix(pattern)
        for end in range(len(start) + 1):
            for other, path in self._by_prefix.get((kind, start[:end]), ()):
                if covers(other, pattern):
                    return path
        return None


def _prefix(pattern: str) -> str:
    for i, letter in enumerate(pattern):
        if letter in "*?":
            return pattern[:i]
    return pattern


def _covers_claims(wide: TenantEntry, narrow: TenantEntry) -> bool:
    found = dict(narrow.claims)
    return all(name in found and covers(pattern, found[name]) for name, pattern in wide.claims)


def check_reachable(rules: Sequence[tuple[Path, Rule]], notes: Problems) -> None:
    """Note every rule that an earlier one without a split leaves nothing to."""
    taken: dict[Hashable, str] = {}
    last: str | None = None
    for path, rule in rules:
        if last is not None:
            notes.add(path, f"never reached: rule {last[:60]!r} before it has no condition")
            continue
        shape = _shape(rule.when)
        if shape in taken:
            notes.add((*path, "when"), f"never reached: rule {taken[shape][:60]!r} has the same condition")
        elif rule.share is None:
            taken[shape] = rule.id
            last = rule.id if shape == _shape(Always()) else None


def _shape(condition: Condition) -> Hashable:
    """Equal for conditions that differ only in the order of their parts, or in empty parts of `all`."""
    if isinstance(condition, AllOf):
        parts = frozenset(_shape(part) for part in condition.parts) - {_shape(Always())}
        return next(iter(parts)) if len(parts) == 1 else ("all", parts) if parts else _shape(Always())
    if isinstance(condition, AnyOf):
        return ("any", frozenset(_shape(part) for part in condition.parts))
    if isinstance(condition, Not):
        return ("not", _shape(condition.part))
    return repr(condition)
