"""DynamoDB as the batch lane uses it: conditions as answers, and reading many items.

An answer may be lost on its way: botocore then sends the call again, and the condition fails because of our own first
writing. So where the call was repeated and the item says what we would have written, the writing was ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from functions.aws.attributes import Item, Value
from functions.aws.sdk_errors import code_of, translated
from functions.aws.side_by_side import portions, side_by_side
from functions.batch_ports import BusyError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MOST_KEYS: Final = 100
"""BatchGetItem's limit."""
_ROUNDS: Final = 6
_PAUSE_S: Final = 0.05
"""Doubled with each round that leaves keys over: 1.6 s in all, then it is too much for the table."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A condition did not hold."""

    item: Item
    """As it is; empty when there is none."""
    repeated: bool
    """Whether the call was sent more than once."""

    def is_ours(self, written: Mapping[str, Value]) -> bool:
        """Whether it failed only because it had been done already, by the same call."""
        return self.repeated and all(self.item.get(name) == value for name, value in written.items())


def conditional(call: Callable[..., object], **asked: Any) -> Refusal | None:
    """A conditional writing; None: done. `call` is the client's method."""
    with translated():
        try:
            call(**asked, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            found: Any = error.response
            attempts = found.get("ResponseMetadata", {}).get("RetryAttempts", 0)
            return Refusal(found.get("Item", {}), repeated=attempts > 0)
    return None


def setting(
    written: Mapping[str, Value], *, remove: Sequence[str] = (), names: Sequence[str] = (), **terms: Value
) -> dict[str, Any]:
    """The parts of an UpdateItem that set and remove attributes: each behind a placeholder, `#name` and `:name`.

    `names` and `terms` are attributes and values that only the condition speaks of.
    """
    update = "SET " + ", ".join(f"#{name} = :{name}" for name in written)
    if remove:
        update += " REMOVE " + ", ".join(f"#{name}" for name in remove)
    return {
        "UpdateExpression": update,
        "ExpressionAttributeNames": {f"#{name}": name for name in (*written, *remove, *names)},
        "ExpressionAttributeValues": {f":{name}": value for name, value in (*written.items(), *terms.items())},
    }


def read_items(client: DynamoDBClient, table: str, keys: Sequence[Mapping[str, Any]]) -> list[Item]:
    """The items of these keys that exist, consistently, in no order. Keys must differ."""
    found = side_by_side(lambda portion: _read(client, table, portion), list(portions(keys, _MOST_KEYS)))
    return [item for some in found for item in some]


def _read(client: DynamoDBClient, table: str, keys: Sequence[Mapping[str, Any]]) -> list[Item]:
    items: list[Item] = []
    asked: Any = {table: {"Keys": list(keys), "ConsistentRead": True}}
    for turn in range(_ROUNDS):
        if turn:
            time.sleep(_PAUSE_S * 2 ** (turn - 1))
        with translated():
            answer = client.batch_get_item(RequestItems=asked)
        items += answer["Responses"].get(table, [])
        asked = answer.get("UnprocessedKeys")
        if not asked:
            return items
    raise BusyError("DynamoDB leaves keys of BatchGetItem over")
