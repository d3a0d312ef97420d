"""What the SageMaker emulator adds to a call, over calling the model process itself: with one client, and with twenty.

The same clients send the same payloads to the model process's own `/invocations` and to the endpoint, in short turns of
one run (A B, B A). Every answer is checked to be the caller's own (`crowd.py`).

| setting   | clients | model                                                                                  |
|-----------|---------|----------------------------------------------------------------------------------------|
| alone     | 1       | answers at once                                                                        |
| crowd     | 20      | takes 10 to 30 ms and has a worker for each: the machine keeps up with either path     |
| saturated | 20      | answers at once: the model process, on one core, is what all wait for on either path   |

The crowd's model takes no fixed time, for then all twenty would ask in the same instant, for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from workbench.bench import processes
from workbench.bench.emulated import Model, serving
from workbench.bench.processes import Caller
from workbench.bench.statistics import over_blocks, percentile, ratio

CLIENTS: Final = 20
TURNS: Final = 20
MODELS: Final = {
    "at-once": {},
    "waiting": {"TAKES_S": "0.01 0.03", "SAGEMAKER_MODEL_SERVER_WORKERS": str(CLIENTS)},
}


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    clients: int
    model: str
    calls: int
    """Of each client in a turn."""


SETTINGS: Final = (
    Setting("alone", 1, "at-once", 100),
    Setting("crowd", CLIENTS, "waiting", 100),
    Setting("saturated", CLIENTS, "at-once", 100),
)
"""Twenty turns of 100 calls: 2,000 of each client, on either path."""


def steps() -> int:
    """How often `measure` calls `step`."""
    return 2 * TURNS * len(SETTINGS)


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """For each setting: percentiles of both paths in milliseconds, and what the emulator adds at the median."""
    with serving(MODELS) as models:
        return {setting.name: _measured(setting, models[setting.model], step) for setting in SETTINGS}


def _measured(setting: Setting, model: Model, step: Callable[[], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        crowds = [
            stack.enter_context(processes.crowd("direct", model.direct, setting.clients)),
            stack.enter_context(processes.crowd("emulator", model.endpoint, setting.clients)),
        ]
        found = _in_turns(crowds, setting.calls, step)
    direct, emulator = found["direct"], found["emulator"]
    return {
        "clients": setting.clients,
        "calls": len(emulator),
        "direct_ms": {"p50": percentile(direct, 50), "p99": percentile(direct, 99)},
        "emulator_ms": {"p50": percentile(emulator, 50), "p99": percentile(emulator, 99)},
        "added_ms_p50": round(percentile(emulator, 50) - percentile(direct, 50), 4),
        "p50_ratio": ratio(emulator, direct, 50),
        "p50_ratio_of_parts": over_blocks(emulator, direct, 50),
    }


def _in_turns(crowds: list[Caller], calls: int, step: Callable[[], None]) -> dict[str, list[int]]:
    for each in crowds:
        each.run(calls)
    found: dict[str, list[int]] = {each.name: [] for each in crowds}
    for turn in range(TURNS):
        for each in crowds if turn % 2 == 0 else reversed(crowds):
            found[each.name].extend(each.run(calls).wall)
            step()
    return found
