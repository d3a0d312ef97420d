"""DynamoDB as a `JobStore`: conditional writes of single items, many at a time; `job_items` knows what they look like.

`held_by` None asks for a record that nobody answers for. A list of a tenant's jobs is read from the index for order,
and from the table for content, since the index holds keys only: a job is written into it once, not at each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from functions.aws.attributes import integer, seconds, text, text_of
from functions.aws.job_items import BY_TIME, ItemError, decode, encode, encode_end, key_item, key_of
from functions.aws.sdk_errors import translated
from functions.aws.side_by_side import side_by_side
from functions.aws.tables import Refusal, conditional, read_items, setting
from functions.batch_ports import Page, Sighting
from functions.core.job import End, Job, JobKey, JobState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_SEEN: Final = ("tenant", "id", "state", "accepted_at", "due_at", "run")
"""What a sighting takes of a record."""


class DynamoJobs:
    """One table (see `batch_settings.BatchSettings.jobs_table`)."""

    def __init__(self, client: DynamoDBClient, table: str, retention_s: float) -> None:
        """Ended records expire `retention_s` later."""
        self._client = client
        self._table = table
        self._retention_s = retention_s

    def add(self, job: Job) -> Job | None:
        """Write a new record (see `batch_ports.JobStore`)."""
        item = encode(job, self._retention_s)
        refusal = conditional(
            self._client.put_item, TableName=self._table, Item=item, ConditionExpression="attribute_not_exists(id)"
        )
        if refusal is None or refusal.is_ours(item):
            return None
        # Where the service says nothing of the item, and it has expired meanwhile, it is as new as can be told.
        return decode(refusal.item) if refusal.item else self.find([job.key]).get(job.key)

    def find(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        """Those that exist (see `batch_ports.JobStore`)."""
        asked = [key_item(key) for key in dict.fromkeys(keys)]
        jobs = map(decode, read_items(self._client, self._table, asked))
        return {job.key: job for job in jobs}

    def claim(self, keys: Sequence[JobKey], run: str, held_by: str | None) -> set[JobKey]:
        """Make `run` answer for them (see `batch_ports.JobStore`)."""
        condition, terms = _held(held_by)
        parts = setting({"run": text(run)}, names=["state"], **terms)

        def one(key: JobKey) -> bool:
            return self._update(key, parts, f"#state = :accepted AND (#run = :run OR {condition})") is None

        return self._those(one, keys)

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> set[JobKey]:
        """End them (see `batch_ports.JobStore`)."""
        condition, terms = _held(held_by)

        def one(key: JobKey) -> bool:
            written = encode_end(ends[key], self._retention_s)
            parts = setting(written, names=["run"], **terms)
            refusal = self._update(key, parts, f"#state = :accepted AND {condition}")
            sure = {name: written[name] for name in ("state", "ended_at")}
            return refusal is None or (text_of(refusal.item, "run") == held_by and refusal.is_ours(sure))

        return self._those(one, list(ends))

    def page(self, tenant: str, limit: int, after: tuple[int, str] | None = None) -> Page:
        """Some of a tenant's jobs (see `batch_ports.JobStore`)."""
        asked: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": BY_TIME,
            "KeyConditionExpression": "tenant = :tenant",
            "ExpressionAttributeValues": {":tenant": text(tenant)},
            "ScanIndexForward": False,
            "Limit": limit + 1,
        }
        if after is not None:
            asked["ExclusiveStartKey"] = key_item(JobKey(tenant, after[1])) | {"accepted_at": integer(after[0])}
        with translated():
            found = self._client.query(**asked)["Items"]
        shown = found[:limit]
        records = self.find([key_of(item) for item in shown])
        jobs = tuple(records[key] for item in shown if (key := key_of(item)) in records)
        more = (int(shown[-1]["accepted_at"]["N"]), shown[-1]["id"]["S"]) if len(found) > limit else None
        return Page(jobs, more)

    def sightings(self) -> Iterator[Sighting]:
        """Every record there is (see `batch_ports.JobStore`)."""
        asked: dict[str, Any] = {
            "TableName": self._table,
            "ProjectionExpression": ", ".join(f"#{name}" for name in _SEEN),
            "ExpressionAttributeNames": {f"#{name}": name for name in _SEEN},
        }
        while True:
            with translated():
                answer = self._client.scan(**asked)
            yield from map(_sighting, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _update(self, key: JobKey, parts: Mapping[str, Any], condition: str) -> Refusal | None:
        return conditional(
            self._client.update_item,
            TableName=self._table,
            Key=key_item(key),
            ConditionExpression=condition,
            **parts,
        )

    def _those(self, one: Any, keys: Sequence[JobKey]) -> set[JobKey]:
        """The keys for which `one` is true."""
        asked = list(dict.fromkeys(keys))
        return {key for key, held in zip(asked, side_by_side(one, asked), strict=True) if held}


def _held(held_by: str | None) -> tuple[str, dict[str, Any]]:
    """A condition on who answers for a record that is open, and the condition's own values."""
    accepted = {"accepted": text(JobState.ACCEPTED)}
    if held_by is None:
        return "attribute_not_exists(#run)", accepted
    return "#run = :held_by", accepted | {"held_by": text(held_by)}


def _sighting(item: Mapping[str, Any]) -> Sighting:
    try:
        return Sighting(
            key_of(item),
            JobState(item["state"]["S"]),
            seconds(item["accepted_at"]),
            seconds(item["due_at"]),
            text_of(item, "run"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ItemError(f"a job's item is malformed: {type(error).__name__}") from error
