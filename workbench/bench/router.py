"""The warm router handler, whole, against a handler that only calls boto3's `invoke_endpoint`; and its own time.

Both get the same gateway event, payload and backend, each in a process of its own, in short turns of one run (A B, B A)
so that drift hits both alike. The backend answers at once, so nothing but the fronts is compared: with a real model
behind them both ratios come nearer to one. The router's own time, all but its wait for the model, is measured in the
same turns on a backend that takes 2 ms, where the wait is long enough to be told apart.

With `others`, the same turns also hold routers that are called over HTTP: our handler behind a plain HTTP server, the
article's FastAPI sketch and LiteLLM's proxy, and a call of the backend itself, which is the floor under all of them.

Neither Lambda's own runtime nor the gateway nor TLS is in these figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from workbench.bench import others, processes, scene
from workbench.bench.backend import RULES
from workbench.bench.processes import Caller, Times
from workbench.bench.statistics import over_blocks, percentile, ratio

WARM_UP: Final = 400
TURNS: Final = 80
CALLS: Final = 50
"""A turn. 80 × 50 = 4,000 calls each: a P99 with forty calls above it."""
_LAMBDAS: Final = 3
_OVER_HTTP: Final = 4


class RouterBench:
    """The measurement, with or without the other routers."""

    def __init__(self, *, with_others: bool, say: Callable[[str], None]) -> None:
        """`say` is told when the others cannot be had; the rest is measured all the same."""
        self._with_others = with_others
        self._say = say

    def steps(self) -> int:
        """How often `measure` calls `step`."""
        return TURNS * (_LAMBDAS + (_OVER_HTTP if self._with_others else 0))

    def measure(self, step: Callable[[], None]) -> dict[str, Any]:
        """Percentiles in milliseconds, their ratios, and the smallest and largest ratio of five parts of the run."""
        with ExitStack() as stack:
            at = stack.enter_context(processes.backend())
            made = [
                stack.enter_context(processes.caller("router", "router", at.at_once)),
                stack.enter_context(processes.caller("boto3", "boto3", at.at_once)),
                stack.enter_context(processes.caller("router_waiting", "router", at.delayed)),
            ]
            if self._with_others:
                made += self._over_http(stack, at.at_once)
            found = in_turns(made, step)
        return {
            "calls": TURNS * CALLS,
            "rules": RULES,
            "payload_bytes": len(scene.PAYLOAD),
            **_lambdas(found["router"].wall, found["boto3"].wall, found["router_waiting"].own),
            **(_compared(found) if "direct" in found else {}),
        }

    def _over_http(self, stack: ExitStack, backend: str) -> list[Caller]:
        try:
            venv = others.installed()
        except others.NotInstalledError as error:
            self._say(f"measured without the other routers: {error}")
            return []
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inferlane-bench-")))
        targets = [
            others.Other("direct", f"{backend}/endpoints/{scene.ENDPOINT}/invocations"),
            others.Other("inferlane_http", stack.enter_context(processes.served(backend))),
            stack.enter_context(others.article(venv, backend, folder)),
            stack.enter_context(others.litellm(venv, backend, folder)),
        ]
        return [stack.enter_context(processes.caller(each.name, "http", each.url)) for each in targets]


def in_turns(callers: list[Caller], step: Callable[[], None]) -> dict[str, Times]:
    """Warm every caller up, then let each make `CALLS` calls `TURNS` times, in an order that is reversed every turn."""
    for each in callers:
        each.run(WARM_UP)
    found = {each.name: Times([], []) for each in callers}
    for turn in range(TURNS):
        for each in callers if turn % 2 == 0 else reversed(callers):
            times = each.run(CALLS)
            found[each.name].wall.extend(times.wall)
            found[each.name].wait.extend(times.wait)
            step()
    return found


def _lambdas(router: list[int], boto3: list[int], own: list[int]) -> dict[str, Any]:
    return {
        "router_ms": _percentiles(router),
        "boto3_ms": _percentiles(boto3),
        "own_ms": _percentiles(own),
        "p50_ratio": ratio(router, boto3, 50),
        "p99_ratio": ratio(router, boto3, 99),
        "p50_ratio_of_parts": over_blocks(router, boto3, 50),
        "p99_ratio_of_parts": over_blocks(router, boto3, 99),
    }


def _compared(found: dict[str, Times]) -> dict[str, Any]:
    """Over HTTP, as a caller sees it; `to_inferlane`: how many times our P50 and P99 the other takes."""
    ours = found["inferlane_http"].wall
    rows: dict[str, Any] = {}
    for name in ("direct", "inferlane_http", "article_fastapi", "litellm_proxy"):
        times = found[name].wall
        rows[name] = {
            **_percentiles(times),
            "to_inferlane": {"p50": ratio(times, ours, 50), "p99": ratio(times, ours, 99)},
        }
    return {"over_http_ms": rows, "versions": list(others.REQUIREMENTS)}


def _percentiles(times: list[int]) -> dict[str, float]:
    return {"p50": percentile(times, 50), "p99": percentile(times, 99)}
