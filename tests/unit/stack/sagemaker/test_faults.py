"""The fault table."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.stack.sagemaker.faults import FaultError, FaultTable, Slowdown


def add(table: FaultTable, kind: str, variant: str | None = None, **params: float) -> str:
    """Put a fault on endpoint `e`."""
    return table.add({"endpoint": "e", "kind": kind, "variant": variant, "params": params}, 5.0).id


def test_faults_hold_for_their_variant() -> None:
    """A fault with a variant leaves the others alone; one without holds for all; another endpoint sees nothing."""
    table = FaultTable()
    add(table, "kill", "A")
    add(table, "throttle")
    assert (table.view("e", "A").held_down, table.view("e", "B").held_down) == (True, False)
    assert (table.view("e", "B").throttles, table.view("other", "B").throttles) == (True, False)
    assert table.view("e", "A").ids() == ["fault-1", "fault-2"]


def test_slow_faults_add_up() -> None:
    """Milliseconds add, factors multiply."""
    table = FaultTable()
    add(table, "slow", ms=100)
    add(table, "slow", ms=50, factor=2)
    add(table, "slow", factor=3)
    assert table.view("e", "A").slowdown == Slowdown(ms=150, factor=6)
    assert FaultTable().view("e", "A").slowdown is None


def test_error_share() -> None:
    """A draw below the percentage fails with the fault's status, 500 unless it says another."""
    table = FaultTable()
    first = add(table, "errors", percent=20)
    assert (table.view("e", "A").error_status(19.9), table.view("e", "A").error_status(20.0)) == (500, None)
    table.remove(first)
    add(table, "errors", percent=100, status=429)
    assert table.view("e", "A").error_status(99.9) == 429


def test_platform_and_reset() -> None:
    """The oldest platform fault says how SageMaker refuses; a reset fault holds until it ends."""
    table = FaultTable()
    assert (table.view("e", "A").refusal, table.view("e", "A").resets) == (None, False)
    first = add(table, "platform", status=530)
    add(table, "platform", status=503)
    add(table, "reset", "A")
    assert (table.view("e", "A").refusal, table.view("e", "A").resets) == (530, True)
    assert table.view("e", "B").resets is False
    table.remove(first)
    assert table.view("e", "A").refusal == 503


def test_faults_of_containers() -> None:
    """Health checks, disk and access hold while asked for; memory takes a share of the predictions, all unless said."""
    table = FaultTable()
    view = table.view("e", "A")
    assert (view.fails_pings, view.disk_full, view.denies, view.out_of_memory(0.0)) == (False, False, False, False)
    for kind in ("ping", "disk", "deny"):
        add(table, kind)
    share = add(table, "memory", percent=20)
    assert (view.fails_pings, view.disk_full, view.denies) == (True, True, True)
    assert (view.out_of_memory(19.9), view.out_of_memory(20.0)) == (True, False)
    table.remove(share)
    add(table, "memory", "A")
    assert (view.out_of_memory(99.9), table.view("e", "B").out_of_memory(0.0)) == (True, False)


def test_listing_and_removal() -> None:
    """Faults are shown as they were asked for, end by id or with their endpoint, and ids are not reused."""
    table = FaultTable()
    fault = add(table, "stress", cores=1.5, seconds=10)
    assert table.all()[0].shown() == {
        "id": "fault-1",
        "endpoint": "e",
        "kind": "stress",
        "variant": None,
        "params": {"cores": 1.5, "seconds": 10},
        "since": 5.0,
    }
    assert table.remove(fault) is not None
    assert table.remove(fault) is None
    assert add(table, "hang") == "fault-2"
    table.forget("e")
    assert table.all() == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ([], "not a JSON object"),
        ({"kind": "kill"}, "endpoint must name"),
        ({"endpoint": "e", "kind": ["kill"]}, "kind must be one of"),
        ({"endpoint": "e", "kind": "kill", "count": 1}, "unknown member 'count'"),
        ({"endpoint": "e", "kind": "kill", "params": {"ms": 1}}, "kill has no parameter 'ms'; it takes seconds"),
        ({"endpoint": "e", "kind": "slow", "params": {"ms": "1"}}, "ms must be a number from 0 to 600000; got '1'"),
        ({"endpoint": "e", "kind": "slow", "params": {"seconds": 1}}, "slow needs ms or factor"),
        ({"endpoint": "e", "kind": "stress"}, "stress needs cores"),
        ({"endpoint": "e", "kind": "platform"}, "platform needs status"),
        ({"endpoint": "e", "kind": "platform", "params": {"status": 400}}, "502, 503, 504, 530 (400: use throttle)"),
        ({"endpoint": "e", "kind": "reset", "params": {"status": 500}}, "reset has no parameter 'status'"),
        ({"endpoint": "e", "kind": "errors", "params": {"percent": 101}}, "percent must be a number from 0 to 100"),
    ],
)
def test_bad_requests(request_: Any, message: str) -> None:
    """What makes no sense is refused with the reason."""
    table = FaultTable()
    with pytest.raises(FaultError) as caught:
        table.add(request_, 0.0)
    assert message in str(caught.value)
    assert table.all() == []
