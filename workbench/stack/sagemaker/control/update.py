"""One update under way: a `Rollout`'s commands, carried out on two running deployments.

MaximumExecutionTimeoutInSeconds counts the emulated seconds of baking and the real ones that instances take to start,
for a process does not start faster because a clock runs faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.control.alarms import Alarms
from workbench.stack.sagemaker.control.deployment import Deployment, part
from workbench.stack.sagemaker.control.rollout import Bake, Command, GoBack, Outcome, Resize, Rollout, Route, carry_out
from workbench.stack.sagemaker.model.replica import StartError
from workbench.stack.sagemaker.records import Stage

ALARM_POLL_S = 10.0
"""Between two looks at the alarms. AWS's own interval is not public; an alarm's period is 10 s at least."""

OnStage = Callable[[Stage | None, Stage | None, float], None]
"""Told of each stage: what is done to the old and to the new fleet, and the new one's share of the traffic."""


@dataclass(slots=True)
class Update:
    """Replaces `old` by `new`, which is not started yet."""

    rollout: Rollout
    old: Deployment
    new: Deployment
    alarms: Alarms
    clock: Clock
    route: Callable[[float], None]
    on_stage: OnStage
    on_rollback: Callable[[str], None]
    share: float = 0.0
    _started: bool = False
    _going_back: bool = False
    _old_counts: dict[str, int] = field(init=False)
    _new_counts: dict[str, int] = field(init=False)
    _spent_s: float = 0.0

    def __post_init__(self) -> None:
        self._old_counts = self.old.counts
        self._new_counts = {p.variant.name: p.count for p in self.new.plan.variants}

    async def run(self) -> Outcome:
        """Until it is done, or undone."""
        course = carry_out(self.rollout)
        answer: str | None = None
        while True:
            try:
                command = course.send(answer)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            answer = await self._do(command)

    async def _do(self, command: Command) -> str | None:
        match command:
            case Resize():
                return await self._resize(command)
            case Bake(seconds):
                self._stage("new", "Baking")
                return await self._bake(seconds)
            case Route(share):
                self.share = share
                self._stage("old" if self._going_back else "new", "ActivatingTraffic")
                self.route(share)
            case GoBack(reason):
                self._going_back = True
                self.on_rollback(reason)
        return None

    def _stage(self, fleet: Literal["old", "new"], stage: Stage) -> None:
        self.on_stage(stage if fleet == "old" else None, stage if fleet == "new" else None, self.share)

    async def _resize(self, command: Resize) -> str | None:
        new = command.fleet == "new"
        stage: Stage = "Creating" if new != self._going_back else "Deleting"
        self._stage(command.fleet, stage)
        began = asyncio.get_running_loop().time()
        try:
            # Going back has no limit but its own success.
            async with asyncio.timeout(None if self._going_back else self._left_s):
                if new and not self._started:
                    self._started = True
                    await self.new.start()
                    return None
                deployment, counts = (self.new, self._new_counts) if new else (self.old, self._old_counts)
                return await deployment.resize(part(counts, command.share))
        except StartError as error:
            return str(error)
        except TimeoutError:
            return self._over
        finally:
            self._spent_s += asyncio.get_running_loop().time() - began

    async def _bake(self, seconds: float) -> str | None:
        loop, left_s = asyncio.get_running_loop(), self._left_s
        allowed_s = seconds if left_s is None else min(seconds, left_s)
        end = loop.time() + self.clock.real(allowed_s)
        while True:
            if problem := await self.alarms.problem(self.rollout.alarms):
                return problem
            if (rest_s := end - loop.time()) <= 0:
                break
            await asyncio.sleep(min(rest_s, self.clock.poll_s(ALARM_POLL_S)))
        self._spent_s += allowed_s
        return None if allowed_s == seconds else self._over

    @property
    def _left_s(self) -> float | None:
        limit_s = self.rollout.limit_s
        return None if limit_s is None else max(limit_s - self._spent_s, 0.0)

    @property
    def _over(self) -> str:
        return f"The deployment exceeded MaximumExecutionTimeoutInSeconds ({self.rollout.limit_s})."
