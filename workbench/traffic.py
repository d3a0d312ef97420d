"""Send real requests to a front door and keep what came back: the callers of the demo, the tests and the benches.

Two shapes of load. *Closed*: a fixed number of callers, each waits for its answer (a queue can only grow to their
number). *Open*: requests leave at a rate whatever the answers do, as the world's do. Every request is awaited and
counted; none is dropped by the generator.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

_ATTEMPT = re.compile(r'\battempt;desc="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One request to send: `path` below the front door's URL."""

    path: str
    payload: object
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `status` 0 means that no answer came: `error` says why."""

    at_s: float
    """When it was sent, seconds since the run began."""
    status: int
    latency_ms: float
    lane: str | None = None
    rule: str | None = None
    policy: str | None = None
    cost_usd: float = 0.0
    attempts: tuple[str, ...] = ()
    """The lanes that were tried, in order, as `Server-Timing` tells."""
    body: bytes = b""
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 200


@dataclass(slots=True)
class Tally:
    """Counts and percentiles over answers."""

    answers: list[Answer] = field(default_factory=list)

    def add(self, answers: Iterable[Answer]) -> None:
        self.answers.extend(answers)

    @property
    def failed(self) -> list[Answer]:
        return [answer for answer in self.answers if not answer.ok]

    @property
    def lanes(self) -> dict[str, int]:
        """Answered requests per lane."""
        return dict(Counter(answer.lane or "none" for answer in self.answers if answer.ok))

    @property
    def cost_usd(self) -> float:
        """Sum of what the router said each request cost."""
        return sum(answer.cost_usd for answer in self.answers)

    def rate_per_s(self, since_s: float, until_s: float) -> float:
        """Requests that were sent in this time and answered 200, per second of it."""
        return sum(since_s <= answer.at_s < until_s for answer in self.answers if answer.ok) / (until_s - since_s)

    def percentile_ms(self, percent: float) -> float:
        """Nearest-rank percentile of the answered requests' latency; 0.0 when none was answered."""
        values = sorted(answer.latency_ms for answer in self.answers if answer.ok)
        if not values:
            return 0.0
        rank = max(1, -(-len(values) * percent // 100))  # ceil without floats
        return values[int(rank) - 1]


class Client:
    """Callers of one front door. Use as an async context manager."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout_s: float = 60.0) -> None:
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._began = time.perf_counter()

    async def __aenter__(self) -> Client:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
        )
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._session.close()

    @property
    def now_s(self) -> float:
        """Seconds since the run began: what `Answer.at_s` counts."""
        return time.perf_counter() - self._began

    async def send(self, call: Call) -> Answer:
        """Send one request and wait for its answer; a broken connection is an answer with status 0."""
        began = time.perf_counter()
        try:
            async with self._session.post(
                self._url + call.path,
                data=json.dumps(call.payload),
                headers={"Content-Type": "application/json", **call.headers},
            ) as response:
                body = await response.read()
                return Answer(
                    at_s=began - self._began,
                    status=response.status,
                    latency_ms=(time.perf_counter() - began) * 1000,
                    lane=response.headers.get("X-Inferlane-Lane"),
                    rule=response.headers.get("X-Inferlane-Rule"),
                    policy=response.headers.get("X-Inferlane-Policy"),
                    cost_usd=float(response.headers.get("X-Inferlane-Cost-Usd", "0")),
                    attempts=attempts_in(response.headers.get("Server-Timing", "")),
                    body=body,
                )
        except (aiohttp.ClientError, TimeoutError) as error:
            latency_ms = (time.perf_counter() - began) * 1000
            return Answer(began - self._began, 0, latency_ms, error=f"{type(error).__name__}: {error}")

    async def read(self, path: str) -> dict[str, Any]:
        """The JSON document at `path`. Raises `aiohttp.ClientError` for any answer but 200."""
        async with self._session.get(self._url + path, raise_for_status=True) as response:
            document: dict[str, Any] = await response.json()
            return document

    async def closed(
        self,
        calls: Iterable[Call],
        *,
        callers: int,
        until: Callable[[], bool] = lambda: False,
        on_answer: Callable[[Answer], None] = lambda _answer: None,
    ) -> list[Answer]:
        """Send the calls with `callers` at a time, until they are used up or `until` is true."""
        answers: list[Answer] = []
        source: Iterator[Call] = iter(calls)

        async def caller() -> None:
            for call in source:
                answer = await self.send(call)
                answers.append(answer)
                on_answer(answer)
                if until():
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        return answers

    async def open(
        self,
        calls: Iterable[Call],
        *,
        per_s: float,
        in_flight: int | None = None,
        on_answer: Callable[[Answer], None] = lambda _answer: None,
    ) -> list[Answer]:
        """Send the calls at a steady rate, never waiting for an earlier answer: each has its time on the clock.

        With `in_flight`, so many unanswered ones are the end of that: a call whose time has come waits for a place, and
        what the other side cannot keep up with shows as a lower rate (`rate_per_s`) instead of an ever longer queue.
        """
        answers: list[Answer] = []
        places = asyncio.Semaphore(in_flight) if in_flight else None
        began = time.perf_counter()

        async def one(call: Call) -> None:
            answer = await self.send(call)
            if places:
                places.release()
            answers.append(answer)
            on_answer(answer)

        async with asyncio.TaskGroup() as group:
            for number, call in enumerate(calls):
                await asyncio.sleep(max(0.0, began + number / per_s - time.perf_counter()))
                if places:
                    await places.acquire()
                group.create_task(one(call))
        return answers


def attempts_in(server_timing: str) -> tuple[str, ...]:
    """The lanes of a `Server-Timing` header's attempts: `decide;dur=0.1, attempt;desc="dedicated";dur=8.2`."""
    return tuple(_ATTEMPT.findall(server_timing))


def describe(answer: Answer) -> dict[str, Any]:
    """An answer for people and JSON: status, lane, rule, time, and the body when it is text."""
    return {
        "status": answer.status,
        "lane": answer.lane,
        "rule": answer.rule,
        "latency_ms": round(answer.latency_ms, 1),
        "body": answer.error or answer.body.decode(errors="replace")[:500],
    }
