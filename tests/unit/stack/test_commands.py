"""The command line of the offline stack's faults."""

from __future__ import annotations

from typer.main import get_command

from workbench.stack.fault_commands import app
from workbench.stack.sagemaker.faults import KINDS


def test_every_fault_has_a_command() -> None:
    """What can be broken in a lane, in jobs, services, functions and quotas, `inferlane fault` can break."""
    commands = get_command(app).commands["fault"].commands  # type: ignore[attr-defined]
    assert set(commands) == {*KINDS, "transform", "service", "function", "quota", "list", "clear"}
