"""What `policy check` prints of a right document."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench import cli


def test_the_summary_is_one_line_whatever_the_version_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line break or an escape in a quoted version reaches no terminal as such."""
    file = tmp_path / "policy.yaml"
    file.write_text('schema: inferlane/policy/v1\nversion: "a\\nb\\e[2J"\n')
    monkeypatch.setattr(sys, "argv", ["inferlane", "policy", "check", str(file)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert (ended.value.code or 0, said.err) == (0, "")
    assert said.out.endswith("version a\\nb\\x1b[2J: defaults only; no errors\n")
    assert said.out.count("\n") == 1
