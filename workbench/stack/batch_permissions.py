"""Which permission SQS's batch calls need on the offline stack: the one of the single call, as on AWS.

MiniStack asks for `sqs:SendMessageBatch`, an action that IAM does not have: on AWS whoever may send a message may send
ten (Amazon SQS developer guide, "API permissions: actions and resource reference"). One of the files that know
MiniStack's internals: one function is wrapped, which a contract test holds.
"""

from __future__ import annotations

from typing import Any, Final

SINGLE: Final = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}


def permit_batches() -> None:
    """From now on, in this process."""
    from ministack.core import iam_actions

    extract = iam_actions.extract_iam_action

    def action(*asked: Any) -> str | None:
        found = extract(*asked)
        return None if found is None else SINGLE.get(found, found)

    iam_actions.extract_iam_action = action
