"""What a caller asks: the request as `decide` sees it, and who signed it.

Schema `inferlane/request/v1`. Headers are wishes (see `wishes`); identity comes from the authorizer alone. The body is
never here: only its size and type decide, and the model that it names where the route says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from functions.core.document import DocumentError, Fields, as_choice, as_text

SCHEMA: Final = "inferlane/request/v1"
PRIORITIES: Final = ("low", "normal", "high")
PRIORITY_HEADER: Final = "x-inferlane-priority"
DEADLINE_HEADER: Final = "x-inferlane-deadline-ms"


class RequestError(DocumentError):
    """The request document cannot be read."""


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
    model: str | None = None
    """The model that the body names, read only for routes that ask for it."""

    @classmethod
    def from_json(cls, document: object) -> Request:
        """Read a request document (parsed JSON). Raises `RequestError`."""
        try:
            root = Fields.of(document)
            root.schema(SCHEMA)
            headers = read_headers(root.fields_or_empty("headers"))
            content_type = root.get("content_type")
            content_type = headers.get("content-type", "") if content_type is None else content_type
            return cls(
                id=root.text_or("id", "r-0"),
                method=root.text_or("method", "POST").upper(),
                path=root.text("path"),
                headers=headers,
                content_type=None if content_type == "" else as_text(content_type, root.at("content_type")),
                bytes=root.integer_or("bytes", 0, at_least=0),
                identity=_identity(root),
                model=None if root.get("model") is None else root.text("model"),
            )
        except DocumentError as error:
            raise RequestError(error.path, error.cause) from error


def read_headers(fields: Fields) -> dict[str, str]:
    """Headers by lower-case name; a value may be empty. Raises `DocumentError` on one that is no text."""
    return {
        name.lower(): "" if value == "" else as_text(value, fields.at(name)) for name, value in fields.values.items()
    }


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
        return Identity(kind, claims=read_claims(fields.fields("claims")))
    return ANONYMOUS


def read_claims(fields: Fields) -> dict[str, str]:
    """A token's claims as text; one that is null is not there, so that no pattern matches it."""
    return {name: claim_text(value) for name, value in fields.values.items() if value is not None}


def claim_text(value: object) -> str:
    """A claim as text, the way API Gateway's HTTP APIs flatten it: a list is `[a b]`, whatever its items hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(map(claim_text, value))}]"
    return str(value)
