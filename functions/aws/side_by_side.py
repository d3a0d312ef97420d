"""Many calls of a service at a time: an object or a record takes milliseconds of waiting, and runs have thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

HANDS: Final = 16
"""Threads, and connections of a client. DynamoDB and S3 take thousands of calls a second; a Lambda's CPU takes less."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def side_by_side(work: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
    """`work` on each, in order of `given`.

    After a failure nothing more is begun, what has begun is waited for, and the first error is raised.
    """
    if len(given) < 2:
        return [work(one) for one in given]
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(min(HANDS, len(given))) as pool:
        calls = [pool.submit(work, one) for one in given]
        done, open_ = wait(calls, return_when=FIRST_EXCEPTION)
        if open_:
            for call in open_:
                call.cancel()
            wait(open_)
        for call in calls:
            if call in done and (error := call.exception()) is not None:
                raise error
        return [call.result() for call in calls]


def portions(given: Sequence[Given], most: int) -> Iterator[Sequence[Given]]:
    """`given` in pieces of at most `most`."""
    for begin in range(0, len(given), most):
        yield given[begin : begin + most]
