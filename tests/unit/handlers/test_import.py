"""Importing a handler is free: no environment, no AWS library, nothing started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROBE = """
import sys
import functions.handlers.{name} as module
heavy = {{"boto3", "botocore", "urllib3", "aws_lambda_powertools", "asyncio"}} & set(sys.modules)
assert not heavy, heavy
assert callable(module.handler)
"""


FUNCTIONS = ["route", "jobs", "authorize", "validate", "collect", "settle", "promote", "audit", "notify"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_importing_a_handler_needs_no_environment_and_no_aws_library(name: str) -> None:
    """In a fresh interpreter with an empty environment."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + PROBE.format(name=name)],
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
