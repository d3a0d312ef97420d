"""One snapshot for all instances, through DynamoDB: whoever finds it old takes a lease and reads CloudWatch for all.

Two items of one table: `snapshot` {body, taken_at, epoch, ttl} and, apart from it because a write is charged by the
item's size, `lease` {lease_owner, lease_until, epoch, ttl}. Rules:

* A snapshot younger than `ttl_s` is served from memory. When it becomes old each instance looks at the item, a little
  apart from the others, and takes what is newer; so most find it renewed already.
* Who finds it old writes the lease, if nobody holds one (conditional). Who does not get it serves the old one, and
  looks again soon. A lease is never given back: it ends by itself, which keeps two readings apart also when reading
  fails, and replaces a holder that died.
* Each lease has the next `epoch`, and a snapshot is replaced only by one of a later epoch: what a holder writes after
  it was overtaken is refused, whatever its clock said.
* Clocks may differ by seconds. A snapshot or a lease from further ahead than that is the mistake of one clock: it
  counts as old, or as free, and is overwritten.
* DynamoDB slow, throttled or gone: the last one is served with its age. Only when it is too old to be believed, or
  there is none, does this instance read CloudWatch for itself. It looks again after pauses that double up to a minute:
  a look in vain takes up to most of a second, out of some caller's deadline.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from functions.aws.direct import ConditionalCheckFailedError, Items
from functions.aws.redaction import redacted
from functions.aws.snapshot_codec import CodecError, decode, encode
from functions.core.snapshot import STALE_S, Snapshot
from functions.ports import Log

LEASE_S: Final = 5.0
"""Longer than one reading of CloudWatch may take (its client gives up after 3 s), shorter than a snapshot's life."""
_SKEW_S: Final = 5.0
_LOOK_AGAIN_S: Final = 1.0
"""While another instance reads."""
_LONGEST_PAUSE_S: Final = 60.0
"""Between looks in vain; a tenth of the age at which a snapshot is no longer believed."""
_SPREAD_S: Final = 2.0
"""Instances look this far apart."""
_KEPT_S: Final = 86_400
"""Items of a stack that nobody calls any more expire after a day."""
_LARGEST: Final = 390_000
"""DynamoDB's limit for an item is 400 KB."""
_LOG_EVERY_S: Final = 60.0


