"""The whole story on the offline stack: bring up, deploy, serve, surge and shed, lose the GPU endpoint, recover.

Nothing here is staged: the requests pass the gateway, the Lambda router and real model processes; the surge is work
that really saturates the emulated instance; the fault kills its processes. An act whose promise does not hold fails
the demo.
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from workbench import keys, traffic
from workbench.stack import deployment, offline
from workbench.stack.cloud import Cloud, current
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout, project_root
from workbench.stack.processes import StackError, interrupts_deferred
from workbench.terminal import Terminal

STACK = "local"
MODEL = "moderation"
PATH = f"/v1/models/{MODEL}/invocations"
STEADY_REQUESTS = 120
FAULT_REQUESTS = 200
SURGE_CALLERS = 6
SURGE_TEXTS = 12
"""Texts in one surge request: enough work a request that the model, not the gateway, is what saturates."""
SURGE_LIMIT_S = 75.0
CALM_LIMIT_S = 60.0


@dataclass(slots=True)
class Story:
    """What the demo counts while it runs."""

    tally: traffic.Tally = field(default_factory=traffic.Tally)
    acts: list[dict[str, Any]] = field(default_factory=list)

    def act(self, name: str, answers: list[traffic.Answer], **facts: Any) -> dict[str, Any]:
        """Close an act: count its answers, keep its facts."""
        mine = traffic.Tally(answers)
        self.tally.add(answers)
        row = {
            "act": name,
            "requests": len(answers),
            "failed": len(mine.failed),
            "lanes": mine.lanes,
            "p50_ms": round(mine.percentile_ms(50), 1),
            "p99_ms": round(mine.percentile_ms(99), 1),
            **facts,
        }
        self.acts.append(row)
        return row


def texts() -> Iterator[str]:
    """Real comments, over and over: the labelled ones the sample model was measured on."""
    file = project_root() / "models/moderation-light/data/surge_toxicity_en.csv"
    with file.open(encoding="utf-8", newline="") as source:
        rows = [row["text"] for row in csv.DictReader(source)]
    return itertools.cycle(rows)


def one_text(stream: Iterator[str], priority: str | None = None) -> traffic.Call:
    return traffic.Call(PATH, {"text": next(stream)}, {"X-Inferlane-Priority": priority} if priority else {})


def run(terminal: Terminal, layout: Layout, *, port: int, keep: bool) -> dict[str, Any]:
    """Play the story. Returns the figures; raises `StackError` when a promise did not hold."""
    began = time.monotonic()
    before = layout.read_record()
    was_up = before is not None and set(offline.health(before).values()) == {"up"}
    try:
        figures = _play(terminal, layout, port)
    finally:
        if not keep and not was_up:
            with interrupts_deferred():
                offline.down(layout)
    return figures | {"seconds": round(time.monotonic() - began, 1), "stack": "kept" if keep or was_up else "stopped"}


def _play(terminal: Terminal, layout: Layout, port: int) -> dict[str, Any]:
    terminal.head("1. Bring up the offline cloud and deploy the Pulumi program")
    up_s = _timed(lambda: offline.up(layout, port=port, say=terminal.say))
    cloud = current(layout)
    deployed = _deploy(terminal, layout, cloud)
    terminal.say(f"cloud up in {up_s:.1f} s; {sum(deployed.counts.values())} resources in {deployed.seconds:.1f} s")
    faults = Faults(cloud)
    faults.clear()
    dynamodb = cloud.client("dynamodb")
    now = datetime.now(UTC)
    callers = {name: keys.create(dynamodb, STACK, name, now).key for name in ("demo-app", "internal-backfill")}
    story = Story()
    asyncio.run(_acts(terminal, story, deployed, faults, callers))
    return _figures(story, deployed, faults, cloud, up_s)


async def _acts(
    terminal: Terminal, story: Story, deployed: Deployment, faults: Faults, callers: dict[str, str]
) -> None:
    async with (
        traffic.Client(deployed.url, {"X-Api-Key": callers["demo-app"]}) as app,
        traffic.Client(deployed.url, {"X-Api-Key": callers["internal-backfill"]}) as backfill,
        traffic.Client(deployed.url, {}) as stranger,
    ):
        terminal.head("2. Real requests: gateway, Lambda router, real model")
        await _serve(terminal, story, app, stranger)
        terminal.head("3. A surge: the dedicated lane saturates, low-priority work is shed to serverless")
        await _surge(terminal, story, app, backfill)
        terminal.head("4. The GPU endpoint dies under load, and comes back")
        await _lose_the_endpoint(terminal, story, app, deployed, faults)


async def _serve(terminal: Terminal, story: Story, app: traffic.Client, stranger: traffic.Client) -> None:
    refused = await stranger.send(traffic.Call(PATH, {"text": "hello"}))
    _promise(refused.status in (401, 403), f"a caller without a key was answered {refused.status}")
    sample = await app.send(traffic.Call(PATH, {"text": "Thank you, this was a great help."}))
    _promise(sample.ok, f"the first request failed: {traffic.describe(sample)}")
    terminal.say(f"without a key: {refused.status}; with one: {sample.body.decode().strip()} from {sample.lane}")
    stream = texts()
    with terminal.progress("steady traffic", STEADY_REQUESTS) as bar:
        answers = await app.closed(
            (one_text(stream) for _ in range(STEADY_REQUESTS)), callers=3, on_answer=lambda _: bar.step()
        )
    terminal.say(_line(story.act("steady", [sample, *answers])))


async def _surge(terminal: Terminal, story: Story, app: traffic.Client, backfill: traffic.Client) -> None:
    stream = texts()
    shed_at: list[float] = []
    back_at: list[float] = []
    began = time.monotonic()

    def heavy() -> Iterator[traffic.Call]:
        while True:
            yield traffic.Call(PATH, {"texts": list(itertools.islice(stream, SURGE_TEXTS))})

    def surge_over() -> bool:
        return bool(shed_at) or time.monotonic() - began > SURGE_LIMIT_S

    def shed() -> bool:
        return bool(low) and low[-1].lane == "serverless"

    low: list[traffic.Answer] = []

    async def watch(limit_s: float, done: Callable[[], bool], found: list[float]) -> None:
        """Send low-priority work at a trickle until `done`."""
        start = time.monotonic()
        while time.monotonic() - start < limit_s:
            low.append(await backfill.send(one_text(stream, "low")))
            if done():
                found.append(time.monotonic() - start)
                return
            await asyncio.sleep(0.5)

    with terminal.progress("surge: CloudWatch sees it, the rule turns"):
        surge = asyncio.create_task(app.closed(heavy(), callers=SURGE_CALLERS, until=surge_over))
        await watch(SURGE_LIMIT_S, shed, shed_at)
        high = await surge
    _promise(bool(shed_at), f"low-priority work was not shed within {SURGE_LIMIT_S:.0f} s of the surge")
    with terminal.progress("calm: back below the lower threshold"):
        await watch(CALM_LIMIT_S, lambda: low[-1].lane == "dedicated", back_at)
    _promise(
        bool(back_at), f"low-priority work was not back on the dedicated lane {CALM_LIMIT_S:.0f} s after the surge"
    )
    row = story.act("surge", high + low, shed_after_s=round(shed_at[0], 1), back_after_s=round(back_at[0], 1))
    terminal.say(_line(row) + f"; shed after {row['shed_after_s']} s, back {row['back_after_s']} s after the surge")


async def _lose_the_endpoint(
    terminal: Terminal, story: Story, app: traffic.Client, deployed: Deployment, faults: Faults
) -> None:
    stream = texts()
    endpoint = str(deployed.lane("dedicated", MODEL)["endpoint"])
    sent = itertools.count(1)
    with terminal.progress("requests while the endpoint dies", FAULT_REQUESTS) as bar:

        def on_answer(_answer: traffic.Answer) -> None:
            bar.step()
            number = next(sent)
            if number == FAULT_REQUESTS // 4:
                faults.inject(endpoint, "kill")
            elif number == FAULT_REQUESTS * 3 // 4:
                faults.clear()

        answers = await app.closed((one_text(stream) for _ in range(FAULT_REQUESTS)), callers=2, on_answer=on_answer)
    back = await _until_dedicated(app, stream)
    row = story.act("endpoint lost", answers + back)
    terminal.say(_line(row))
    _promise(row["failed"] == 0, f"{row['failed']} requests failed while the endpoint was down")
    _promise(
        row["lanes"].get("serverless", 0) > 0, "no request was answered from serverless while the endpoint was down"
    )


async def _until_dedicated(app: traffic.Client, stream: Iterator[str]) -> list[traffic.Answer]:
    """Trickle until the dedicated lane serves again."""
    answers: list[traffic.Answer] = []
    deadline = time.monotonic() + CALM_LIMIT_S
    while time.monotonic() < deadline:
        answers.append(await app.send(one_text(stream)))
        if answers[-1].lane == "dedicated":
            return answers
        await asyncio.sleep(0.3)
    raise StackError(f"the dedicated lane did not serve again within {CALM_LIMIT_S:.0f} s of the repair")


def _deploy(terminal: Terminal, layout: Layout, cloud: Cloud) -> Deployment:
    with terminal.progress("deploying") as bar:

        def on_event(event: deployment.Event) -> None:
            if event["event"] == "resource":
                bar.step(f"{event['action']} {event['name']}")

        return deployment.run("up", STACK, cloud=cloud, layout=layout, on_event=on_event)


def _figures(story: Story, deployed: Deployment, faults: Faults, cloud: Cloud, up_s: float) -> dict[str, Any]:
    tally = story.tally
    failed = len(tally.failed)
    _promise(failed == 0, f"{failed} of {len(tally.answers)} requests failed: {json.dumps(_sample(tally))}")
    serverless = [endpoint for endpoint in faults.endpoints() if endpoint["kind"] == "serverless"]
    cold_starts = sum(int(variant["starts"]) for endpoint in serverless for variant in endpoint["variants"])
    return {
        "requests": len(tally.answers),
        "answered": tally.lanes,
        "failed": failed,
        "p50_ms": round(tally.percentile_ms(50), 1),
        "p99_ms": round(tally.percentile_ms(99), 1),
        "cold_starts": cold_starts,
        "cost_usd": round(tally.cost_usd, 6),
        "url": deployed.url,
        "endpoint_url": cloud.endpoint_url,
        "up_s": round(up_s, 1),
        "deploy_s": round(deployed.seconds, 1),
        "resources": sum(deployed.counts.values()),
        "acts": story.acts,
    }


def summary(figures: dict[str, Any]) -> str:
    """The figures for a person."""
    lanes = ", ".join(f"{lane} {number}" for lane, number in sorted(figures["answered"].items()))
    return "\n".join(
        (
            "",
            f"{figures['requests']} requests, {figures['failed']} failed. Answered by: {lanes}.",
            f"P50 {figures['p50_ms']} ms, P99 {figures['p99_ms']} ms, {figures['cold_starts']} cold starts, "
            f"${figures['cost_usd']:.6f} by the receipts.",
            f"Cloud up in {figures['up_s']} s, deploy {figures['deploy_s']} s ({figures['resources']} resources), "
            f"{figures['seconds']} s in all; the stack is {figures['stack']}.",
            f"Front door: {figures['url']}",
        )
    )


def _line(row: dict[str, Any]) -> str:
    lanes = ", ".join(f"{lane} {number}" for lane, number in sorted(row["lanes"].items()))
    return (
        f"{row['requests']} requests, {row['failed']} failed ({lanes}), P50 {row['p50_ms']} ms, P99 {row['p99_ms']} ms"
    )


def _sample(tally: traffic.Tally) -> list[dict[str, Any]]:
    return [traffic.describe(answer) for answer in tally.failed[:3]]


def _promise(held: bool, otherwise: str) -> None:
    if not held:
        raise StackError(otherwise)


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
