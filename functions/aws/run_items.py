"""A run as a DynamoDB item, in the table that also holds the collector's lease.

* `name` (hash): the run's, which is its transform job's; the lease is called `~lease`, which is no job's name.
* `open`: "1" until the run is settled; the sparse index `open` (hash `open`, range `name`) finds those that are.
* `model`, `content_type`, `accept`, `form`: its group. `attempt`, `parent`, `input`, `output`: see `core.run`.
* `state`; `opened_at`, `started_at`, `settled_at`: Unix milliseconds. `tally`: a map of counts.
* `parts`: a list, an entry each of [name, records, bytes, first due in milliseconds]; `part_names`: their names as a
  set, by which a part is added once.
* `expires_at`: Unix seconds, DynamoDB's time to live; only once it is settled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, cast

from functions.aws.attributes import Item, Value, given, integer, millis, optional_text, seconds, stamp, text, text_of
from functions.aws.job_items import ItemError
from functions.core.run import Form, Group, Part, Run, RunState, Tally

OPEN: Final = "open"
"""Attribute and index."""
OPEN_VALUE: Final = {"S": "1"}
LEASE: Final = "~lease"


def encode(run: Run, retention_s: float) -> dict[str, Value]:
    """The whole item."""
    group, settled = run.group, run.state is RunState.SETTLED
    names = [part.name for part in run.parts]
    return given(
        name=text(run.name),
        open=None if settled else OPEN_VALUE,
        model=text(group.model),
        content_type=optional_text(group.content_type),
        accept=optional_text(group.accept),
        form=text(group.form),
        state=text(run.state),
        attempt=integer(run.attempt),
        parent=optional_text(run.parent),
        input=optional_text(run.input),
        output=optional_text(run.output),
        opened_at=stamp(run.opened_at),
        started_at=None if run.started_at is None else stamp(run.started_at),
        parts={"L": [encode_part(part) for part in run.parts]},
        part_names={"SS": names} if names else None,
        **({} if run.settled_at is None else encode_settled(run.settled_at, run.tally, retention_s)),
    )


def encode_part(part: Part) -> dict[str, Any]:
    """An entry of `parts`."""
    return {"L": [text(part.name), integer(part.records), integer(part.size), integer(millis(part.first_due))]}


def encode_settled(at: float, tally: Tally, retention_s: float) -> dict[str, Value]:
    """The attributes by which a run is settled."""
    return {
        "settled_at": stamp(at),
        "tally": {"M": {name: integer(count) for name, count in asdict(tally).items()}},
        "expires_at": integer(int(at + retention_s)),
    }


def decode(item: Item) -> Run:
    """The run. Raises `job_items.ItemError`."""
    try:
        started_at, settled_at, tally = item.get("started_at"), item.get("settled_at"), item.get("tally")
        return Run(
            name=item["name"]["S"],
            group=Group(
                item["model"]["S"],
                text_of(item, "content_type"),
                text_of(item, "accept"),
                cast("Form", item["form"]["S"]),
            ),
            state=RunState(item["state"]["S"]),
            opened_at=seconds(item["opened_at"]),
            attempt=int(item["attempt"]["N"]),
            parts=tuple(_part(entry) for entry in item["parts"]["L"]),
            started_at=None if started_at is None else seconds(started_at),
            settled_at=None if settled_at is None else seconds(settled_at),
            tally=Tally() if tally is None else _tally(tally["M"]),
            parent=text_of(item, "parent"),
            input=text_of(item, "input"),
            output=text_of(item, "output"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ItemError(f"a run's item is malformed: {type(error).__name__}") from error


def _part(entry: Mapping[str, Any]) -> Part:
    name, records, size, first_due = entry["L"]
    return Part(name["S"], int(records["N"]), int(size["N"]), seconds(first_due))


def _tally(found: Mapping[str, Value]) -> Tally:
    return Tally(**{name: int(count["N"]) for name, count in found.items()})
