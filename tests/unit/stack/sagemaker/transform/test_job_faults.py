"""The table of transform jobs' faults."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.unit.stack.sagemaker.transform.test_jobs import add as add_job
from workbench.stack.sagemaker.faults import FaultError
from workbench.stack.sagemaker.transform.events import Events
from workbench.stack.sagemaker.transform.faults import JobFaults
from workbench.stack.sagemaker.transform.jobs import Jobs


def add(table: JobFaults, kind: str, jobs: str = "ours-*", **params: float) -> str:
    """Put a fault in force."""
    return table.add({"jobs": jobs, "kind": kind, "params": params}, 5.0).id


def test_names_by_a_pattern() -> None:
    """A fault holds for jobs whose names its pattern fits, until it is taken back."""
    table = JobFaults()
    fault = add(table, "capacity")
    assert (table.view("ours-1").no_capacity, table.view("others").no_capacity) == (True, False)
    table.remove(fault)
    assert not table.view("ours-1").no_capacity


def test_so_many_jobs_and_no_more() -> None:
    """With `times` the first jobs are met, each as often as it asks, and later ones are not."""
    table = JobFaults()
    add(table, "capacity", times=1)
    seen = [table.view(name).no_capacity for name in ("ours-1", "ours-2", "ours-1")]
    assert seen == [True, False, True]
    assert table.all()[0].shown()["met"] == ["ours-1"]


def test_so_many_calls_and_no_more() -> None:
    """For refusals `times` counts calls; a draw above the share is let through and not counted."""
    table = JobFaults()
    add(table, "limit", times=2, percent=50)
    assert [table.refuses("limit", "ours-1", draw) for draw in (99, 0, 0, 0)] == [False, True, True, False]
    assert not table.refuses("throttle", "ours-1", 0)


def test_an_objects_lot() -> None:
    """About the share of objects fails, always the same ones, and by the fault that the kind says."""
    table = JobFaults()
    add(table, "client", files=30)
    view = table.view("ours-1")
    keys = [f"in/{number}" for number in range(1000)]
    failed = {key for key in keys if view.file_fault(key) == "client"}
    assert 250 < len(failed) < 350
    assert failed == {key for key in keys if view.file_fault(key)}
    add(table, "algorithm")
    assert view.file_fault("in/0") == "algorithm"


def test_the_end_of_a_job() -> None:
    """A job is broken off after so many objects; the service's failure goes before somebody's stop."""
    table = JobFaults()
    add(table, "stop", after_files=1)
    view = table.view("ours-1")
    assert (view.breaks_off(0), view.breaks_off(1)) == (None, "stop")
    add(table, "internal", after_files=1)
    assert view.breaks_off(2) == "internal"


def test_slow_faults_add_up() -> None:
    """Milliseconds and start times add, factors multiply; without a fault nothing is slower."""
    table = JobFaults()
    assert (table.view("ours-1").slowdown(), table.view("ours-1").start_s) == ((0.0, 1.0), 0.0)
    add(table, "slow", ms=100, start_s=5)
    add(table, "slow", factor=3, start_s=1)
    assert (table.view("ours-1").slowdown(), table.view("ours-1").start_s) == ((100.0, 3.0), 6.0)


def test_answers_in_the_models_place() -> None:
    """A share of predictions is answered with the fault's status, 500 unless it says another."""
    table = JobFaults()
    add(table, "errors", percent=20)
    view = table.view("ours-1")
    assert (view.error_status(19), view.error_status(20)) == (500, None)
    add(table, "errors", status=400)
    assert view.error_status(99) == 400


@pytest.mark.parametrize(
    ("params", "draws", "after_s"),
    [
        ({"drop": 50}, [49], []),
        ({"drop": 50, "delay_s": 2}, [50, 99, 0], [2]),
        ({"duplicate": 50, "shuffle_s": 4}, [0, 49, 0, 75], [0, 3]),
    ],
)
def test_events(params: dict[str, float], draws: list[float], after_s: list[float]) -> None:
    """An event is lost, late, doubled, or spread, as the draws have it."""
    table = JobFaults()
    assert table.publications("ours-1", iter(())) == [0]
    table.add({"jobs": "ours-*", "kind": "events", "params": params}, 5.0)
    assert table.publications("ours-1", iter(draws)) == after_s


async def test_events_on_their_way() -> None:
    """A doubled and delayed event reaches the bus twice, after those that come later."""

    class Bus:
        def __init__(self) -> None:
            self.told: list[str] = []

        def put_events(self, *, Entries: Any) -> Any:  # noqa: N803 - boto3's shape
            self.told += [entry["Resources"][0] for entry in Entries]
            return {}

    table, bus, jobs = JobFaults(), Bus(), Jobs()
    add(table, "events", jobs="*slow*", duplicate=100, delay_s=0.05)
    events = Events(bus, table)
    publisher = asyncio.create_task(events.publish_forever())
    slow, quick = add_job(jobs, "slow"), add_job(jobs, "quick")
    for job in (slow, quick):
        events.changed(job, {})
    for _ in itertools.takewhile(lambda _: len(bus.told) < 3, range(100)):
        await asyncio.sleep(0.02)
    publisher.cancel()
    assert bus.told == [quick.arn, slow.arn, slow.arn]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"jobs": "", "kind": "stop"}, "jobs must be a pattern"),
        ({"jobs": "*", "kind": "kill"}, "kind must be one of"),
        ({"jobs": "*", "kind": "stop", "params": {"percent": 3}}, "stop has no parameter 'percent'"),
        ({"jobs": "*", "kind": "errors", "params": {"percent": 101}}, "percent must be a number from 0 to 100"),
        ({"jobs": "*", "kind": "slow", "params": {"seconds": 5}}, "slow needs one of ms, factor, start_s"),
        ({"jobs": "*", "kind": "stop", "params": []}, None),
        ({"jobs": "*", "kind": "stop", "params": [1]}, "params must be a JSON object"),
        ({"jobs": "*", "kind": "stop", "variant": "A"}, "unknown member 'variant'"),
    ],
)
def test_requests_that_make_no_sense(request_: dict[str, object], problem: str | None) -> None:
    """What cannot be done is refused, with what could."""
    if problem is None:
        assert JobFaults().add(request_, 0.0).params == {}
        return
    with pytest.raises(FaultError, match=problem):
        JobFaults().add(request_, 0.0)
