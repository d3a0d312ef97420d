"""The command line of the offline stack."""

from __future__ import annotations

from typer.main import get_command

from workbench.stack.commands import app
from workbench.stack.sagemaker.faults import KINDS


def test_every_fault_has_a_command() -> None:
    """What the emulator can break, `inferlane fault` can."""
    commands = get_command(app).commands["fault"].commands  # type: ignore[attr-defined]
    assert set(commands) - {"list", "clear"} == set(KINDS)
