"""The state file: whole or not at all, of one stack, of one deployer at a time."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.unit.stack.deployer.fakes import TYPE, urn
from workbench.stack.deployer.errors import ProgramError
from workbench.stack.deployer.state import Record, StateFile


def record(name: str) -> Record:
    return Record(urn(name), TYPE, name, name, {"name": name, "code": {"$payload": "00"}}, {"arn": f"arn:{name}"})


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    """Every field survives, in a file only its owner reads."""
    path = tmp_path / "deep" / "state.json"
    file = StateFile.open(path, "p", "s")
    with file.change() as state:
        state.cloud_id, state.outputs = "boot-1", {"url": "u"}
        state.resources[urn("a")] = record("a")
        state.retired.append(record("b"))

    assert StateFile.open(path, "p", "s").state == file.state
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["state.json"]


def test_another_stacks_state_is_refused(tmp_path: Path) -> None:
    """A state is never taken for another stack's."""
    path = tmp_path / "state.json"
    with StateFile.open(path, "p", "s").change():
        pass

    with pytest.raises(ProgramError, match="holds p/s, not p/other"):
        StateFile.open(path, "p", "other")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "inferlane/deployer-state/v0"}', '{"schema": "inferlane/deployer-state/v1"}'],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    """What cannot be read is an error with the file's name, not an empty state."""
    path = tmp_path / "state.json"
    path.write_text(text)

    with pytest.raises(ProgramError, match=r"state\.json"):
        StateFile.open(path, "p", "s")


def test_a_record_of_another_form_is_refused(tmp_path: Path) -> None:
    """Fields are neither guessed nor dropped."""
    path = tmp_path / "state.json"
    with StateFile.open(path, "p", "s").change() as state:
        state.resources[urn("a")] = record("a")
    document = json.loads(path.read_text())
    del document["resources"][urn("a")]["settled"]
    path.write_text(json.dumps(document))

    with pytest.raises(ProgramError, match="not a deployer's state"):
        StateFile.open(path, "p", "s")


def test_a_failed_change_is_not_saved(tmp_path: Path) -> None:
    """The file keeps what was true before."""
    path = tmp_path / "state.json"
    file = StateFile.open(path, "p", "s")
    with file.change():
        pass
    before = path.read_text()

    def fail() -> None:
        with file.change() as state:
            state.outputs = {"x": object()}

    with pytest.raises(TypeError):
        fail()
    assert path.read_text() == before
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_two_deployers_exclude_each_other(tmp_path: Path) -> None:
    """The second is told at once."""
    path = tmp_path / "state.json"
    first, second = StateFile.open(path, "p", "s"), StateFile.open(path, "p", "s")

    with first.exclusive(), pytest.raises(ProgramError, match="another deploy holds"), second.exclusive():
        pass
    with second.exclusive():
        pass
