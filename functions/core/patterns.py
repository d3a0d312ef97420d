"""Two small pattern languages: paths by segment, and wildcards in names. Both match in linear time or near it.

Path: a segment is literal, `{name}` or `*` (any one non-empty segment), and `**` as the last one takes the rest, also
none. Wildcard: `*` is any run of characters, `?` exactly one, everything else is literal and case-sensitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from functions.core.document import DocumentError, Path, as_text

_CAPTURE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A parsed path pattern."""

    text: str
    segments: tuple[str, ...]
    """Literals; `*` stands for one segment, named or not."""
    names: tuple[str, ...]
    """Per segment, the name it captures, or empty."""
    open_end: bool

    @classmethod
    def of(cls, value: object, path: Path) -> PathPattern:
        """Parse `value`. Raises `DocumentError`."""
        text = as_text(value, path)
        if not text.startswith("/"):
            raise DocumentError(path, f"a path starts with /, found {text[:60]!r}")
        parts = text[1:].split("/")
        open_end = parts[-1] == "**"
        parts = parts[:-1] if open_end else parts
        if "**" in parts:
            raise DocumentError(path, "** may only stand for the rest, at the end")
        segments, names = [], []
        for part in parts:
            capture = _CAPTURE.fullmatch(part)
            if capture is None and ("{" in part or "}" in part or (part != "*" and "*" in part)):
                raise DocumentError(path, f"segment {part[:60]!r} must be literal, {{name}}, * or **")
            segments.append("*" if capture else part)
            names.append(capture[1] if capture else "")
        if len(set(filter(None, names))) != len(list(filter(None, names))):
            raise DocumentError(path, f"a name is captured twice in {text[:60]!r}")
        return cls(text, tuple(segments), tuple(names), open_end)

    def match(self, path: str) -> dict[str, str] | None:
        """What the named segments took, or None when `path` does not match."""
        if not path.startswith("/"):
            return None
        parts = path[1:].split("/")
        count = len(self.segments)
        if len(parts) < count or (len(parts) > count and not self.open_end):
            return None
        taken: dict[str, str] = {}
        for segment, name, part in zip(self.segments, self.names, parts, strict=False):
            if segment != part and (segment != "*" or not part):
                return None
            if name:
                taken[name] = part
        return taken


def wildcard_match(pattern: str, text: str) -> bool:
    """Whether `text` matches the wildcard `pattern`; at most |pattern|·|text| steps, so no input can stall it."""
    p = t = 0
    star, resume = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, resume = p, t
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", text[t]):
            p, t = p + 1, t + 1
        elif star >= 0:
            resume += 1
            p, t = star + 1, resume
        else:
            return False
    return all(c == "*" for c in pattern[p:])


def covers(wide: str, narrow: str) -> bool:
    """Whether every text that the wildcard `narrow` matches is matched by `wide`.

    `narrow` is run through `wide`'s automaton: its `?` is any letter, so only `?` and `*` can take it, and its `*` is
    any number of those. Sets of states repeat soon, so this ends.
    """
    begun = (0, _resting(wide, {0}))
    work, seen = [begun], {begun}
    while work:
        at, states = work.pop()
        if not states or (at == len(narrow) and len(wide) not in states):
            return False
        if at == len(narrow):
            continue
        letter = narrow[at]
        after = _resting(wide, _step(wide, states, None if letter in "*?" else letter))
        following = [(at + 1, states), (at, after)] if letter == "*" else [(at + 1, after)]
        for state in following:
            if state not in seen:
                seen.add(state)
                work.append(state)
    return True


def _step(pattern: str, states: frozenset[int], letter: str | None) -> set[int]:
    """Where one letter leads; None stands for a letter that no literal equals."""
    found: set[int] = set()
    for at in states:
        if at < len(pattern):
            if pattern[at] == "*":
                found.add(at)
            elif pattern[at] == "?" or pattern[at] == letter:
                found.add(at + 1)
    return found


def _resting(pattern: str, states: set[int]) -> frozenset[int]:
    """The states with those behind a `*`, which may match nothing."""
    found: set[int] = set()
    for at in states:
        found.add(at)
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            found.add(at)
    return frozenset(found)


def media_type(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()
