"""A policy pushed while requests run: none fails, the new one soon serves, a broken one never, the old comes back."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import PATH
from tests.e2e.test_cli import assert_one_line_error, cli
from workbench.policy.live import LivePolicy, Store, offline_store
from workbench.policy.push import Pusher
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import project_root
from workbench.traffic import Answer, Call, Client

Keys = Callable[[str], dict[str, str]]
PER_S, CALLERS = 50, 6
FEWEST_PER_S = 10
TAKEN_UP_S = 30.0
PUSHED = "pushed.1"
RULE = "  - {id: pushed, when: {tier: standard}, order: [serverless, dedicated]}\n"


@pytest.fixture(scope="module")
def store(deployed: Deployment) -> Store:
    """Where the deployed stack has its policy."""
    return offline_store(deployed.stack)[0]


@pytest.fixture(scope="module")
def before(store: Store, deployed: Deployment, api_key: Keys) -> Iterator[LivePolicy]:
    """What was in force before these tests; in force again after them, in every worker."""
    found = store.live()
    assert found is not None
    yield found
    Pusher(store).rollback(to=found.version)
    asyncio.run(all_served_by(found.policy.version, deployed, api_key))


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The stack's policy with a version of its own and one rule before the others."""
    text = (project_root() / "policies/local.yaml").read_text()
    head, rules, rest = text.partition("rules:")
    file = tmp_path / "changed.yaml"
    first_line, _, others = rest.partition("\n")
    file.write_text(head.replace("version: local.1", f"version: {PUSHED}") + rules + first_line + "\n" + RULE + others)
    return file


@asynccontextmanager
async def traffic(deployed: Deployment, api_key: Keys) -> AsyncIterator[list[Answer]]:
    """Up to `PER_S` requests a second by a few callers for as long as the block lasts; all are answered when it ends.

    Callers wait for their answers, so a slow machine lowers the rate instead of starting ever more Lambda workers.
    """
    answers: list[Answer] = []
    ended = asyncio.Event()

    async def caller(client: Client, name: int) -> None:
        while not ended.is_set():
            due = asyncio.get_running_loop().time() + CALLERS / PER_S
            answers.append(await client.send(Call(PATH, {"text": f"caller {name}, request {len(answers)}"})))
            await asyncio.sleep(due - asyncio.get_running_loop().time())

    async with Client(deployed.url, api_key("demo-app")) as client, asyncio.TaskGroup() as group:
        for name in range(CALLERS):
            group.create_task(caller(client, name))
        try:
            yield answers
        finally:
            ended.set()


async def all_served_by(version: str, deployed: Deployment, api_key: Keys, *, running: int = 20) -> float:
    """Seconds until so many answers running are by this version. Every one must be a success."""
    began, seen = time.monotonic(), 0
    async with Client(deployed.url, api_key("demo-app")) as client:
        while seen < running:
            answer = await client.send(Call(PATH, {"text": "who serves?"}))
            assert answer.ok, answer
            seen = seen + 1 if answer.policy == version else 0
            assert time.monotonic() - began < TAKEN_UP_S + 10, f"{answer.policy} serves on instead of {version}"
            await asyncio.sleep(0.05)
    return time.monotonic() - began


async def test_a_push_under_traffic_fails_no_request(
    deployed: Deployment, api_key: Keys, before: LivePolicy, store: Store, changed: Path
) -> None:
    """Old answers, then new ones, every one 200; thirty seconds after the push nothing is old any more."""
    await all_served_by(before.policy.version, deployed, api_key)
    async with traffic(deployed, api_key) as answers:
        await asyncio.sleep(3)
        done = await asyncio.to_thread(cli, "policy", "push", str(changed), "--stack", deployed.stack, "--json")
        assert done.returncode == 0, done
        pushed_at = answers[-1].at_s
        await asyncio.sleep(TAKEN_UP_S + 3)
    pushed = json.loads(done.stdout)
    live = store.live()
    assert live is not None
    assert (pushed["policy_version"], pushed["version"], pushed["changed"]) == (PUSHED, live.version, True)
    assert len(answers) > FEWEST_PER_S * TAKEN_UP_S, "too little traffic to tell"
    assert [answer for answer in answers if not answer.ok] == []
    assert {answer.policy for answer in answers} == {before.policy.version, PUSHED}
    late = [answer for answer in answers if answer.at_s > pushed_at + TAKEN_UP_S]
    assert {answer.policy for answer in late} == {PUSHED}
    assert {answer.rule for answer in late} == {"pushed"}


