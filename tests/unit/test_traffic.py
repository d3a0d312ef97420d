"""The load generator: what it counts, and that it loses nothing."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.traffic import Answer, Call, Client, Tally, attempts_in


def answer(latency_ms: float, *, status: int = 200, lane: str | None = "dedicated") -> Answer:
    return Answer(at_s=0.0, status=status, latency_ms=latency_ms, lane=lane, cost_usd=0.5)


@pytest.mark.parametrize(("percent", "expected"), [(50, 50.0), (99, 99.0), (100, 100.0), (1, 1.0)])
def test_percentiles_are_nearest_rank(percent: float, expected: float) -> None:
    """P50 of 1..100 is 50, P99 is 99: values that occurred, never interpolated."""
    tally = Tally([answer(float(ms)) for ms in range(1, 101)])
    assert tally.percentile_ms(percent) == expected


def test_failures_count_apart() -> None:
    """A failed request is in `failed`, in no lane, and in no percentile."""
    tally = Tally([answer(1.0), answer(900.0, status=503, lane=None)])
    assert len(tally.failed) == 1
    assert tally.lanes == {"dedicated": 1}
    assert tally.percentile_ms(100) == 1.0
    assert Tally().percentile_ms(50) == 0.0


def test_a_rate_is_of_what_was_answered() -> None:
    """By the moment of sending, the end excluded; failures do not count."""
    sent = [Answer(at_s=n / 10, status=503 if n == 5 else 200, latency_ms=1.0) for n in range(40)]
    assert Tally(sent).rate_per_s(0.0, 2.0) == 9.5
    assert Tally(sent).rate_per_s(3.0, 5.0) == 5.0


def test_attempts_are_read_from_server_timing() -> None:
    """The lanes tried, in order; a decision without an attempt, or no header, is none."""
    timing = 'decide;dur=0.112, attempt;desc="dedicated";dur=8.20, attempt;desc="serverless";dur=31.5'
    assert attempts_in(timing) == ("dedicated", "serverless")
    assert attempts_in("decide;dur=0.1") == attempts_in("") == ()


async def serve(delay_s: float = 0.0) -> tuple[TestServer, list[int]]:
    active, peak = 0, [0]

    async def handler(request: web.Request) -> web.Response:
        nonlocal active
        active += 1
        peak[0] = max(peak[0], active)
        await asyncio.sleep(delay_s)
        active -= 1
        return web.Response(body=await request.read(), headers={"X-Inferlane-Lane": "serverless"})

    application = web.Application()
    application.router.add_post("/{tail:.*}", handler)
    server = TestServer(application)
    await server.start_server()
    return server, peak


async def test_closed_load_keeps_to_its_callers() -> None:
    """Every call is answered, with no more in flight than there are callers."""
    server, peak = await serve(0.005)
    async with Client(str(server.make_url("")), {}) as client:
        answers = await client.closed((Call("/x", {"n": n}) for n in range(40)), callers=4)
    await server.close()
    assert len(answers) == 40
    assert {a.body for a in answers} == {b'{"n": %d}' % n for n in range(40)}
    assert peak[0] == 4


async def test_closed_load_ends_on_its_condition() -> None:
    """An endless stream of calls ends when `until` turns true, after each caller's last answer."""
    server, _ = await serve()
    count = itertools.count(1)
    async with Client(str(server.make_url("")), {}) as client:
        answers = await client.closed(itertools.repeat(Call("/x", {})), callers=3, until=lambda: next(count) >= 10)
    await server.close()
    assert 10 <= len(answers) <= 13


async def test_open_load_does_not_wait() -> None:
    """At 200/s against answers of 100 ms, about twenty requests are in flight at once."""
    server, peak = await serve(0.1)
    async with Client(str(server.make_url("")), {}) as client:
        answers = await client.open((Call("/x", {}) for _ in range(40)), per_s=200)
    await server.close()
    assert len(answers) == 40
    assert peak[0] > 8


async def test_open_load_can_be_bounded() -> None:
    """Never more in flight than was said; none is lost, they leave later."""
    server, peak = await serve(0.05)
    async with Client(str(server.make_url("")), {}) as client:
        answers = await client.open((Call("/x", {}) for _ in range(40)), per_s=1000, in_flight=5)
    await server.close()
    assert len(answers) == 40
    assert peak[0] == 5
    assert max(a.at_s for a in answers) > 0.3


async def test_a_broken_connection_is_an_answer() -> None:
    """Nobody listening is status 0 with a cause, not an exception that ends the run."""
    async with Client("http://127.0.0.1:9", {}) as client:
        broken = await client.send(Call("/x", {}))
    assert broken.status == 0
    assert "ClientConnectorError" in broken.error
