"""What a caller asks: the request as `decide` sees it, who signed it, and the wishes in its headers.

Schema `inferlane/request/v1`. Headers are wishes; identity comes from the authorizer alone. The body is never here:
only its size and type decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from functions.core.document import DocumentError, Fields, as_choice, as_text

SCHEMA: Final = "inferlane/request/v1"
PRIORITIES: Final = ("low", "normal", "high")
PRIORITY_HEADER: Final = "x-inferlane-priority"
DEADLINE_HEADER: Final = "x-inferlane-deadline-ms"
_PREFERENCE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(\s*[=;].*)?", re.DOTALL)
"""RFC 7240: a token, then perhaps a value or parameters."""


class RequestError(DocumentError):
    """The request document cannot be read."""


class WishError(ValueError):
    """A wish in the headers is malformed: the caller's fault (400)."""


class Priority(IntEnum):
    """Ordered: what was asked is granted up to the tier's cap."""

    LOW = 0
    NORMAL = 1
    HIGH = 2

    @property
    def word(self) -> str:
        """The word used in documents and headers."""
        return PRIORITIES[self]

    @classmethod
    def of(cls, word: str) -> Priority:
        """The priority of a word of `PRIORITIES`. Raises ValueError."""
        return cls(PRIORITIES.index(word))


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, as the gateway's authorizer proved it."""

    kind: str
    """`iam`, `jwt`, `api_key`, or `anonymous`."""
    arn: str | None = None
    key_id: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)


ANONYMOUS: Final = Identity("anonymous")


@dataclass(frozen=True, slots=True)
class Request:
    """One call, without its body."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str]
    """Lower-case names."""
    content_type: str | None
    bytes: int
    identity: Identity

    @classmethod
    def from_json(cls, document: object) -> Request:
        """Read a request document (parsed JSON). Raises `RequestError`."""
        try:
            root = Fields.of(document)
            root.schema(SCHEMA)
            headers = _headers(root.fields_or_empty("headers"))
            content_type = root.text_or("content_type", headers.get("content-type", ""))
            return cls(
                id=root.text_or("id", "r-0"),
                method=root.text_or("method", "POST").upper(),
                path=root.text("path"),
                headers=headers,
                content_type=content_type or None,
                bytes=root.integer_or("bytes", 0, at_least=0),
                identity=_identity(root),
            )
        except DocumentError as error:
            raise RequestError(error.path, error.cause) from error


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller would like. None: not asked."""

    priority: Priority | None
    deadline_ms: int | None


def read_wishes(headers: Mapping[str, str]) -> Wishes:
    """The wishes in lower-case `headers`. Raises `WishError` on a malformed one.

    `Prefer` (RFC 7240) is checked for form only: no lane here can honour `respond-async`, and a server may ignore it.
    """
    priority = headers.get(PRIORITY_HEADER)
    if priority is not None and priority.strip().lower() not in PRIORITIES:
        raise WishError(f"X-Inferlane-Priority must be one of {', '.join(PRIORITIES)}")
    deadline = headers.get(DEADLINE_HEADER)
    if deadline is not None:
        deadline = deadline.strip()
        if not (deadline.isascii() and deadline.isdigit() and len(deadline) <= 12 and int(deadline) > 0):
            raise WishError("X-Inferlane-Deadline-Ms must be a whole number of milliseconds above zero")
    for preference in headers.get("prefer", "").split(",") if "prefer" in headers else ():
        if not _PREFERENCE.fullmatch(preference.strip()):
            raise WishError("Prefer must be a list of preferences as in RFC 7240, such as respond-async")
    return Wishes(
        None if priority is None else Priority.of(priority.strip().lower()), None if deadline is None else int(deadline)
    )


def _headers(fields: Fields) -> dict[str, str]:
    return {name.lower(): as_text(value, fields.at(name)) for name, value in fields.values.items()}


def _identity(root: Fields) -> Identity:
    if root.get("identity") is None:
        return ANONYMOUS
    fields = root.fields("identity")
    kind = as_choice(fields.require("kind"), fields.at("kind"), ("iam", "jwt", "api_key", "anonymous"), "kind")
    if kind == "iam":
        return Identity(kind, arn=fields.text("arn"))
    if kind == "api_key":
        return Identity(kind, key_id=fields.text("key_id"))
    if kind == "jwt":
        claims = fields.fields("claims")
        return Identity(kind, claims={name: claim_text(value) for name, value in claims.values.items()})
    return ANONYMOUS


def claim_text(value: object) -> str:
    """A claim as text, the way API Gateway flattens it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
