"""`python -m workbench.openapi`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.openapi.__main__ import main

POLICY = """\
schema: inferlane/policy/v1
version: "1"
routes:
  - {path: /realtime/chat, model: chat}
"""


def test_check_is_silent_while_the_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` of an unchanged contract ends well and says nothing."""
    main(["--check"])
    assert capsys.readouterr().out == ""


def test_a_stacks_own_document_has_its_policys_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--policy` prints the document with the routes of that file."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    main(["--policy", str(file)])
    assert "/realtime/chat" in json.loads(capsys.readouterr().out)["paths"]


@pytest.mark.parametrize("text", ["schema: inferlane/policy/v0", "{", None])
def test_what_is_no_policy_is_a_line_and_not_a_traceback(tmp_path: Path, text: str | None) -> None:
    """A bad or missing file ends the command with a message."""
    file = tmp_path / "policy.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit, match="error: ") as ended:
        main(["--policy", str(file)])
    assert "\n" not in str(ended.value)
