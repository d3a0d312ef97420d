"""Takes out of a JSON text what a policy names by JSON pointers (RFC 6901), and nothing else.

What a pointer leads to becomes `null`, in objects and in lists alike, so that all else keeps its place. `*` stands for
every element of a list (in an object it is a name like any other). The text itself is cut, not read and written anew:
numbers keep their digits, and of a name that stands twice both values go. Text that is no JSON cannot be searched, so
nothing of it may be kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, NoReturn

from functions.core.document import DocumentError, Path, as_text

Pointer = tuple[str, ...]
"""The names and places from the top down; never empty."""
LONGEST: Final = 256
"""Characters of a pointer."""
_ESCAPE: Final = re.compile(r"~(?![01])")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_EACH: Final = "*"


class _Tree(dict[str, "_Tree"]):
    """Pointers by their beginnings; without a branch: what is here goes."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def read_pointer(value: object, path: Path) -> Pointer:
    """Parse a pointer such as `/user/email`. Raises `DocumentError`."""
    text = as_text(value, path)
    if not text.startswith("/"):
        raise DocumentError(path, f"a JSON pointer starts with /, found {text[:60]!r}")
    if len(text) > LONGEST:
        raise DocumentError(path, f"longer than {LONGEST} characters")
    if _ESCAPE.search(text):
        raise DocumentError(path, f"in a JSON pointer ~ is written ~0, and / within a name ~1, found {text[:60]!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def redact(text: str, pointers: Iterable[Pointer]) -> str | None:
    """The text without what `pointers` name; None when it is no JSON."""
    spans: list[tuple[int, int]] = []
    try:
        end = _skip(text, _walk(text, _skip(text, 0), _tree(pointers), spans))
    except (ValueError, IndexError, RecursionError):
        return None
    if end != len(text):
        return None
    for start, stop in reversed(spans):
        text = f"{text[:start]}null{text[stop:]}"
    return text


def _tree(pointers: Iterable[Pointer]) -> _Tree:
    root = _Tree()
    for pointer in sorted(pointers, key=len):  # the shorter takes all that a longer one would
        node = root
        for part in pointer:
            if part in node and not node[part]:
                break
            node = node.setdefault(part, _Tree())
    return root


def _walk(text: str, at: int, tree: _Tree, spans: list[tuple[int, int]]) -> int:
    """The end of the value that begins at `at`; what of it has to go is added to `spans`."""
    if text[at] == "{":
        return _members(text, at, tree, spans)
    if text[at] == "[":
        return _elements(text, at, tree, spans)
    return int(_DECODER.raw_decode(text, at)[1])


def _members(text: str, at: int, tree: _Tree, spans: list[tuple[int, int]]) -> int:
    at = _skip(text, at + 1)
    if text[at] == "}":
        return at + 1
    while True:
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError("no member")
        at = _skip(text, _value(text, _skip(text, at + 1), tree.get(name), spans))
        if text[at] == "}":
            return at + 1
        if text[at] != ",":
            raise ValueError("no end of an object")
        at = _skip(text, at + 1)


def _elements(text: str, at: int, tree: _Tree, spans: list[tuple[int, int]]) -> int:
    at = _skip(text, at + 1)
    if text[at] == "]":
        return at + 1
    place = 0
    while True:
        branch = _both(tree.get(_EACH), tree.get(str(place)))
        at = _skip(text, _value(text, at, branch, spans))
        if text[at] == "]":
            return at + 1
        if text[at] != ",":
            raise ValueError("no end of a list")
        at = _skip(text, at + 1)
        place += 1


def _value(text: str, at: int, tree: _Tree | None, spans: list[tuple[int, int]]) -> int:
    if tree:
        return _walk(text, at, tree, spans)
    end = int(_DECODER.raw_decode(text, at)[1])
    if tree is not None:
        spans.append((at, end))
    return end


def _both(one: _Tree | None, other: _Tree | None) -> _Tree | None:
    """What either names."""
    if one is None or other is None:
        return other if one is None else one
    if not one or not other:
        return _Tree()
    return _Tree({name: _both(one.get(name), other.get(name)) or _Tree() for name in one.keys() | other.keys()})


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
