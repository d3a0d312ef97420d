"""What is wrong between the parts of a policy that are right by themselves: duplicates, and what can never be reached.

Ids are unique over rules and experiments, since receipts and shares go by them. A tenants entry, a route or a rule is
unreachable when an earlier one takes all that it could: a pattern that covers its pattern, no condition, or the same
condition without a split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from functions.core.conditions import AllOf, Always, AnyOf, Condition, Not
from functions.core.document import Fields, Path, Problems
from functions.core.patterns import PathPattern, arn_covers, covers
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
    """Note every route all of whose paths an earlier one takes."""
    earlier = _Step()
    kept: dict[Path, PathPattern] = {}
    for path, route in routes:
        first = earlier.covering(route.pattern)
        if first is None:
            earlier.add(path, route.pattern)
            kept[path] = route.pattern
            continue
        same = (kept[first].segments, kept[first].open_end) == (route.pattern.segments, route.pattern.open_end)
        how = "has the same path" if same else f"takes every path of {route.pattern.text[:60]!r}"
        notes.add((*path, "path"), f"never reached: routes[{first[-1]}] {how}")


_MOST_STEPS: Final = 64
"""Ways in which the beginning of a path is taken by earlier ones: what has more of them is not searched to its end."""


@dataclass(slots=True)
class _Step:
    """Earlier paths as a tree of their segments, so that a route is compared with what begins as it does."""

    after: dict[str, _Step] = field(default_factory=dict)
    ends: Path | None = None
    """The route whose path ends here."""
    rest: Path | None = None
    """The route that takes whatever follows."""

    def add(self, path: Path, pattern: PathPattern) -> None:
        step = self
        for segment in pattern.segments:
            step = step.after.setdefault(segment, _Step())
        if pattern.open_end:
            step.rest = path
        else:
            step.ends = path

    def covering(self, pattern: PathPattern) -> Path | None:
        """The place of the first route that takes every path that `pattern` would, or None."""
        takers: list[Path | None] = []
        steps = [self]
        for segment in pattern.segments:
            takers += [step.rest for step in steps]
            wider = (segment, "*") if segment not in ("", "*") else (segment,)  # * takes no empty segment
            steps = [step.after[name] for step in steps for name in wider if name in step.after][:_MOST_STEPS]
        takers += [step.rest for step in steps]
        if not pattern.open_end:
            takers += [step.ends for step in steps]
        return _first(takers)


def _first(places: Iterable[Path | None]) -> Path | None:
    """The one that stands before all others in its list."""
    return min((place for place in places if place is not None), key=lambda place: int(place[-1]), default=None)


def check_tenants(tenants: Sequence[tuple[Path, TenantEntry]], notes: Problems) -> None:
    """Note every entry that an earlier one wholly covers."""
    asked = [(path, _questions(entry)) for path, entry in tenants]
    seen = _Earlier(question for _, questions in asked for question in questions.items())
    for path, questions in asked:
        first = seen.covering(questions)
        if first is not None:
            notes.add(path, f"never reached: tenants[{first[-1]}] covers it")
        else:
            seen.add(path, questions)


_Question = tuple[str, str]
"""What is looked at (`identity`, `api_key`, or a claim) and the pattern that it must match."""


def _questions(entry: TenantEntry) -> dict[str, str]:
    if entry.claims:
        return {f"claim {name}": pattern for name, pattern in entry.claims}
    return {"identity": entry.identity} if entry.identity is not None else {"api_key": entry.api_key or ""}


_COVERS: Final = {"identity": arn_covers}
"""How patterns of a question are compared, where not as plain wildcards."""


class _Earlier:
    """Entries seen so far, found without comparing each with each.

    A literal run of a pattern that covers another lies within a literal run of the other. So each entry is kept under
    the rarest run of its patterns, and looked up by every part of the other's runs that is as long as some key.
    """

    def __init__(self, questions: Iterable[_Question]) -> None:
        self._frequency = Counter(run for _, pattern in questions for run in _runs(pattern))
        self._kept: dict[_Question, list[tuple[Path, dict[str, str]]]] = {}
        self._lengths: dict[str, set[int]] = {}

    def add(self, path: Path, questions: dict[str, str]) -> None:
        asked = [(what, run) for what, pattern in questions.items() for run in _runs(pattern) or [""]]
        what, run = min(asked, key=lambda pair: (pair[1] == "", self._frequency[pair[1]], -len(pair[1])))
        self._kept.setdefault((what, run), []).append((path, questions))
        self._lengths.setdefault(what, set()).add(len(run))

    def covering(self, questions: dict[str, str]) -> Path | None:
        """The place of the first entry that takes every caller whom `questions` would, or None."""
        return _first(
            path
            for what, pattern in questions.items()
            for part in _parts(pattern, self._lengths.get(what, set()))
            for path, earlier in self._kept.get((what, part), ())
            if all(
                name in questions and _COVERS.get(name, covers)(wide, questions[name]) for name, wide in earlier.items()
            )
        )


def _runs(pattern: str) -> list[str]:
    """The literal texts between wildcards."""
    return [run for run in pattern.replace("?", "*").split("*") if run]


def _parts(pattern: str, lengths: Iterable[int]) -> set[str]:
    """Every part of the pattern's literal runs that has one of the lengths; of length 0, the empty one."""
    found = {""} if 0 in lengths else set()
    for run in _runs(pattern):
        found |= {run[i : i + length] for length in lengths for i in range(len(run) - length + 1)}
    return found


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
        return next(iter(parts)) if len(parts) == 1 else (AllOf, parts) if parts else _shape(Always())
    if isinstance(condition, AnyOf):
        return (AnyOf, frozenset(_shape(part) for part in condition.parts))
    if isinstance(condition, Not):
        return (Not, _shape(condition.part))
    return repr(condition)
