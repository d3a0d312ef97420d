"""Reading what resources say in JSON, and deep in their properties: policy documents, nested settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def document(text: str) -> Mapping[str, object]:
    """A JSON object; an empty one while it is not known yet (a preview)."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def statements(text: str) -> list[Mapping[str, object]]:
    """The statements of a policy document; none when it is not known yet."""
    found = document(text).get("Statement", [])
    return [found] if isinstance(found, dict) else [each for each in _items(found) if isinstance(each, Mapping)]


def denies_plain_http(statement: Mapping[str, object], service: str) -> bool:
    """Whether a statement refuses everybody whatever the service does, without TLS."""
    return (
        statement.get("Effect") == "Deny"
        and statement.get("Principal") in ("*", {"AWS": "*"})
        and listed(statement.get("Action")) == [f"{service}:*"]
        and find(statement.get("Condition"), "aws:SecureTransport") in ("false", False)
    )


def listed(value: object) -> list[str]:
    """A policy document writes one item or a list of them."""
    return [str(item) for item in _items(value)] if value is not None else []


def _items(value: object) -> Sequence[object]:
    """The members of a list, in any of its forms (the engine's are proxies), else the value alone."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def find(value: object, key: str) -> object:
    """The first value of `key` anywhere inside, else None."""
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, str | int | float | None):
        return None
    return next((found for item in _items(value) if (found := find(item, key)) is not None), None)
