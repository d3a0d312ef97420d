"""A request that may wait, on its way to become a job: when it is due, and which lanes may still answer it in time.

Due is what the policy grants (`within`) from now on; a deadline that the caller states can only shorten it. Whole
milliseconds, so that record, listing and message never differ by a rounding.

The lanes are those the deadline guard may promote it to: the synchronous ones behind batch in the decision's order;
else those before it, which have just failed or been full and may have come back; else the policy's default order; else
all of the model, serverless first, since it is the one that needs no room to be paid for. One that cannot serve this
body is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from functions.core.decide import accepts
from functions.core.topology import ServerlessLane, SyncLane


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


def _serving(
    names: Iterable[str], lanes: Mapping[str, SyncLane], size: int, content_type: str | None
) -> tuple[str, ...]:
    known = [lanes[name] for name in names if name in lanes]
    return tuple(
        lane.name
        for lane in known
        if size <= lane.max_bytes and (lane.content_types is None or accepts(lane.content_types, content_type))
    )
