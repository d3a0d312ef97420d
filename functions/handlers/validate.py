"""The `validate` Lambda: AppConfig asks it before a policy document is stored or deployed.

AppConfig hands over the document (Base64) and takes any error as a refusal, whose message the author sees. So every
problem is named with its place, as `inferlane policy check` does, up to the length of a readable message.
"""

from __future__ import annotations

import base64
import binascii
import json

from functions.core.policy_parser import problems

_LARGEST = 1024 * 1024
_LONGEST_MESSAGE = 1000


class InvalidPolicyError(ValueError):
    """The document must not become the policy; the message says why."""


def handler(event: object, context: object) -> None:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point. Raises `InvalidPolicyError`."""
    found = refusals(event)
    if found:
        raise InvalidPolicyError(_message(found))


def refusals(event: object) -> list[str]:
    """Why the event's document is refused; empty when it is not."""
    content = event.get("content") if isinstance(event, dict) else None
    if not isinstance(content, str):
        return ["the event carries no content"]
    try:
        body = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return ["the event's content is not Base64"]
    if len(body) > _LARGEST:
        return [f"the document is larger than {_LARGEST} bytes"]
    try:
        return [str(problem) for problem in problems(json.loads(body.decode("utf-8")))]
    except json.JSONDecodeError as error:
        return [f"not JSON: {error.msg} at line {error.lineno} column {error.colno}"]
    except UnicodeDecodeError:
        return ["not UTF-8"]
    except RecursionError:
        return ["nested too deeply"]


def _message(found: list[str]) -> str:
    """As many problems as fit, and how many there are besides."""
    lines: list[str] = []
    for i, problem in enumerate(found):
        more = f"and {len(found) - i} more"
        if sum(len(line) + 1 for line in lines) + len(problem) + 1 + len(more) > _LONGEST_MESSAGE and lines:
            return "\n".join([*lines, more])
        lines.append(problem[:_LONGEST_MESSAGE])
    return "\n".join(lines)
