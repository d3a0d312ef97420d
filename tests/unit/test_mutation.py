"""The judge of mutation runs: what counts as killed, and what cannot be judged."""

from __future__ import annotations

import pytest

from tests.mutation import MutationError, Tally, report, tally, whole

PRINTED = [
    "    functions.core.latches.x_replay__mutmut_1: killed",
    "    functions.core.latches.x_replay__mutmut_2: survived",
    "    functions.core.latches.x_replay__mutmut_3: timeout",
    "    functions.core.latches.x_latches__mutmut_1: no tests",
    "    functions.core.budgets.xǁBudgetǁtake__mutmut_1: killed",
    "    functions.core.plan.x_usable_s__mutmut_1: not checked",
]


def test_a_mutant_is_killed_when_a_test_fails_or_never_ends() -> None:
    """What survived, or was reached by no test, is named; what was not run does not count."""
    assert tally(PRINTED) == {
        "budgets": Tally(1, 1, ()),
        "latches": Tally(
            2,
            4,
            ("functions.core.latches.x_replay__mutmut_2", "functions.core.latches.x_latches__mutmut_1 (no tests)"),
        ),
    }


def test_the_weakest_module_is_printed_first_and_the_whole_last() -> None:
    """Killed, total and share."""
    assert [line.split() for line in report(tally(PRINTED)).splitlines()] == [
        ["latches", "2/4", "50.0%"],
        ["budgets", "1/1", "100.0%"],
        ["all", "3/5", "60.0%"],
    ]
    assert whole([]).share == 1.0


@pytest.mark.parametrize("line", ["Traceback", "    functions.aws.keys.x_f__mutmut_1: killed"])
def test_what_mutmut_does_not_print_is_refused(line: str) -> None:
    """A changed tool must not look like a perfect score."""
    with pytest.raises(MutationError, match=r"no mutant of functions\.core$"):
        tally([*PRINTED, line])
