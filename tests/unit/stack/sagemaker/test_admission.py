"""How long one more request would wait, and when it is refused."""

from __future__ import annotations

import math

import pytest

from workbench.stack.sagemaker.model.admission import RECENT, Queue, limit_s


def served(workers: int, service_s: float, limit: float = math.inf) -> Queue:
    """An idle queue that has learnt its service time."""
    queue = Queue(workers, limit)
    for _ in range(RECENT):
        queue.end(queue.begin(0.0), service_s)
    return queue


def test_a_free_worker_means_no_wait() -> None:
    """As long as a worker is free nothing waits, whatever is known."""
    queue = Queue(2)
    assert queue.wait_s(0.0) == 0.0
    queue.begin(0.0)
    assert queue.wait_s(100.0) == 0.0


def test_running_requests_count_with_what_they_still_need() -> None:
    """With all workers busy the wait is until the first is free: the mean less its age."""
    queue = served(2, 1.0)
    queue.begin(10.0)
    queue.begin(10.5)
    assert queue.wait_s(10.6) == pytest.approx(0.4)


@pytest.mark.parametrize(("waiting", "expected"), [(0, 0.4), (1, 0.9), (2, 1.4), (3, 1.9), (10, 5.4)])
def test_waiting_requests_take_turns(waiting: int, expected: float) -> None:
    """Each waiting request holds the next free worker for the mean: queued work over workers in the long run."""
    queue = served(2, 1.0)
    queue.begin(10.0)
    queue.begin(10.5)
    queue.waiting = waiting
    assert queue.wait_s(10.6) == pytest.approx(expected)


def test_the_limit_decides() -> None:
    """At the limit a request is still taken, beyond it no more; without a limit always."""
    queue = served(4, 0.3, limit=0.2)
    for n in range(4):
        queue.begin(n * 0.075)
    assert queue.admits(0.225)
    queue.waiting = 1
    assert queue.admits(0.225)
    queue.waiting = 2
    assert not queue.admits(0.225)
    unlimited = served(1, 5.0)
    unlimited.begin(0.0)
    unlimited.waiting = 1000
    assert unlimited.admits(0.0)


def test_stuck_workers_close_the_door() -> None:
    """A request past the mean is expected to need as long again: nobody queues behind workers that never end."""
    queue = served(1, 0.05, limit=0.2)
    queue.begin(0.0)
    assert queue.admits(0.2)
    assert not queue.admits(0.3)


def test_before_the_first_answer_as_many_wait_as_there_are_workers() -> None:
    """Nothing is known yet: a burst on a fresh server queues one request a worker, no more."""
    queue = Queue(2, limit_s=0.2)
    queue.begin(0.0)
    queue.begin(0.0)
    queue.waiting = 1
    assert queue.admits(5.0)
    queue.waiting = 2
    assert not queue.admits(5.0)
    assert Queue(2).admits(0.0)


def test_the_mean_follows_a_change() -> None:
    """Only the most recent answers count."""
    queue = served(1, 10.0)
    for _ in range(RECENT):
        queue.end(queue.begin(0.0), 0.1)
    queue.begin(0.0)
    assert queue.wait_s(0.0) == pytest.approx(0.1)


@pytest.mark.parametrize(("text", "expected"), [(None, math.inf), ("", math.inf), ("0", math.inf), ("200", 0.2)])
def test_environment(text: str | None, expected: float) -> None:
    """Milliseconds from the environment; nothing, or 0, is no limit."""
    assert limit_s({} if text is None else {"INFERLANE_MAX_QUEUE_MS": text}) == expected


@pytest.mark.parametrize("text", ["-1", "soon", "inf", "nan"])
def test_a_wrong_environment_is_told(text: str) -> None:
    """What is no time is refused with the variable's name."""
    with pytest.raises(ValueError, match=f"INFERLANE_MAX_QUEUE_MS must be milliseconds .* got '{text}'"):
        limit_s({"INFERLANE_MAX_QUEUE_MS": text})
