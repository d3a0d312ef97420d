"""Clients that call one URL at the same time, in a process of their own; every answer is checked to be its call's own.

`python -m workbench.bench.crowd URL CLIENTS`, then a number of calls on standard input and a line of JSON back: each
client makes so many calls, one after another, on a connection of its own; `wall` is every call's time in ns. The
payload carries a number that no other call has, and the answer must carry it too: a lost or crossed answer ends the
process with a message.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator

import aiohttp

PADDING = "x" * 200
"""So that a payload is as long as a sentence or two."""


async def main() -> None:
    """Serve one crowd until standard input closes."""
    url, clients = sys.argv[1], int(sys.argv[2])
    numbers = itertools.count()
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(30)) as session:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            times = await asyncio.gather(*(_call(session, url, numbers, int(line)) for _ in range(clients)))
            print(json.dumps({"wall": [ns for part in times for ns in part], "wait": []}), flush=True)


async def _call(session: aiohttp.ClientSession, url: str, numbers: Iterator[int], calls: int) -> list[int]:
    times: list[int] = []
    for _ in range(calls):
        asked = {"number": next(numbers), "text": PADDING}
        body = json.dumps(asked).encode()
        began = time.perf_counter_ns()
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
            answer = await response.read()
        times.append(time.perf_counter_ns() - began)
        if response.status != 200 or json.loads(answer) != asked:
            raise SystemExit(f"call {asked['number']} was answered {response.status}: {answer[:500]!r}")
    return times


if __name__ == "__main__":
    asyncio.run(main())
