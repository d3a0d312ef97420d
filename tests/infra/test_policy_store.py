"""The policy's versions: which of them are the program's own."""

from __future__ import annotations

from infra.components import policy_store
from tests.infra.capture import Program
from tests.infra.conftest import named
from workbench.policy import live


def test_the_programs_version_can_be_told_from_pushed_ones(programs: dict[str, Program]) -> None:
    """It bears no label; `inferlane policy clear` takes what bears a push's."""
    assert "versionLabel" not in named(programs["growth"], "policy-version")


def test_the_policy_commands_look_where_the_program_puts_it() -> None:
    """Environment and profile by name."""
    assert (live.ENVIRONMENT, live.PROFILE) == (policy_store.ENVIRONMENT, policy_store.PROFILE)
