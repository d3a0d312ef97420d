"""The nightly recheck end to end: traffic captured by the router, rechecked by a transform job, told by a report."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.nights import STACK, ZONE, Nights, nights
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout, project_root
from workbench.traffic import Call, Client

TEXTS = ("fine", "bad", "worse", "bad and worse")
TODAY = datetime.now(ZoneInfo(ZONE)).date()


@pytest.fixture(scope="module")
def stack(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nights]:
    """A stack whose routes are captured and rechecked."""
    with nights(tmp_path_factory.mktemp("nights"), cloud, layout, client) as made:
        yield made


def inferlane(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a person runs it."""
    command = [sys.executable, "-m", "workbench.cli", "nightly", *arguments, "--stack", STACK]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=project_root(), timeout=180)


def run(date: str) -> dict[str, Any]:
    done = inferlane("run", "--date", date, "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def send(stack: Nights, calls: list[Call]) -> None:
    async def all_of_them() -> None:
        async with Client(stack.deployed.url, stack.headers) as client:
            answers = await client.closed(calls, callers=4)
        assert [answer.status for answer in answers] == [200] * len(calls), answers[0]

    asyncio.run(all_of_them())


def captured(client: Callable[[str], Any], bucket: str) -> dict[str, bytes]:
    s3 = client("s3")
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys if key.startswith("nightly/")}


def test_a_day_of_traffic_becomes_a_report_once(stack: Nights, client: Callable[[str], Any], tmp_path: Path) -> None:
    """Sent, captured, rechecked; run again nothing changes; what comes later replaces the report."""
    calls = [
        Call("/kept", {"text": f"{TEXTS[n % 4]} <i>{n}", "user": {"email": f"{n}@example.com"}}) for n in range(60)
    ]
    calls += [Call("/kept", {"texts": ["fine", "worse"]}), Call("/kept", {"text": "refuse"})]
    calls += [Call("/hidden", {"text": "bad hidden"}), Call("/free", {"text": "bad free"})]
    send(stack, calls)
    told = run(f"{TODAY}")
    assert told["outcome"] == "reported"
    assert told["headline"]["requests"] == 63
    assert told["headline"]["checked"] == 62
    assert (told["headline"]["verdicts"], told["headline"]["missed"], told["headline"]["false_alarms"]) == (62, 16, 15)
    document = json.loads(inferlane("report", "--date", f"{TODAY}", "--json").stdout)
    assert document["confusion"]["light_by_heavy"] == [[16, 16], [15, 15]]
    assert document["unanswered"] == {"refused by the heavy model": 1}
    assert document["sources"]["unchecked"] == {"redacted": 1}
    assert document["job"]["cost_usd"] > 0
    page = tmp_path / "report.html"
    assert inferlane("report", "--date", f"{TODAY}", "--output", str(page)).returncode == 0
    text = page.read_text()
    assert "&lt;i&gt;" in text, "no example was quoted"
    assert "<i>" not in text, "what was captured became markup"
    assert "example.com" not in text
    before = captured(client, told["bucket"])
    again = run(f"{TODAY}")
    assert (again["outcome"], again["run"]) == ("unchanged", told["run"])
    assert captured(client, told["bucket"]) == before
    send(stack, [Call("/kept", {"text": "worse and late"})])
    late = run(f"{TODAY}")
    assert (late["outcome"], late["headline"]["missed"]) == ("reported", 17)
    assert late["run"] != told["run"]
    listed = json.loads(inferlane("list", "--json").stdout)
    assert [(each["date"], each["run"]) for each in listed["reports"]] == [(f"{TODAY}", late["run"])]


def test_a_day_without_traffic_is_a_clear_message(stack: Nights) -> None:
    """An exit code of its own, no report, and no transform job."""
    date = f"{TODAY - timedelta(days=40)}"
    done = inferlane("run", "--date", date)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(f"nothing of model light was captured on {date} ({ZONE})")
    missing = inferlane("report", "--date", date)
    assert missing.returncode == 1
    assert f"has no report of {date}" in missing.stderr


def test_a_stack_without_a_recheck_is_a_clear_message(stack: Nights) -> None:
    """Naming those that have one."""
    command = [sys.executable, "-m", "workbench.cli", "nightly", "list", "--stack", "growth"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project_root())
    assert done.returncode == 1
    assert "stack growth has no nightly recheck here: is it deployed, and does its file have" in done.stderr
    assert STACK in done.stderr
