"""A policy pushed while requests run: none fails, the new one soon serves, a broken one never, the old comes back.

The requests are an open load of fifty a second: each leaves when its time has come, whatever became of those before it.
On the offline stack one takes about 14 ms of CPU in all (client, gateway, function, runtime, model), so two cores carry
it once the function's instances are up. Requests that overlap see to it that there are several, and ask each again.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

import pytest

from tests.e2e.conftest import MODEL, PATH
from tests.e2e.test_cli import assert_one_line_error, cli
from workbench.policy.live import LivePolicy, Store, offline_store
from workbench.policy.push import Pusher
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.layout import project_root
from workbench.traffic import Answer, Call, Client, Tally

Keys = Callable[[str], dict[str, str]]
PER_S = 50.0
KEPT_UP = 0.95
"""The part of the load that must have been sent in time and answered 200."""
INSTANCES = 4
"""Of the function, at the least: as many as the dedicated lane works on at a time."""
OVERLAP_MS = 2000.0
IN_FLIGHT = 200
"""More unanswered requests than this are not an open load any more but a test that fails slowly."""
SETTLED_S = 3.0
TAKEN_UP_S = 30.0
PUSHED = "pushed.1"
RULE = "  - {id: pushed, when: {tier: standard}, order: [dedicated, serverless]}\n"


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


@dataclass(frozen=True)
class Traffic:
    """Requests that keep coming, and what was answered so far."""

    client: Client
    tally: Tally

    async def settles(self, limit_s: float = 90.0) -> None:
        """Wait until the last seconds' requests were answered as fast as they came."""
        deadline = time.monotonic() + limit_s
        while self.tally.rate_per_s((now_s := self.client.now_s) - SETTLED_S - 1, now_s - 1) < KEPT_UP * PER_S:
            assert time.monotonic() < deadline, f"no {PER_S:g} requests/s: {self.figures(now_s - SETTLED_S, now_s)}"
            await asyncio.sleep(0.5)

    def figures(self, since_s: float, until_s: float) -> str:
        """What was achieved in that time."""
        sent = Tally([answer for answer in self.tally.answers if since_s <= answer.at_s < until_s])
        offered, answered = len(sent.answers) / (until_s - since_s), sent.rate_per_s(since_s, until_s)
        return (
            f"{offered:.1f} requests/s sent, {answered:.1f}/s answered, "
            f"P50 {sent.percentile_ms(50):.0f} ms, P99 {sent.percentile_ms(99):.0f} ms, {len(sent.failed)} failed"
        )


@asynccontextmanager
async def traffic(deployed: Deployment, api_key: Keys) -> AsyncIterator[Traffic]:
    """`PER_S` requests a second for as long as the block lasts; all are answered when it ends."""
    tally, ended = Tally(), asyncio.Event()
    calls = (Call(PATH, {"text": f"request {n}"}) for n in takewhile(lambda _: not ended.is_set(), count()))
    async with Client(deployed.url, api_key("demo-app")) as client, asyncio.TaskGroup() as group:
        load = client.open(calls, per_s=PER_S, in_flight=IN_FLIGHT, on_answer=lambda answer: tally.add([answer]))
        group.create_task(load)
        try:
            yield Traffic(client, tally)
        finally:
            ended.set()


async def each_instance(deployed: Deployment, api_key: Keys, faults: Faults) -> list[Answer]:
    """Answers of `INSTANCES` instances: a model that takes its time holds every one while the others are called."""
    fault = faults.inject(str(deployed.lane("dedicated", MODEL)["endpoint"]), "slow", {"ms": OVERLAP_MS})
    async with Client(deployed.url, api_key("demo-app")) as client:
        answers = await client.closed([Call(PATH, {"text": "who is there?"})] * INSTANCES, callers=INSTANCES)
    faults.clear(str(fault["id"]))
    assert {(answer.status, answer.lane) for answer in answers} == {(200, "dedicated")}, answers
    return answers


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
    deployed: Deployment, api_key: Keys, before: LivePolicy, store: Store, changed: Path, faults: Faults
) -> None:
    """Fifty a second, old answers, then new ones, every one 200; thirty seconds after the push nothing is old."""
    await all_served_by(before.policy.version, deployed, api_key)
    assert {answer.policy for answer in await each_instance(deployed, api_key, faults)} == {before.policy.version}
    async with traffic(deployed, api_key) as running:
        await running.settles()
        began_s = running.client.now_s
        await asyncio.sleep(3)
        done = await asyncio.to_thread(cli, "policy", "push", str(changed), "--stack", deployed.stack, "--json")
        assert done.returncode == 0, done
        pushed_s = running.client.now_s
        await asyncio.sleep(TAKEN_UP_S + 5)
        ended_s = running.client.now_s
    assert {answer.policy for answer in await each_instance(deployed, api_key, faults)} == {PUSHED}
    print(running.figures(began_s, ended_s))
    pushed = json.loads(done.stdout)
    live = store.live()
    assert live is not None
    assert (pushed["policy_version"], pushed["version"], pushed["changed"]) == (PUSHED, live.version, True)
    assert running.tally.failed == []
    assert running.tally.rate_per_s(began_s, ended_s) >= KEPT_UP * PER_S, running.figures(began_s, ended_s)
    assert {answer.policy for answer in running.tally.answers} == {before.policy.version, PUSHED}
    late = [answer for answer in running.tally.answers if answer.at_s > pushed_s + TAKEN_UP_S]
    assert len(late) > PER_S
    assert {answer.policy for answer in late} == {PUSHED}
    assert {answer.rule for answer in late} == {"pushed"}


def test_a_broken_policy_is_refused_and_the_old_one_serves_on(
    deployed: Deployment, api_key: Keys, before: LivePolicy, store: Store, changed: Path
) -> None:
    """One line with file, line and cause; no version is made; the same policy decides as before."""
    live, versions = store.live(), store.versions()
    assert live is not None
    changed.write_text(changed.read_text().replace(RULE, RULE.replace("dedicated, serverless", "gpu")))
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
    changed.write_text(
        changed.read_text().replace(RULE, RULE.replace("dedicated, serverless", "serverless, dedicated"))
    )
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
