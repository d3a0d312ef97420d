"""A request that may wait, on its way to become a job: when it is due, which lanes may still answer it in time, and
whether it has to go to them at once.

Due is what the policy grants (`within`) from now on; a deadline that the caller states can only shorten it. Whole
milliseconds, so that record, listing and message never differ by a rounding.

The lanes are those the deadline guard may promote it to: the synchronous ones behind batch in the decision's order;
else those before it, which have just failed or been full and may have come back; else the policy's default order; else
all of the model, serverless first, since it is the one that needs no room to be paid for. One that cannot serve this
body is not among them.

Urgent is what batch would answer too late even if the collector's next look at the queue took it: by then its deadline
might have passed in the queue. It is promoted as it is accepted. What was promoted and not answered is tried again
after an eighth of the time that is left, so that a deadline of half a minute has several tries; after a few, only as
often as its queue shows a message again, so that an outage of a service makes no dead letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from functions.core.batch_plan import TICK_S, in_time
from functions.core.decide import accepts
from functions.core.topology import BatchLane, ServerlessLane, SyncLane

QUICK_TRIES: Final = 6
"""Of a promoted job that is not answered, one soon after the other."""
SHORTEST_PAUSE_S: Final = 2
LONGEST_PAUSE_S: Final = 60
_PAUSE_SHARE: Final = 8


def moment_ms(now: float) -> float:
    """`now` cut to whole milliseconds, Unix seconds."""
    return int(now * 1000) / 1000


def due_at(now: float, within_s: float, asked_ms: int | None) -> float:
    """When the answer is due, Unix seconds; `asked_ms` is the deadline in the caller's headers."""
    return moment_ms(now + (within_s if asked_ms is None else min(within_s, asked_ms / 1000)))


def lanes_in_time(
    order: tuple[str, ...],
    default_order: tuple[str, ...],
    lanes: Mapping[str, SyncLane],
    size: int,
    content_type: str | None,
) -> tuple[str, ...]:
    """The lanes that may answer before the deadline where batch cannot. `order` has batch in it."""
    place = order.index("batch")
    others = sorted(lanes, key=lambda name: not isinstance(lanes[name], ServerlessLane))
    for names in (order[place + 1 :], order[:place], default_order, others):
        if found := _serving(names, lanes, size, content_type):
            return found
    return ()


def urgent(due_at: float, lane: BatchLane | None, lanes: Sequence[str], now: float) -> bool:
    """Whether a job is promoted at once; `lanes` are those that may answer it instead, `lane` is batch's, if it is."""
    return bool(lanes) and (lane is None or not in_time(due_at, lane, 1, now + TICK_S))


def pause_s(due_at: float, received_count: int, now: float) -> int | None:
    """Whole seconds until a promoted job is tried again; None: its queue decides."""
    if received_count >= QUICK_TRIES:
        return None
    left_s = due_at - now
    if left_s <= 0:  # what could be neither answered nor ended is in no hurry any more
        return LONGEST_PAUSE_S
    return int(min(max(left_s / _PAUSE_SHARE, SHORTEST_PAUSE_S), LONGEST_PAUSE_S))


def _serving(
    names: Iterable[str], lanes: Mapping[str, SyncLane], size: int, content_type: str | None
) -> tuple[str, ...]:
    known = [lanes[name] for name in names if name in lanes]
    return tuple(
        lane.name
        for lane in known
        if size <= lane.max_bytes and (lane.content_types is None or accepts(lane.content_types, content_type))
    )
