"""Codes of failing services, in the batch lane's two words; and many calls at a time, of which some fail."""

from __future__ import annotations

import threading
import time

import pytest

from functions.aws.service_errors import failure
from functions.aws.side_by_side import HANDS, portions, side_by_side
from functions.batch_ports import BusyError, UnavailableError

BUSY = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "AWS.SimpleQueueService.OverLimit",
    "KmsThrottled",
    "SlowDown",
    "ResourceLimitExceeded",
    "TooManyRequestsException",
    "TransactionConflictException",
]
OTHER = ["", "InternalServerError", "AccessDeniedException", "ResourceNotFoundException", "QueueDoesNotExist", "503"]


@pytest.mark.parametrize("code", BUSY)
def test_to_slow_down_or_a_quota_is_busy(code: str) -> None:
    """Each service has its own word for it."""
    assert isinstance(failure(code, ValueError("x")), BusyError)


@pytest.mark.parametrize("code", OTHER)
def test_all_else_is_unavailable(code: str) -> None:
    """But for a status that says it, whatever the code."""
    assert isinstance(failure(code, ValueError("x"), 500), UnavailableError)
    assert isinstance(failure(code, ValueError("x"), 429), BusyError)


def test_the_text_names_no_account() -> None:
    """It goes into the log."""
    assert str(failure("", OSError("role of 123456789012"))) == "OSError: role of <account>"


def test_results_come_in_the_order_of_what_was_given() -> None:
    """However long each takes, and never more at a time than there are hands."""
    inside: list[int] = []
    most = [0]
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            inside.append(number)
            most[0] = max(most[0], len(inside))
        time.sleep(0.002 * (number % 3))
        with lock:
            inside.remove(number)
        return -number

    assert side_by_side(work, range(60)) == [-number for number in range(60)]
    assert 1 < most[0] <= HANDS
    assert side_by_side(work, []) == []
    assert side_by_side(work, [7]) == [-7]


def test_after_a_failure_nothing_more_is_begun() -> None:
    """What was under way is waited for, and the first error is raised."""
    done: list[int] = []

    def work(number: int) -> None:
        time.sleep(0.001)
        if number == 20:
            raise BusyError("slow down")
        done.append(number)

    with pytest.raises(BusyError):
        side_by_side(work, range(2000))
    assert set(range(20 - HANDS)) <= set(done)
    assert len(done) < 1000
    before = len(done)
    time.sleep(0.02)
    assert len(done) == before


def test_portions_hold_all_in_order() -> None:
    """The last one what is left."""
    assert [list(some) for some in portions(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert list(portions([], 2)) == []
