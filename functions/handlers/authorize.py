"""The `authorize` Lambda: an HTTP API authorizer (payload 2.0, simple response) over hashed API keys.

The key itself is neither stored nor logged. An error in the look-up is raised: the gateway answers 500 and caches
nothing, which is right for a fault of ours, whereas "not authorized" would blame the caller. What is raised ends in the
function's log as it is, so it says nothing of the table's or the role's ARN.
"""

from __future__ import annotations

import hashlib
from functools import cache

from functions.aws.redaction import redacted
from functions.bootstrap import AuthorizeParts, authorize_parts
from functions.settings import read_authorizer

_LONGEST_KEY = 512


def handler(event: object, context: object) -> dict[str, object]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return authorize(event, _parts())


class KeyLookUpError(Exception):
    """Whether a key is known cannot be told now."""


@cache
def _parts() -> AuthorizeParts:
    return authorize_parts(read_authorizer())


def authorize(event: object, parts: AuthorizeParts) -> dict[str, object]:
    """Whether the event's `x-api-key` belongs to an enabled key, and to which."""
    key = _key(event)
    if not key or len(key) > _LONGEST_KEY:
        return {"isAuthorized": False}
    try:
        record = parts.keys.find(hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
    except Exception as error:
        parts.log.error("the keys table cannot be read", extra={"cause": redacted(error)})
        raise KeyLookUpError("the keys table cannot be read; the log says why") from None
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
