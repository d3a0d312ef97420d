"""Whether a document is a policy: what is wrong with it, each with its line, or the policy it says.

The rules of the language are the core's; this maps the place of each problem to the line of the authored text.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy, problems
from workbench.errors import UserError
from workbench.policy import document
from workbench.policy.document import Document, Problem, UnreadableError


@dataclass(frozen=True, slots=True)
class Checked:
    """A document, and the policy it says or the problems it has."""

    name: str
    document: Document | None
    """None when the bytes are no document at all."""
    policy: Policy | None
    problems: tuple[Problem, ...]


class PolicyRefusedError(UserError):
    """The document is no valid policy; the message has the first problem."""

    def __init__(self, checked: Checked) -> None:
        first, more = checked.problems[0], len(checked.problems) - 1
        super().__init__(f"{first} (and {more} more: inferlane policy check {checked.name})" if more else str(first))
        self.checked = checked


def check(source: str) -> Checked:
    """Check a file, or standard input for `-`. Raises `UserError` only when it cannot be read at all."""
    try:
        found = document.read(source)
    except UnreadableError as error:
        return Checked(source, None, None, (error.problem,))
    return check_document(found)


def check_document(found: Document) -> Checked:
    """Check a document that was read."""
    errors = problems(found.value)
    if errors:
        return Checked(found.name, found, None, tuple(found.problem(error.path, error.cause) for error in errors))
    return Checked(found.name, found, parse_policy(found.value), ())


def load(source: str) -> tuple[Document, Policy]:
    """The document and its policy. Raises `PolicyRefusedError` when it has problems, `UserError` when unreadable."""
    checked = check(source)
    if checked.document is None or checked.policy is None:
        raise PolicyRefusedError(checked)
    return checked.document, checked.policy
