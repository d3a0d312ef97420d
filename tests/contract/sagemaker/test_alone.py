"""`inferlane sagemaker`, as docs/sagemaker.md tells of it: its code is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.sagemaker.emulator import CREDENTIALS, Aws
from workbench.stack.layout import project_root
from workbench.stack.sagemaker.__main__ import parse

PAGE = (project_root() / "docs/sagemaker.md").read_text()
COMMAND = [sys.executable, "-m", "workbench.cli", "sagemaker", "--port", "0"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """A shell's that knows of no AWS but what the page sets."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return kept | {"INFERLANE_DIR": str(folder), "AWS_EC2_METADATA_DISABLED": "true"} | more


@contextmanager
def alone(folder: Path, aws: Aws, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command, running, and what it said with --json."""
    env = environment(folder, AWS_ENDPOINT_URL=aws.url)
    process = subprocess.Popen(
        [*COMMAND, "--json", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def failed(folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command, which is to end by itself."""
    env = environment(folder, **more)
    return subprocess.run([*COMMAND, *options], env=env, capture_output=True, text=True, timeout=30, check=False)


def test_the_page(aws: Aws, tmp_path: Path) -> None:
    """The page's Python does what it says, with the variables that the page names; Ctrl-C ends everything with 0."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = re.findall(r"export (AWS_ENDPOINT_URL_\w+)=http://127.0.0.1:8181", PAGE)
    assert len(names) == 3
    with alone(tmp_path, aws) as (process, said):
        assert said["state_dir"] == str(tmp_path / "sagemaker-alone")
        named = dict.fromkeys(names, said["url"])
        env = environment(tmp_path, AWS_ENDPOINT_URL=aws.url, **CREDENTIALS, **named)
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr == ""
        assert done.stdout.strip() == re.search(r"print\(.*# (.*)", code)[1]  # type: ignore[index]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("environment_", "words"),
    [
        ({}, ("no endpoint is named for s3", "AWS_ENDPOINT_URL")),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}, ("named for cloudwatch", "AWS_ENDPOINT_URL_CLOUDWATCH")),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, ("S3 at http://127.0.0.1:9 does not answer",)),
        ({"AWS_PROFILE": "nobody"}, ("AWS configuration", "nobody")),
    ],
)
def test_what_stands_in_the_way_is_one_line(
    tmp_path: Path, environment_: dict[str, str], words: tuple[str, ...]
) -> None:
    """No S3, no CloudWatch, nobody there: an error with the way out, as an object with --json, and exit 1."""
    done = failed(tmp_path, "--json", **environment_)
    (line,) = done.stderr.strip().splitlines()
    assert (done.returncode, line.partition(" ")[0]) == (1, "error:")
    for word in words:
        assert word in json.loads(done.stdout)["error"]


def test_a_bad_folder_and_a_bad_option(aws: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A state folder that cannot be made is one line; an option that makes no sense is told with the usage."""
    (tmp_path / "file").write_text("")
    done = failed(tmp_path, "--state-dir", str(tmp_path / "file" / "state"), AWS_ENDPOINT_URL=aws.url)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot use --state-dir" in done.stderr
    with pytest.raises(SystemExit):
        parse(["--time-scale", "0"], "inferlane sagemaker", tmp_path)
    assert "inferlane sagemaker: error: --time-scale must be above zero" in capsys.readouterr().err
