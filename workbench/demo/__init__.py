"""The whole story on the offline stack: deploy, serve, surge and shed, lose the GPU endpoint, wait, recheck.

Nothing here is staged: the requests pass the gateway, the Lambda router and real model processes; the surge is work
that really saturates the emulated instance; the fault kills its processes. An act whose promise does not hold fails
the demo.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from workbench import keys, traffic
from workbench.demo import serving, waiting
from workbench.demo.story import STACK, Story, promise, sample
from workbench.stack import deployment, offline
from workbench.stack.cloud import Cloud, current
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout
from workbench.stack.processes import interrupts_deferred
from workbench.terminal import Terminal


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
    asyncio.run(_acts(terminal, story, deployed, faults, cloud, callers))
    terminal.head("6. The nightly recheck: the heavy model looks at what the light one let pass")
    waiting.recheck(terminal, story, cloud)
    return _figures(story, deployed, faults, cloud, up_s)


async def _acts(
    terminal: Terminal, story: Story, deployed: Deployment, faults: Faults, cloud: Cloud, callers: dict[str, str]
) -> None:
    async with (
        traffic.Client(deployed.url, {"X-Api-Key": callers["demo-app"]}) as app,
        traffic.Client(deployed.url, {"X-Api-Key": callers["internal-backfill"]}) as backfill,
        traffic.Client(deployed.url, {}) as stranger,
    ):
        terminal.head("2. Real requests: gateway, Lambda router, real model")
        await serving.serve(terminal, story, app, stranger)
        terminal.head("3. A surge: the dedicated lane saturates, low-priority work is shed to serverless")
        await serving.surge(terminal, story, app, backfill)
        terminal.head("4. The GPU endpoint dies under load, and comes back")
        await serving.lose_the_endpoint(terminal, story, app, deployed, faults)
        terminal.head("5. Two hundred requests that may wait, and five that cannot for long")
        await waiting.let_wait(terminal, story, app, cloud)


def _deploy(terminal: Terminal, layout: Layout, cloud: Cloud) -> Deployment:
    with terminal.progress("deploying") as bar:

        def on_event(event: deployment.Event) -> None:
            if event["event"] == "resource":
                bar.step(f"{event['action']} {event['name']}")

        return deployment.run("up", STACK, cloud=cloud, layout=layout, on_event=on_event)


def _figures(story: Story, deployed: Deployment, faults: Faults, cloud: Cloud, up_s: float) -> dict[str, Any]:
    tally = story.tally
    failed = len(tally.failed)
    promise(failed == 0, f"{failed} of {len(tally.answers)} requests failed: {json.dumps(sample(tally))}")
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


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
