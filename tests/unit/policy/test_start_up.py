"""What a quick command may cost: held as a ratio, since machines differ, and by what it may not import."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import cli
from workbench.stack.layout import project_root

ROUNDS = 7
MOST = 5.0
"""Times a bare `import yaml, typer`, interpreter included: 3 on an idle machine, of which a bare typer command is 2."""
HEAVY = ("boto3", "botocore", "rich", "aiohttp", "psutil", "pulumi", "localstack_client", "asyncio")
EXPLAIN = """
import sys
from workbench import cli
sys.argv = ["inferlane", "policy", "explain", *sys.argv[1:]]
try:
    cli.main()
finally:
    sys.stderr.write(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Files for `policy explain`."""
    (tmp_path / "t.json").write_text('{"schema": "inferlane/topology/v1", "region": "us-east-1", "models": {}}')
    (tmp_path / "r.json").write_text('{"schema": "inferlane/request/v1", "path": "/realtime/chat"}')
    policy = project_root() / "policies/growth.yaml"
    return [str(policy), "--topology", str(tmp_path / "t.json"), "--request", str(tmp_path / "r.json"), "--json"]


def run(*command: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, cwd=project_root())
    return time.perf_counter() - began, done


def test_explain_imports_nothing_heavy(arguments: list[str]) -> None:
    """No AWS library, no terminal library, no event loop."""
    _, done = run("-c", EXPLAIN, *arguments)
    assert done.stdout.startswith('{"schema": "inferlane/decision/v1"')
    assert set(HEAVY) & set(done.stderr.split()) == set()


def test_explain_starts_within_a_ratio_of_its_parts(arguments: list[str]) -> None:
    """The whole command against the bare imports of its two libraries: the fastest of a few rounds of each."""
    pairs = [
        (run("-m", "workbench.cli", "policy", "explain", *arguments)[0], run("-c", "import yaml, typer")[0])
        for _ in range(ROUNDS)
    ]
    whole, bare = (min(times) for times in zip(*pairs, strict=True))
    assert whole < MOST * bare, f"{whole:.3f} s against {bare:.3f} s"


def test_the_list_of_rooms_is_what_the_rooms_have() -> None:
    """Each command of the list is in its room, and no room has one that is not in the list."""
    from importlib import import_module

    from typer.main import get_command

    for room in set(cli.ROOMS.values()):
        found = get_command(import_module(room).app).commands  # type: ignore[attr-defined]
        assert set(found) == {name for name, place in cli.ROOMS.items() if place == room}
