"""The `authorize` Lambda: an HTTP API authorizer (payload 2.0, simple response) over hashed API keys.

The key itself is neither stored nor logged. An error in the look-up is raised: the gateway answers 500 and caches
nothing, which is right for a fault of ours, whereas "not authorized" would blame the caller.
"""

from __future__ import annotations

import hashlib
from functools import cache

from functions.bootstrap import AuthorizeParts, authorize_parts
from functions.settings import read_authorizer

_LONGEST_KEY = 512


def handler(event: object, context: object) -> dict[str, object]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return authorize(event, _parts())


@cache
def _parts() -> AuthorizeParts:
    return authorize_parts(read_authorizer())


def authorize(event: object, parts: AuthorizeParts) -> dict[str, object]:
    """Whether the event's `x-api-key` belongs to an enabled key, and to which."""
    key = _key(event)
    if not key or len(key) > _LONGEST_KEY:
        return {"isAuthorized": False}
    record = parts.keys.find(hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
    if record is None or record.disabled:
        return {"isAuthorized": False}
    return {"isAuthorized": True, "context": {"key_id": record.key_id}}


def _key(event: object) -> str | None:
    """The identity source API Gateway took from the header, else the header itself."""
    if not isinstance(event, dict):
        return None
    source = event.get("identitySource")
    if isinstance(source, list) and source and isinstance(source[0], str):
        return source[0]
    headers = event.get("headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if isinstance(name, str) and name.lower() == "x-api-key" and isinstance(value, str):
            return value
    return None
