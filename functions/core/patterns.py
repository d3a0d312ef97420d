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
            raise DocumentError(path, f"a path starts with /, found {text!r}")
        parts = text[1:].split("/")
        open_end = parts[-1] == "**"
        parts = parts[:-1] if open_end else parts
        if "**" in parts:
            raise DocumentError(path, "** may only stand for the rest, at the end")
        segments, names = [], []
        for part in parts:
            capture = _CAPTURE.fullmatch(part)
            if capture is None and ("{" in part or "}" in part or (part != "*" and "*" in part)):
                raise DocumentError(path, f"segment {part!r} must be literal, {{name}}, * or **")
            segments.append("*" if capture else part)
            names.append(capture[1] if capture else "")
        if len(set(filter(None, names))) != len(list(filter(None, names))):
            raise DocumentError(path, f"a name is captured twice in {text!r}")
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


def media_type(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()
