"""Two small pattern languages: paths by segment, and wildcards in names. Both match in linear time or near it.

Path: a segment is literal, `{name}` or `*` (any one non-empty segment), and `**` as the last one takes the rest, also
none. Wildcard: `*` is any run of characters, `?` exactly one, everything else is literal and case-sensitive. Whole ARNs
are compared field by field.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from functions.core.document import DocumentError, Path, as_text

_ARN_COLONS: Final = 5
"""Of `arn:partition:service:region:account:resource`; the resource may hold more."""
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


def arn_match(pattern: str, arn: str) -> bool:
    """Whether `arn` matches; a pattern that is a whole ARN itself is compared field by field.

    So `arn:aws:iam::*:role/ops-*` takes roles of every account, and never the user `arn:aws:iam::9:user/x:role/ops-1`.
    """
    wide, fields = pattern.split(":", _ARN_COLONS), arn.split(":", _ARN_COLONS)
    if len(wide) <= _ARN_COLONS:
        return wildcard_match(pattern, arn)
    return len(fields) == len(wide) and all(map(wildcard_match, wide, fields))


def arn_covers(wide: str, narrow: str) -> bool:
    """Whether every ARN that `narrow` matches is matched by `wide` (see `arn_match`)."""
    parts, others = wide.split(":", _ARN_COLONS), narrow.split(":", _ARN_COLONS)
    if len(parts) <= _ARN_COLONS:
        return covers(wide, narrow)
    return len(others) == len(parts) and all(map(covers, parts, others))


class _Stop(NamedTuple):
    """A literal letter of a wildcard, or its end."""

    letter: str
    """Empty: the end."""
    place: int
    """How many letters stand before it, at least."""
    stars: int
    """How many `*` stand before it."""


def covers(wide: str, narrow: str) -> bool:
    """Whether every text that the wildcard `narrow` matches is matched by `wide`; at most |wide|·|narrow| steps.

    What stands in `narrow` for a wildcard may be a letter that `wide` does not have, and so many of it that no two
    letters of `narrow` are near each other by chance. So `wide` covers it exactly when `wide`'s letters can be laid on
    equal ones of `narrow`, in order and both ends on both ends, with as much between two of them as `wide` demands: at
    least so much where it has a `*` there, and else just so much in every text, which takes that `narrow` has none.
    """
    by_letter: dict[str, list[_Stop]] = {}
    for stop in _stops(narrow):
        by_letter.setdefault(stop.letter, []).append(stop)
    laid, before = [_START], _START
    for stop in _stops(wide):
        equal, gap = by_letter.get(stop.letter, []), stop.place - before.place
        if stop.stars > before.stars:
            laid = equal[bisect_left(equal, laid[0].place + gap, key=_place) :]
        else:
            exact = {(last.place + gap, last.stars) for last in laid}
            laid = [found for found in equal if (found.place, found.stars) in exact]
        if not laid:
            return False
        before = stop
    return True


_START: Final = _Stop("", -1, 0)
_place: Final = attrgetter("place")


def _stops(pattern: str) -> list[_Stop]:
    """The literal letters, then the end."""
    found: list[_Stop] = []
    place = stars = 0
    for letter in pattern:
        if letter == "*":
            stars += 1
            continue
        if letter != "?":
            found.append(_Stop(letter, place, stars))
        place += 1
    return [*found, _Stop("", place, stars)]


def media_type(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str | None) -> bool:
    """Whether a content type says JSON."""
    kind = media_type(content_type or "")
    return kind == "application/json" or kind.endswith("+json")