class SharedSignals:
    """A `SignalSource` of many instances."""

    def __init__(
        self,
        items: Items,
        table: str,
        read: Callable[[float, Snapshot | None], Snapshot],
        *,
        owner: str,
        ttl_s: float,
        log: Log,
    ) -> None:
        """`read(now, last)` asks CloudWatch and may raise; `owner` names this instance, unlike any other."""
        self._items = items
        self._table = table
        self._read = read
        self._owner = owner
        self._ttl_s = ttl_s
        self._log = log
        self._spread_s = min(_SPREAD_S, ttl_s / 4) * (zlib.crc32(owner.encode()) % 1000) / 1000
        self._held: Snapshot | None = None
        self._epoch = 0
        self._next_at = float("-inf")
        self._in_vain = 0
        self._told_at = float("-inf")

    def snapshot(self, now: float) -> Snapshot:
        """The newest that is shared (see `ports.SignalSource`)."""
        if now >= self._next_at or now < self._next_at - 2 * max(self._ttl_s, _LONGEST_PAUSE_S):
            self._next_at = self._look(now)
        return self._held or Snapshot(None)

    def _look(self, now: float) -> float:
        """Renew what is held; when to look again."""
        try:
            self._take_shared()
            epoch = None if self._fresh(now) else self._lease(now)
        except Exception as error:
            self._tell("The shared snapshot cannot be reached", error, now)
            return self._alone(now)
        self._in_vain = 0
        if self._fresh(now):
            return self._becomes_old_at(now)
        if epoch is None:
            return now + min(_LOOK_AGAIN_S, self._ttl_s)
        return self._renew(epoch, now)

    def _fresh(self, now: float) -> bool:
        taken_at = None if self._held is None else self._held.taken_at
        return taken_at is not None and -_SKEW_S <= now - taken_at < self._ttl_s

    def _becomes_old_at(self, now: float) -> float:
        taken_at = now if self._held is None or self._held.taken_at is None else min(now, self._held.taken_at)
        return taken_at + self._ttl_s + self._spread_s

    def _take_shared(self) -> None:
        item = self._items.get_item(TableName=self._table, Key={"pk": {"S": "snapshot"}}).get("Item")
        if item is None or (epoch := int(item["epoch"]["N"])) <= self._epoch:
            return
        try:
            self._held, self._epoch = decode(bytes(item["body"]["B"])), epoch
        except CodecError as error:
            # Written by another version of this code, say: as good as none, and replaced like an old one.
            self._log.warning("The shared snapshot cannot be read and is replaced", extra={"cause": str(error)})

    def _lease(self, now: float) -> int | None:
        """The lease's epoch; None while another holds one. Epochs begin at the time, so that a table that lost its
        lease item to expiry still goes on from later ones."""
        try:
            answer = self._items.update_item(
                TableName=self._table,
                Key={"pk": {"S": "lease"}},
                UpdateExpression=(
                    "SET lease_owner = :me, lease_until = :until, #ttl = :ttl, "
                    "#epoch = if_not_exists(#epoch, :start) + :one"
                ),
                ConditionExpression=(
                    "attribute_not_exists(lease_until) OR lease_until <= :now OR lease_until > :impossible"
                ),
                ExpressionAttributeNames={"#ttl": "ttl", "#epoch": "epoch"},
                ExpressionAttributeValues={
                    ":me": {"S": self._owner},
                    ":now": _number(now),
                    ":until": _number(now + LEASE_S),
                    ":impossible": _number(now + LEASE_S + _SKEW_S),
                    ":start": {"N": str(int(now * 1000))},
                    ":one": {"N": "1"},
                    ":ttl": {"N": str(int(now) + _KEPT_S)},
                },
                ReturnValues="UPDATED_NEW",
            )
        except ConditionalCheckFailedError:
            return None
        return int(answer["Attributes"]["epoch"]["N"])

    def _renew(self, epoch: int, now: float) -> float:
        """Read CloudWatch, for everybody."""
        try:
            fresh = self._read(now, self._held)
        except Exception as error:
            self._tell("CloudWatch cannot be read; the last snapshot serves on", error, now)
            return now + LEASE_S
        body = encode(fresh)
        self._held, self._epoch = decode(body), epoch  # what the others will see, to the last digit
        try:
            self._share(body, fresh, epoch, now)
        except Exception as error:
            self._tell("The shared snapshot cannot be written", error, now)
        return self._becomes_old_at(now)

    def _share(self, body: bytes, fresh: Snapshot, epoch: int, now: float) -> None:
        if len(body) > _LARGEST:
            raise ValueError(f"a snapshot of {len(body)} bytes does not fit into an item")
        with suppress(ConditionalCheckFailedError):  # overtaken: theirs is newer and stays
            self._items.put_item(
                TableName=self._table,
                Item={
                    "pk": {"S": "snapshot"},
                    "body": {"B": body},
                    "taken_at": _number(fresh.taken_at or now),
                    "epoch": {"N": str(epoch)},
                    "ttl": {"N": str(int(now) + _KEPT_S)},
                },
                ConditionExpression="attribute_not_exists(epoch) OR epoch < :mine",
                ExpressionAttributeValues={":mine": {"N": str(epoch)}},
            )

    def _alone(self, now: float) -> float:
        """Without DynamoDB: CloudWatch for this instance, once what it has cannot be believed any more."""
        age_s = None if self._held is None else self._held.age_s(now)
        if age_s is None or age_s > STALE_S:
            try:
                self._held = self._read(now, self._held)
            except Exception as error:
                self._tell("CloudWatch cannot be read", error, now)
        pause_s = max(self._ttl_s, min(_LONGEST_PAUSE_S, self._ttl_s * 2.0**self._in_vain))
        self._in_vain = min(self._in_vain + 1, 10)
        return now + pause_s

    def _tell(self, what: str, error: Exception, now: float) -> None:
        if not 0 <= now - self._told_at < _LOG_EVERY_S:
            self._told_at = now
            self._log.warning(what, extra={"cause": redacted(error)})


def _number(value: float) -> dict[str, str]:
    return {"N": f"{value:.3f}"}
