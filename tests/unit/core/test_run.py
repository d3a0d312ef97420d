"""Runs: sums over parts, names and places."""

from __future__ import annotations

import hashlib

from functions.core.job import JobKey
from functions.core.run import (
    Group,
    Line,
    Part,
    Run,
    RunState,
    Tally,
    child_name,
    index_prefix,
    input_prefix,
    output_prefix,
)

GROUP = Group("moderation", "application/json", None, "lines")


def test_a_run_sums_up_its_parts() -> None:
    """Their records, and the first deadline of them all; without parts there is none."""
    run = Run("r", GROUP, RunState.GATHERING, 1.0, parts=(Part("a", 2, 20, 9.0), Part("b", 3, 30, 7.0)))
    assert (run.records, run.first_due) == (5, 7.0)
    empty = Run("r", GROUP, RunState.GATHERING, 1.0)
    assert (empty.records, empty.first_due) == (0, None)
    assert empty.tally == Tally()


def test_a_tally_is_the_sum_of_all_fates() -> None:
    """Each counts once."""
    assert Tally(1, 10, 100, 1000, 10_000, 100_000).total == 111_111


def test_a_line_names_its_job() -> None:
    """By tenant and id."""
    assert Line("acme", "i", 1.0, "f", None, ()).key == JobKey("acme", "i")


def test_a_child_is_named_after_its_parent() -> None:
    """The same name again, of the same stack; another number is another child."""
    parent = "inferlane-my-stack-0123456789abcdef"
    expected = hashlib.sha256(f"{parent}/0".encode()).hexdigest()[:16]
    assert child_name(parent, 0) == f"inferlane-my-stack-{expected}"
    assert child_name(parent, 1) != child_name(parent, 0)


def test_a_run_has_three_places() -> None:
    """No one is a prefix of another run's."""
    assert input_prefix("r") == "batch/r/in/"
    assert index_prefix("r") == "batch/r/index/"
    assert output_prefix("r") == "batch/r/out/"
