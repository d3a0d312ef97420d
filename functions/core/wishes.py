"""The wishes in a request's headers, and what of them goes beyond what the caller may have.

Every header is a wish: priority and deadline, `Prefer: respond-async` (RFC 7240) and `Idempotency-Key`. A malformed one
is the caller's fault (400). Headers that claim a tier, a tenant or a cost center grant nothing; they are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.request import DEADLINE_HEADER, PRIORITIES, PRIORITY_HEADER, Priority

PREFER_HEADER: Final = "prefer"
IDEMPOTENCY_HEADER: Final = "idempotency-key"
CLAIM_HEADERS: Final = (
    ("tier", "x-inferlane-tier"),
    ("tenant", "x-inferlane-tenant"),
    ("cost_center", "x-inferlane-cost-center"),
)
"""What only the identity can prove, and the header in which a caller might claim it."""
_LONGEST_KEY: Final = 255
_FARTHEST_MS: Final = 10**12
"""What any later deadline is taken for, so that no count of digits can stall: thirty years."""
TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - RFC 9110's word, no secret
"""What a header, or a preference, can be called."""
_VALUE: Final = rf'(?:{TOKEN}|"(?:[^"\\]|\\.)*")'
_PREFERENCE: Final = re.compile(
    rf"[ \t]*({TOKEN})(?:[ \t]*=(?:[ \t]*({_VALUE}))?)?"
    rf"(?:[ \t]*;(?:[ \t]*{TOKEN}(?:[ \t]*=(?:[ \t]*{_VALUE})?)?)?)*[ \t]*(?:,|$)"
)
"""One preference with its parameters, up to the comma or the end. Blanks belong to what follows them, so that there is
one way to read each: two would double with every parameter of a hostile list."""


class WishError(ValueError):
    """A wish in the headers is malformed: the caller's fault (400)."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller would like. None: not asked."""

    priority: Priority | None = None
    deadline_ms: int | None = None
    """As asked, uncut."""
    respond_async: bool = False


def read_wishes(headers: Mapping[str, str]) -> Wishes:
    """The wishes in lower-case `headers`. Raises `WishError` on a malformed one."""
    wishes = Wishes(_priority(headers), _deadline_ms(headers), _respond_async(headers.get(PREFER_HEADER)))
    key = headers.get(IDEMPOTENCY_HEADER)
    if key is not None and not is_idempotency_key(key):
        raise WishError(f"Idempotency-Key must be 1 to {_LONGEST_KEY} printable ASCII characters")
    return wishes


def is_idempotency_key(key: str) -> bool:
    """Whether `key` can name a request."""
    return len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and not key.isspace() and key != ""


def _priority(headers: Mapping[str, str]) -> Priority | None:
    text = headers.get(PRIORITY_HEADER)
    if text is None:
        return None
    word = text.strip().lower()
    if word not in PRIORITIES:
        raise WishError(f"X-Inferlane-Priority must be one of {', '.join(PRIORITIES)}")
    return Priority.of(word)


def _deadline_ms(headers: Mapping[str, str]) -> int | None:
    text = headers.get(DEADLINE_HEADER)
    if text is None:
        return None
    digits = text.strip()
    significant = digits.lstrip("0")
    if not (digits.isascii() and digits.isdigit() and significant):
        raise WishError("X-Inferlane-Deadline-Ms must be a whole number of milliseconds above zero")
    return min(int(significant[:13]), _FARTHEST_MS)


def _respond_async(text: str | None) -> bool:
    """Whether `respond-async` is preferred. Unknown preferences are ignored, as RFC 7240 asks."""
    found = False
    for name, value in _preferences(text) if text is not None else ():
        if name == "respond-async":
            if value:
                raise WishError("Prefer: respond-async takes no value")
            found = True
        elif name == "wait" and not (value.isascii() and value.isdigit()):
            raise WishError("Prefer: wait must be a whole number of seconds")
    return found


def _preferences(text: str) -> Iterator[tuple[str, str]]:
    at = _gap(text, 0)
    while at < len(text):
        match = _PREFERENCE.match(text, at)
        if match is None:
            raise WishError("Prefer must be a list of preferences as in RFC 7240, such as respond-async")
        yield match[1].lower(), (match[2] or "").strip('"')
        at = _gap(text, match.end())


def _gap(text: str, at: int) -> int:
    """Past blanks and empty list elements, which RFC 9110 has a recipient ignore."""
    while at < len(text) and text[at] in " \t,":
        at += 1
    return at
