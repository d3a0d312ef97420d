"""Acts two to four: requests that are waited for, a surge that is shed, an endpoint that dies."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator

from workbench import traffic
from workbench.demo.story import CHAT_PATH, MODEL, PATH, Story, line, one_text, promise, texts
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.processes import StackError
from workbench.terminal import Terminal

STEADY_REQUESTS = 120
FAULT_REQUESTS = 200
SURGE_CALLERS = 6
SURGE_TEXTS = 12
"""Texts in one surge request: enough work a request that the model, not the gateway, is what saturates."""
SURGE_LIMIT_S = 75.0
CALM_LIMIT_S = 60.0


async def serve(terminal: Terminal, story: Story, app: traffic.Client, stranger: traffic.Client) -> None:
    refused = await stranger.send(traffic.Call(PATH, {"text": "hello"}))
    promise(refused.status in (401, 403), f"a caller without a key was answered {refused.status}")
    sample = await app.send(traffic.Call(PATH, {"text": "Thank you, this was a great help."}))
    promise(sample.ok, f"the first request failed: {traffic.describe(sample)}")
    terminal.say(f"without a key: {refused.status}; with one: {sample.body.decode().strip()} from {sample.lane}")
    stream = texts()
    with terminal.progress("steady traffic", STEADY_REQUESTS) as bar:
        answers = await app.closed(
            (one_text(stream, path=CHAT_PATH) for _ in range(STEADY_REQUESTS)),
            callers=3,
            on_answer=lambda _: bar.step(),
        )
    terminal.say(line(story.act("steady", [sample, *answers])))


async def surge(terminal: Terminal, story: Story, app: traffic.Client, backfill: traffic.Client) -> None:
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
        # A rule's first choice: what the model is too busy for goes to serverless too, at once and by itself.
        return bool(low) and low[-1].attempts[:1] == ("serverless",)

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
    promise(bool(shed_at), f"low-priority work was not shed within {SURGE_LIMIT_S:.0f} s of the surge")
    rule = low[-1].rule
    with terminal.progress("calm: back below the lower threshold"):
        await watch(CALM_LIMIT_S, lambda: low[-1].lane == "dedicated", back_at)
    promise(bool(back_at), f"low-priority work was not back on the dedicated lane {CALM_LIMIT_S:.0f} s after the surge")
    row = story.act("surge", high + low, shed_after_s=round(shed_at[0], 1), back_after_s=round(back_at[0], 1))
    terminal.say(
        line(row) + f"; shed by rule {rule} after {row['shed_after_s']} s, back {row['back_after_s']} s after the surge"
    )


async def lose_the_endpoint(
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
    terminal.say(line(row))
    promise(row["failed"] == 0, f"{row['failed']} requests failed while the endpoint was down")
    promise(
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
