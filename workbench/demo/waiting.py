"""Acts five and six: requests that may wait become one transform job; the day's answers are rechecked."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from workbench import traffic
from workbench.demo.story import STACK, Story, one_text, promise, texts
from workbench.nightly.machine import machine_of
from workbench.nightly.reports import headline
from workbench.stack.cloud import Cloud
from workbench.terminal import Terminal

BATCH_PATH = "/api/predict/batch"
"""Of the local policy's routes the one that prefers to wait: `prefer: async, within: 1h`."""
WAITING_REQUESTS = 200
WAITING_LIMIT_S = 90.0
URGENT_MS = 20_000
ENDS = ("done", "failed", "expired", "cancelled")


async def let_wait(terminal: Terminal, story: Story, app: traffic.Client, cloud: Cloud) -> None:
    """Work that may wait is accepted, gathered and answered by one transform job; what cannot, is promoted in time."""
    stream = texts()
    calls = [*_calls(stream), *_calls(stream, 5, {"X-Inferlane-Deadline-Ms": str(URGENT_MS)})]
    with terminal.progress("accepting", len(calls)) as bar:
        began = time.monotonic()
        accepted = await app.closed(calls, callers=4, on_answer=lambda _: bar.step())
    refused = [answer for answer in accepted if answer.status != 202]
    promise(
        not refused,
        f"{len(refused)} requests were not accepted: {json.dumps(traffic.describe((refused or accepted)[0]))}",
    )
    ids = [str(json.loads(answer.body)["id"]) for answer in accepted]
    with terminal.progress("one transform job", len(ids)) as bar:
        jobs = await _ended(app, cloud, ids, lambda count: bar.step(f"{count} of {len(ids)} done"))
    ends = Counter(str(job["status"]) for job in jobs)
    lanes = Counter(str(job.get("lane")) for job in jobs)
    promise(ends == {"done": len(jobs)}, f"not every job was done: {dict(ends)}")
    late = [job for job in jobs if job.get("late")]
    promise(not late, f"{len(late)} jobs were done after their deadline")
    row: dict[str, Any] = {
        "act": "may wait",
        "requests": len(jobs),
        "failed": 0,
        "lanes": dict(lanes),
        "seconds": round(time.monotonic() - began, 1),
        "cost_usd": round(sum(float(job.get("cost_usd") or 0.0) for job in jobs), 6),
    }
    story.acts.append(row)
    terminal.say(
        f"{row['requests']} accepted, all done after {row['seconds']} s: {lanes['batch']} by batch, "
        f"{len(jobs) - lanes['batch']} that could not wait promoted; ${row['cost_usd']:.6f}"
    )


def recheck(terminal: Terminal, story: Story, cloud: Cloud) -> None:
    """What the light model said today is said again by the heavy one, and a report tells the difference."""
    machine = machine_of(STACK, cloud.client, pause_s=0.5)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    with terminal.progress(f"recheck of {today}") as bar:
        done = machine.run(today, None, bar.label)
    promise(done.outcome in ("reported", "unchanged"), f"the recheck ended {done.outcome}")
    told: Any = done.answer["headline"]
    story.acts.append({"act": "nightly recheck", "date": today, "outcome": done.outcome, **told})
    terminal.say(headline(told))
    terminal.say(f"the page: inferlane nightly report --date {today} --open")


def _calls(
    stream: Iterator[str], count: int = WAITING_REQUESTS, headers: dict[str, str] | None = None
) -> list[traffic.Call]:
    return [traffic.Call(BATCH_PATH, one_text(stream).payload, headers or {}) for _ in range(count)]


async def _ended(app: traffic.Client, cloud: Cloud, ids: Sequence[str], tell: Any) -> list[dict[str, Any]]:
    """Every job, once it has ended. The collector is called now and then instead of on its minute."""
    functions = cloud.client("lambda")
    found: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + WAITING_LIMIT_S
    while len(found) < len(ids):
        promise(time.monotonic() < until, f"{len(ids) - len(found)} jobs were still open after {WAITING_LIMIT_S:.0f} s")
        await asyncio.to_thread(functions.invoke, FunctionName=f"inferlane-{STACK}-collect", Qualifier="live")
        for id_ in (id_ for id_ in ids if id_ not in found):
            job = await app.read(f"/v1/jobs/{id_}")
            if job["status"] not in ENDS:
                break  # the others were accepted later: they are hardly further
            found[id_] = job
            tell(len(found))
        await asyncio.sleep(1.0)
    return [found[id_] for id_ in ids]
