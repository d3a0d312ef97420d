"""A job's record as a DynamoDB item: the one place that knows its attributes.

* `tenant`, `id`: the key (hash, range). A record is found only by naming whose it is.
* `state` and `run`: see `core.job`. `run` is absent while nobody answers for it, and stays after the end.
* `accepted_at`, `due_at`: Unix milliseconds; the index `by_time` is ordered by the first.
* `model`, `fingerprint`, `dataset` {`input`, `output`}: what was asked.
* `ended_at`, `lane`, `cost_usd`, `result` {`type`, `size`, `body` or `object`}, `error` {`status`, `detail`}: its end.
* `expires_at`: Unix seconds, DynamoDB's time to live; only once it has ended, since nothing open may vanish.

Whoever writes an item names every attribute by a placeholder: several are reserved words of DynamoDB's expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from functions.aws.attributes import (
    Item,
    Value,
    decimal,
    given,
    integer,
    optional_text,
    seconds,
    stamp,
    text,
    text_of,
)
from functions.core.job import Dataset, End, Job, JobError, JobKey, JobState, Result

BY_TIME: Final = "by_time"
"""Index: hash `tenant`, range `accepted_at`, keys only."""
EXPIRES_AT: Final = "expires_at"


class ItemError(ValueError):
    """An item of one of our tables is malformed: ours to mend."""


def key_item(key: JobKey) -> dict[str, Any]:
    """The item's key."""
    return {"tenant": text(key.tenant), "id": text(key.id)}


def key_of(item: Item) -> JobKey:
    """Whose item it is."""
    return JobKey(item["tenant"]["S"], item["id"]["S"])


def encode(job: Job, retention_s: float) -> dict[str, Value]:
    """The whole record; one that has ended expires `retention_s` later."""
    dataset = job.dataset
    return given(
        **key_item(job.key),
        model=text(job.model),
        fingerprint=text(job.fingerprint),
        accepted_at=stamp(job.accepted_at),
        due_at=stamp(job.due_at),
        run=optional_text(job.run),
        dataset=None if dataset is None else {"M": {"input": text(dataset.input), "output": text(dataset.output)}},
        **({"state": text(job.state)} if job.end is None else encode_end(job.end, retention_s)),
    )


def encode_end(end: End, retention_s: float) -> dict[str, Value]:
    """The attributes by which a record ends."""
    result, error = end.result, end.error
    return given(
        state=text(end.state),
        ended_at=stamp(end.at),
        expires_at=integer(int(end.at + retention_s)),
        lane=optional_text(end.lane),
        cost_usd=None if end.cost_usd is None else decimal(end.cost_usd),
        result=None if result is None else {"M": _encode_result(result)},
        error=None if error is None else {"M": {"status": integer(error.status), "detail": text(error.detail)}},
    )


def _encode_result(result: Result) -> dict[str, Value]:
    return given(
        type=optional_text(result.content_type),
        size=integer(result.size),
        body=None if result.body is None else {"B": result.body},
        object=optional_text(result.object),
    )


def decode(item: Item) -> Job:
    """The record. Raises `ItemError`."""
    try:
        return Job(
            key=key_of(item),
            model=item["model"]["S"],
            fingerprint=item["fingerprint"]["S"],
            accepted_at=seconds(item["accepted_at"]),
            due_at=seconds(item["due_at"]),
            run=text_of(item, "run"),
            end=_end(item),
            dataset=_dataset(item.get("dataset")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ItemError(f"a job's item is malformed: {type(error).__name__}") from error


def _end(item: Item) -> End | None:
    state = JobState(item["state"]["S"])
    if state is JobState.ACCEPTED:
        return None
    result, error, cost_usd = item.get("result"), item.get("error"), item.get("cost_usd")
    return End(
        state,
        seconds(item["ended_at"]),
        lane=text_of(item, "lane"),
        cost_usd=None if cost_usd is None else float(cost_usd["N"]),
        result=None if result is None else _result(result["M"]),
        error=None if error is None else JobError(int(error["M"]["status"]["N"]), error["M"]["detail"]["S"]),
    )


def _result(found: Mapping[str, Value]) -> Result:
    body = found.get("body")
    return Result(
        text_of(found, "type"),
        int(found["size"]["N"]),
        body=None if body is None else bytes(body["B"]),
        object=text_of(found, "object"),
    )


def _dataset(found: Value | None) -> Dataset | None:
    return None if found is None else Dataset(found["M"]["input"]["S"], found["M"]["output"]["S"])