def test_a_broken_policy_is_refused_and_the_old_one_serves_on(
    deployed: Deployment, api_key: Keys, before: LivePolicy, store: Store, changed: Path
) -> None:
    """One line with file, line and cause; no version is made; the same policy decides as before."""
    live, versions = store.live(), store.versions()
    assert live is not None
    changed.write_text(changed.read_text().replace("order: [serverless, dedicated]}", "order: [gpu]}", 1))
    done = cli("policy", "push", str(changed), "--stack", deployed.stack)
    assert_one_line_error(done, f"{changed}:", "rules[0].order[0]", "'gpu'")
    changed.write_text("rules: &a [*a]\n")
    assert_one_line_error(cli("policy", "push", str(changed), "--stack", deployed.stack), f"{changed}:1:8: anchors")
    still = store.live()
    assert still is not None
    assert (still.version, store.versions()) == (live.version, versions)
    asyncio.run(all_served_by(live.policy.version, deployed, api_key, running=5))


def test_a_rollback_brings_the_old_policy_back(
    deployed: Deployment, api_key: Keys, before: LivePolicy, store: Store, changed: Path
) -> None:
    """The version before is in force again within thirty seconds, and a push of it says that it is."""
    live = store.live()
    assert live is not None
    if live.policy.version != PUSHED:
        assert cli("policy", "push", str(changed), "--stack", deployed.stack).returncode == 0
    done = cli("policy", "rollback", "--stack", deployed.stack, "--json")
    assert done.returncode == 0, done
    back = json.loads(done.stdout)
    assert (back["policy_version"], back["version"]) == (before.policy.version, before.version)
    assert asyncio.run(all_served_by(before.policy.version, deployed, api_key)) < TAKEN_UP_S
    again = cli("policy", "push", str(project_root() / "policies/local.yaml"), "--stack", deployed.stack, "--json")
    assert json.loads(again.stdout) == {
        "stack": deployed.stack,
        "version": before.version,
        "policy_version": before.policy.version,
        "deployment": None,
        "changed": False,
    }


def test_a_file_is_compared_with_what_is_live(
    deployed: Deployment,
    before: LivePolicy,
    cloud: Cloud,
    changed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules and decisions that a push would change, over the stack's own topology; the same by names in an account."""
    request = {"schema": "inferlane/request/v1", "path": PATH, "identity": {"kind": "api_key", "key_id": "demo-app"}}
    requests = tmp_path / "requests.jsonl"
    requests.write_text("".join(json.dumps({**request, "id": str(n)}) + "\n" for n in range(3)))
    arguments = ["policy", "diff", str(changed), "--stack", deployed.stack]
    done = cli(*arguments, "--requests", str(requests))
    assert done.returncode == 0, done
    assert "rule pushed: added" in done.stdout
    assert "3 of 3 decisions change" in done.stdout
    for name, value in cloud.environment().items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    by_name = cli(*arguments, "--aws")
    assert by_name.returncode == 0, by_name
    assert by_name.stdout == "".join(
        line for line in done.stdout.splitlines(keepends=True) if "decisions" not in line and " x " not in line
    )


def test_a_stack_that_is_not_there_is_told(deployed: Deployment, changed: Path) -> None:
    """Unknown and undeployed stacks are one line."""
    assert_one_line_error(cli("policy", "push", str(changed), "--stack", "nowhere"), "'nowhere'", "local")
    assert_one_line_error(cli("policy", "rollback", "--stack", "growth"), "growth is not deployed")
    assert_one_line_error(cli("policy", "rollback", "--stack", "local", "--to", "999"), "no hosted version 999")
