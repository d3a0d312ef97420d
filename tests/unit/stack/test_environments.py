"""Environments: free ones at once, new ones at a rate, and first come first served for the rest."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from workbench.stack.environments import Environments, host_idle_share


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


async def held(environments: Environments, for_s: float, done: list[int], number: int = 0) -> None:
    async with environments.lease():
        await asyncio.sleep(for_s)
    done.append(number)


async def test_one_after_the_other_needs_one() -> None:
    """A request that finds a free environment takes it: nothing else is started."""
    environments = Environments(100)
    for _ in range(20):
        await held(environments, 0, [])
    assert len(environments) == 1


async def test_a_crowd_grows_them_at_the_rate() -> None:
    """The first at once, then, after 100 ms, one each 50 ms, while the first ones are still busy."""
    environments = Environments(20, patience_s=0.1, idle_share=lambda: 0.5)
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(held(environments, 1.0, []))
        await asyncio.sleep(0.05)
        assert len(environments) == 1
        await asyncio.sleep(0.12)
        assert 2 <= len(environments) <= 3
        await asyncio.sleep(0.7)
        assert len(environments) == 10


async def test_a_busy_host_starts_fewer() -> None:
    """Without idle CPU one each 200 ms; as soon as there is some, at the rate again."""
    idle = 0.05
    environments = Environments(50, patience_s=0.02, at_least_each_s=0.2, idle_share=lambda: idle)
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(held(environments, 1.5, []))
        await asyncio.sleep(0.5)
        assert len(environments) == 3
        idle = 0.5
        await asyncio.sleep(0.5)
        assert len(environments) == 10


def test_the_hosts_idle_share_is_a_share() -> None:
    """Between nothing and all, also when asked twice within one tick."""
    share = host_idle_share()
    assert all(0.0 <= share() <= 1.0 for _ in range(50))


async def test_a_line_that_moves_starts_none() -> None:
    """Ten times as many as can be served at a time, each served within the patience of the next ones: one is enough."""
    environments = Environments(100, patience_s=0.2, idle_share=lambda: 0.5)
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(held(environments, 0.005, []))
    assert len(environments) == 1


async def test_what_becomes_free_goes_to_who_waits_longest() -> None:
    """In the order of coming; and no environment is started that is not needed any more."""
    environments = Environments(0.1)
    done: list[int] = []
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(held(environments, 0.01, done, number))
    assert done == list(range(8))
    assert len(environments) == 1


async def test_who_gives_up_takes_no_environment_along() -> None:
    """A caller that goes away while it waits, or just as its turn comes, leaves its place to the next."""
    environments = Environments(0.1)
    done: list[int] = []
    async with environments.lease():
        waiting = [asyncio.create_task(held(environments, 0, done, number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()  # its turn has come with the end of the lease, but it has not run since
    await asyncio.wait(waiting)
    assert done == [2]
    await asyncio.wait_for(held(environments, 0, done, 9), 1)
    assert done == [2, 9]


async def test_idle_ones_go_but_the_first() -> None:
    """After the idle time a crowd has to be started anew."""
    clock = Clock()
    environments = Environments(float("inf"), patience_s=0, idle_s=300, idle_share=lambda: 1.0, clock=clock)

    async def crowd() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(4):
                await stack.enter_async_context(environments.lease())
            assert len(environments) == 4

    await crowd()
    clock.s = 299
    await crowd()
    clock.s = 600
    await held(environments, 0, [])
    assert len(environments) == 1
    await crowd()
