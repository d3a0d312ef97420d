"""HTML that cannot be broken out of: text becomes markup only through here, and is escaped on its way.

`tag` takes children of two kinds: `Markup`, which it made itself, and anything else, which is text. There is no way to
write an attribute or a child unescaped, whatever it holds. Characters that no text of a page may have (controls, halves
of surrogate pairs) or that could make text look like what it is not (marks that turn the writing direction) become �.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_FORBIDDEN: Final = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufdd0-\\ufdef\\ufffe\\uffff"
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2028\\u2029\\u2066-\\u2069]"
)
_VOID: Final = frozenset({"meta", "link", "br"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Markup(str):
    """Text that is HTML. Made by `tag` and `joined` only."""

    __slots__ = ()


Child = Markup | str | int | float | None


def tag(name: str, /, *children: Child, **attributes: str | int | float | None) -> Markup:
    """An element. Attribute `class_` is written class, `aria_label` aria-label; None leaves one out."""
    written = "".join(
        f' {_attribute(key)}="{escaped(value)}"' for key, value in attributes.items() if value is not None
    )
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no element's name")
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Children one after the other, without an element around them."""
    return Markup("".join(each if isinstance(each, Markup) else escaped(each) for each in children if each is not None))


def escaped(value: object) -> str:
    """A value as text fit for a child or a quoted attribute."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value)).translate(_ESCAPES)


def verbatim_style(css: str) -> Markup:
    """A style element: CSS is not escaped in HTML, so it must be a constant that holds no `<`."""
    if "<" in css:
        raise ValueError("a style must not hold a tag")
    return Markup(f"<style>{css}</style>")


def _attribute(key: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no attribute's name")
    return name
