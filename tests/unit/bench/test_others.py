"""The other routers are guests: had from PyPI once, or done without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workbench.bench.others import REQUIREMENTS, NotInstalledError, installed


def test_what_was_installed_at_the_same_versions_is_used_again(tmp_path: Path) -> None:
    """No interpreter is started when the stamp names what is wanted."""
    (tmp_path / "installed.txt").write_text("\n".join(REQUIREMENTS) + "\n")
    assert installed(tmp_path, base="/nowhere/python") == tmp_path


def test_an_installation_that_fails_says_at_which_step(tmp_path: Path) -> None:
    """Without PyPI, say, the reason is a line; other versions than the wanted ones do not count."""
    (tmp_path / "installed.txt").write_text("litellm==0.1\n")
    with pytest.raises(NotInstalledError, match=r"venv .* failed"):
        installed(tmp_path, base=shutil.which("false") or "")


def test_versions_are_fixed() -> None:
    """A comparison names what it compared with."""
    assert all("==" in requirement for requirement in REQUIREMENTS)
