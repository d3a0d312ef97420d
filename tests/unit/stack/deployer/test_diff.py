"""The order in which things are deleted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.stack.deployer.fakes import TYPE, urn
from workbench.stack.deployer.diff import deletion_waves
from workbench.stack.deployer.state import Record


def record(number: int, needs: set[int]) -> Record:
    return Record(urn(str(number)), TYPE, str(number), str(number), {}, {}, [urn(str(one)) for one in needs])


@given(st.lists(st.sets(st.integers(0, 30)), max_size=30))
def test_nothing_goes_before_what_needs_it(needs: list[set[int]]) -> None:
    """In any graph without cycles, every record goes exactly once, and after all its dependents."""
    records = [record(number, {one for one in some if one < number}) for number, some in enumerate(needs)]

    waves = deletion_waves(records)

    position = {one.urn: index for index, wave in enumerate(waves) for one in wave}
    assert sorted(one.urn for wave in waves for one in wave) == sorted(one.urn for one in records)
    for one in records:
        assert all(position[dependency] > position[one.urn] for dependency in one.dependencies)


def test_a_cycle_still_ends() -> None:
    """A damaged state is deleted all the same."""
    assert len([one for wave in deletion_waves([record(0, {1}), record(1, {0})]) for one in wave]) == 2
