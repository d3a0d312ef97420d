"""Failure marks through DynamoDB: which lanes each instance's breaker opened of late, for the others to see.

One small item, `marks`, beside the shared snapshot. Its attributes are named `slot|model|lane` and hold when a lane
was opened. An instance writes into one of eight slots by its name, so that marks of different instances stand side by
side without anyone reading before writing, and the item stays small at any number of instances; two that share a slot
count as one, which only makes the others slower to believe.

Written only when a breaker opens: at most once per lane and opening (5 s). Read with some of the requests: each 15 s
while all is well, each 2 s while a lane fails here, which is when it matters what the others know. Marks that have
grown old are removed along with the next write. Whatever goes wrong, no request does: each instance learns alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from functions.aws.direct import Items
from functions.aws.redaction import redacted
from functions.ports import LaneKey, Log

_SLOTS: Final = 8
_CALM_S: Final = 15.0
_URGENT_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 60.0
"""Looks in vain are this far apart in the end: each takes up to most of a second, out of some caller's deadline."""
_OLD_S: Final = 600.0
_KEPT_S: Final = 86_400
_LOG_EVERY_S: Final = 60.0


class SharedMarks:
    """A `FailureMarks` of many instances."""

    def __init__(self, items: Items, table: str, *, owner: str, log: Log) -> None:
        """`owner` names this instance, unlike any other."""
        self._items = items
        self._table = table
        self._slot = str(zlib.crc32(owner.encode()) % _SLOTS)
        self._log = log
        self._found: dict[str, float] = {}
        self._marks: dict[LaneKey, list[float]] = {}
        self._looked_at = float("-inf")
        self._told_at = float("-inf")
        self._in_vain = 0

    def marks(self, now: float, *, urgent: bool) -> Mapping[LaneKey, Sequence[float]]:
        """The others' marks (see `ports.FailureMarks`)."""
        wait_s = _URGENT_S if urgent else _CALM_S
        if self._in_vain:
            wait_s = min(_LONGEST_PAUSE_S, _CALM_S * 2.0 ** (self._in_vain - 1))
        if not 0 <= now - self._looked_at < wait_s:
            self._looked_at = now
            self._look(now)
        return self._marks

    def publish(self, opened: Mapping[LaneKey, float], now: float) -> None:
        """Leave own marks."""
        mine = {f"{self._slot}|{model}|{lane}": at for (model, lane), at in opened.items()}
        old = [name for name, at in self._found.items() if abs(now - at) > _OLD_S and name not in mine]
        names = {"#ttl": "ttl", **{f"#s{i}": name for i, name in enumerate(mine)}}
        names |= {f"#r{i}": name for i, name in enumerate(old)}
        values: dict[str, dict[str, str]] = {":ttl": {"N": str(int(now) + _KEPT_S)}}
        values |= {f":s{i}": {"N": f"{at:.3f}"} for i, at in enumerate(mine.values())}
        update = ", ".join(["SET #ttl = :ttl", *(f"#s{i} = :s{i}" for i in range(len(mine)))])
        if old:
            update += " REMOVE " + ", ".join(f"#r{i}" for i in range(len(old)))
        try:
            self._items.update_item(
                TableName=self._table,
                Key={"pk": {"S": "marks"}},
                UpdateExpression=update,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except Exception as error:
            self._tell("A failure mark cannot be left", error, now)

    def _look(self, now: float) -> None:
        try:
            item = self._items.get_item(TableName=self._table, Key={"pk": {"S": "marks"}}).get("Item", {})
            self._found = {name: float(value["N"]) for name, value in item.items() if "|" in name and "N" in value}
        except Exception as error:
            self._in_vain = min(self._in_vain + 1, 10)
            self._tell("Failure marks cannot be read", error, now)
            return
        self._in_vain = 0
        self._marks = {}
        for name, at in self._found.items():
            slot, _, rest = name.partition("|")
            model, _, lane = rest.rpartition("|")
            if slot != self._slot and abs(now - at) <= _OLD_S:
                self._marks.setdefault((model, lane), []).append(at)

    def _tell(self, what: str, error: Exception, now: float) -> None:
        if not 0 <= now - self._told_at < _LOG_EVERY_S:
            self._told_at = now
            self._log.warning(f"{what}; this instance learns alone", extra={"cause": redacted(error)})
