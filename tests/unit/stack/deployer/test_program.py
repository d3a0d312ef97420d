"""A project's configuration, read as the Pulumi CLI reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.stack.deployer import program
from workbench.stack.deployer.errors import ProgramError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(
        "name: demo\nruntime: python\nmain: infra/\nconfig:\n  size: {default: 1}\n  mode: {default: a}\n"
    )
    (tmp_path / "Pulumi.local.yaml").write_text(
        "config:\n  aws:region: eu-west-1\n  demo:mode: b\n  demo:models: {m: {x: 1}}\n  demo:token: {secure: AAAB}\n"
    )
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "__main__.py").write_text("")
    return tmp_path


def test_layers_of_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overrides win over the stack, the stack over the defaults; objects travel as JSON; secrets come from outside."""
    monkeypatch.setenv("PULUMI_SECRET_TOKEN", "hidden")

    loaded = program.load(project, "local", {"size": "3", "aws:profile": "x"})

    assert loaded.config == {
        "demo:size": "3",
        "demo:mode": "b",
        "demo:models": '{"m": {"x": 1}}',
        "demo:token": "hidden",
        "aws:region": "eu-west-1",
        "aws:profile": "x",
    }
    assert loaded.secret_keys == ("demo:token",)
    assert loaded.region == "eu-west-1"
    assert loaded.main == project / "infra" / "__main__.py"


def test_a_missing_secret_is_named(project: Path) -> None:
    """The error says which variable to set."""
    with pytest.raises(ProgramError, match="set PULUMI_SECRET_TOKEN"):
        program.load(project, "local", {})


def test_an_unknown_stack_names_those_there_are(project: Path) -> None:
    """A typo is answered with the choice."""
    with pytest.raises(ProgramError, match="no stack 'lokal'; there are: local"):
        program.load(project, "lokal", {})


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("Pulumi.yaml", "name: [", "is not YAML"),
        ("Pulumi.yaml", "- a", "must hold a mapping"),
        ("Pulumi.yaml", "runtime: python", "`name` is missing"),
        ("Pulumi.yaml", "name: demo\nmain: elsewhere/", "does not exist: `main`"),
    ],
)
def test_a_malformed_file_is_named(project: Path, file: str, text: str, problem: str) -> None:
    """One line, with the file."""
    (project / file).write_text(text)
    (project / "Pulumi.local.yaml").write_text("")

    with pytest.raises(ProgramError, match=problem):
        program.load(project, "local", {})


def test_no_project(tmp_path: Path) -> None:
    """A folder without a project is not one."""
    with pytest.raises(ProgramError, match="not a Pulumi project"):
        program.load(tmp_path, "local", {})
