"""DynamoDB as a `RunStore`; `run_items` knows what an item looks like.

Runs that are open are few, so the index holds keys only and the items are read from the table, consistently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from functions.aws.attributes import Value, stamp, text
from functions.aws.run_items import LEASE, OPEN, OPEN_VALUE, decode, encode, encode_part, encode_settled
from functions.aws.sdk_errors import translated
from functions.aws.tables import conditional, read_items, setting
from functions.core.run import Part, Run, RunState, Tally

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ADD_PART: Final = "SET #parts = list_append(#parts, :part) ADD #part_names :name"


class DynamoRuns:
    """One table (see `batch_settings.BatchSettings.runs_table`)."""

    def __init__(self, client: DynamoDBClient, table: str, retention_s: float) -> None:
        """Settled runs expire `retention_s` later."""
        self._client = client
        self._table = table
        self._retention_s = retention_s

    def add(self, run: Run) -> bool:
        """Write a new run (see `batch_ports.RunStore`)."""
        item = encode(run, self._retention_s)
        refusal = conditional(
            self._client.put_item,
            TableName=self._table,
            Item=item,
            ConditionExpression="attribute_not_exists(#name)",
            ExpressionAttributeNames={"#name": "name"},
        )
        return refusal is None or refusal.is_ours(item)

    def find(self, name: str) -> Run | None:
        """The run (see `batch_ports.RunStore`)."""
        with translated():
            found = self._client.get_item(TableName=self._table, Key={"name": {"S": name}}, ConsistentRead=True)
        item = found.get("Item")
        return None if item is None else decode(item)

    def open(self) -> tuple[Run, ...]:
        """Those not settled (see `batch_ports.RunStore`)."""
        asked: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": OPEN,
            "KeyConditionExpression": "#open = :open",
            "ExpressionAttributeNames": {"#open": OPEN},
            "ExpressionAttributeValues": {":open": OPEN_VALUE},
        }
        keys: list[Mapping[str, Any]] = []
        while True:
            with translated():
                answer = self._client.query(**asked)
            keys += [{"name": item["name"]} for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                break
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        runs = map(decode, read_items(self._client, self._table, keys))
        return tuple(run for run in runs if run.state is not RunState.SETTLED)

    def add_part(self, name: str, part: Part) -> bool:
        """Add to a gathering run (see `batch_ports.RunStore`)."""
        refusal = conditional(
            self._client.update_item,
            TableName=self._table,
            Key={"name": text(name)},
            UpdateExpression=_ADD_PART,
            ConditionExpression="#state = :gathering AND NOT contains(#part_names, :part_name)",
            ExpressionAttributeNames={"#state": "state", "#parts": "parts", "#part_names": "part_names"},
            ExpressionAttributeValues={
                ":gathering": text(RunState.GATHERING),
                ":part": {"L": [encode_part(part)]},
                ":name": {"SS": [part.name]},
                ":part_name": text(part.name),
            },
        )
        return refusal is None or self._has(name, part)

    def _has(self, name: str, part: Part) -> bool:
        """Whether a run that still gathers holds the part."""
        run = self.find(name)
        return run is not None and run.state is RunState.GATHERING and part.name in {held.name for held in run.parts}

    def move(
        self,
        name: str,
        before: RunState,
        after: RunState,
        *,
        at: float,
        tally: Tally | None = None,
    ) -> bool:
        """Move on (see `batch_ports.RunStore`)."""
        written: dict[str, Value] = {"state": text(after)}
        if after is RunState.RUNNING:
            written["started_at"] = stamp(at)
        if after is RunState.SETTLED:
            written |= encode_settled(at, tally or Tally(), self._retention_s)
        parts = setting(written, remove=[OPEN] if after is RunState.SETTLED else [], before=text(before))
        refusal = conditional(
            self._client.update_item,
            TableName=self._table,
            Key={"name": text(name)},
            ConditionExpression="#state = :before",
            **parts,
        )
        return refusal is None or refusal.is_ours(written)

    def lease(self, owner: str, now: float, until: float) -> bool:
        """Take or keep the lease (see `batch_ports.RunStore`)."""
        written = {"owner": text(owner), "until": stamp(until)}
        refusal = conditional(
            self._client.update_item,
            TableName=self._table,
            Key={"name": text(LEASE)},
            ConditionExpression="attribute_not_exists(#owner) OR #owner = :owner OR #until <= :now",
            **setting(written, now=stamp(now)),
        )
        return refusal is None

    def release(self, owner: str) -> None:
        """Give it back (see `batch_ports.RunStore`)."""
        conditional(
            self._client.delete_item,
            TableName=self._table,
            Key={"name": text(LEASE)},
            ConditionExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":owner": text(owner)},
        )
