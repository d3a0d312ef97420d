"""The core stays pure, beyond what the import rules can see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CORE = Path(__file__).parents[3] / "functions" / "core"
CLOCKS = {"now", "utcnow", "today"}


@pytest.mark.parametrize("file", sorted(CORE.glob("*.py")), ids=lambda file: file.stem)
def test_no_module_of_the_core_reads_a_clock_or_a_file(file: Path) -> None:
    """No datetime.now, utcnow or today, no open and no print: `now` is an argument."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in CLOCKS, f"{file.name}:{node.lineno} reads a clock"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}, f"{file.name}:{node.lineno} does I/O"


def test_no_module_is_larger_than_an_idea() -> None:
    """Around 300 lines it usually is two."""
    sizes = {file.name: len(file.read_text().splitlines()) for file in CORE.glob("*.py")}
    assert max(sizes.values()) <= 320, sizes
