"""Put a policy in force, or take one back, without a deploy: AppConfig rolls it out, the router polls it.

Push: a valid document becomes a hosted version and is deployed by the stack's own strategy, alarms included; waited for
until AppConfig says complete. What does not get that far leaves nothing: no version without a deployment. An interrupt
ends the waiting, not the rollout. A later deploy of the Pulumi program replaces what was pushed only when its own
document changed.
Rollback: while a rollout lasts, it is stopped, and AppConfig goes back by itself. Else the newest earlier version that
was ever in force is deployed, so that a second rollback goes back further; `to` names another one.
Clear: AppConfig deletes no profile that still holds hosted versions, and Pulumi knows only of the one it made: a stack
to which policies were pushed cannot be destroyed. So the stack's own document is put in force again, that no router is
without one, and every version that a push made, told by its label, goes. It is meant for right before the destroy:
AppConfig may give the numbers out again, and the history of what was in force goes by numbers.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workbench.errors import UserError
from workbench.policy.document import Document, one_line
from workbench.policy.live import COMPLETE, PUSHED, LivePolicy, Rollout, Store

SLACK_S: Final = 600.0
"""Beyond the planned time, until a deployment counts as stuck."""
_TAKEN_BACK: Final = ("ROLLED_BACK", "REVERTED")

Progress = Callable[[float, str], None]
"""Told the percentage reached and AppConfig's word for the state."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is in force now."""

    version: int
    """AppConfig's number of the hosted version."""
    policy_version: str
    deployment: int | None
    """None when nothing had to be deployed."""
    changed: bool


@dataclass(frozen=True, slots=True)
class Cleared:
    """What `clear` left in force, and the hosted versions that went and that stay, oldest first."""

    result: Result
    removed: tuple[int, ...]
    kept: tuple[int, ...]
    """Pulumi's own; more than one only when somebody made versions by hand."""


@dataclass(frozen=True, slots=True)
class Pusher:
    """Changes a stack's policy."""

    store: Store
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    progress: Progress = lambda _percent, _state: None

    def push(self, document: Document, policy_version: str) -> Result:
        """Deploy a checked document. Raises `UserError`."""
        rollouts = self.store.rollouts()
        self._require_quiet(rollouts)
        content = document.content()
        serving = next((rollout for rollout in rollouts if rollout.state == COMPLETE), None)
        if serving is not None and self.store.content(serving.version) == content:
            return Result(serving.version, policy_version, None, changed=False)
        version = self._create(content, policy_version)
        try:
            number = self._start(version, f"push of {policy_version}")
        except Exception:
            self._delete(version)
            raise
        self._wait(number)
        return Result(version, policy_version, number, changed=True)

    def rollback(self, to: int | None = None) -> Result:
        """Deploy an earlier version, or stop a rollout that lasts. Raises `UserError`."""
        rollouts = self.store.rollouts()
        rolling = next((rollout for rollout in rollouts if rollout.rolling), None)
        if rolling is not None:
            self._stop(rolling)
            rollouts = self.store.rollouts()
            serving = self._serving(rollouts)
            if to is None or to == serving.version:
                return Result(serving.version, serving.policy.version, None, changed=True)
        target = self._target(rollouts, to)
        if target.version == self._serving(rollouts).version:
            return Result(target.version, target.policy.version, None, changed=False)
        number = self._start(target.version, f"rollback to {target.policy.version}")
        self._wait(number)
        return Result(target.version, target.policy.version, number, changed=True)

    def clear(self) -> Cleared:
        """Leave nothing that a push made, with the stack's own document in force. Raises `UserError`."""
        rollouts = self.store.rollouts()
        self._require_quiet(rollouts)
        labels = self.store.labelled()
        kept = [number for number, label in labels.items() if not label.startswith(PUSHED)]
        if not kept:
            raise UserError(
                f"stack {self.store.stack} holds no policy version that its deploy made, so none could serve once the "
                "pushed ones are gone: deploy the stack again, then clear"
            )
        serving = next((rollout.version for rollout in rollouts if rollout.state == COMPLETE), None)
        target = self.store.version(serving if serving in kept else kept[0])
        number = None
        if target.version != serving:
            number = self._start(target.version, f"clear: back to {target.policy.version}")
            self._wait(number)
        removed = tuple(sorted(set(labels) - set(kept)))
        for version in removed:
            self._delete(version)
        result = Result(target.version, target.policy.version, number, changed=number is not None)
        return Cleared(result, removed, tuple(sorted(kept)))

    def _target(self, rollouts: list[Rollout], to: int | None) -> LivePolicy:
        there = self.store.versions()
        if to is not None:
            if to not in there:
                known = ", ".join(map(str, there)) or "none"
                raise UserError(f"stack {self.store.stack} has no hosted version {to}; it has: {known}")
            return self.store.version(to)
        now = self._serving(rollouts).version
        earlier = {rollout.version for rollout in rollouts if rollout.state == COMPLETE and rollout.version < now}
        known_good = earlier & set(there)
        if not known_good:
            raise UserError(
                f"no earlier policy than version {now} was ever in force on stack {self.store.stack}: "
                "push the one you want"
            )
        return self.store.version(max(known_good))

    def _serving(self, rollouts: list[Rollout]) -> LivePolicy:
        newest = next((rollout for rollout in rollouts if rollout.state == COMPLETE), None)
        if newest is None:
            raise UserError(f"stack {self.store.stack} serves no policy yet")
        return self.store.version(newest.version)

    def _require_quiet(self, rollouts: list[Rollout]) -> None:
        rolling = next((rollout for rollout in rollouts if rollout.rolling), None)
        if rolling is not None:
            raise UserError(
                f"version {rolling.version} is being rolled out ({rolling.state}, {rolling.percent:.0f} %): wait until "
                f"it is complete, or stop it with `inferlane policy rollback --stack {self.store.stack}`"
            )

    def _create(self, content: bytes, policy_version: str) -> int:
        client = self.store.client
        try:
            made = client.create_hosted_configuration_version(
                ApplicationId=self.store.ids.application,
                ConfigurationProfileId=self.store.ids.profile,
                Content=content,
                ContentType="application/json",
                Description=_ascii(f"push of {policy_version}"),
                VersionLabel=f"{PUSHED}{secrets.token_hex(8)}",  # no two of a profile may have the same
            )
        except client.exceptions.BadRequestException as error:
            raise UserError(one_line(f"AppConfig refuses the document: {error}")) from error
        return made["VersionNumber"]

    def _delete(self, version: int) -> None:
        self.store.client.delete_hosted_configuration_version(
            ApplicationId=self.store.ids.application,
            ConfigurationProfileId=self.store.ids.profile,
            VersionNumber=version,
        )

    def _start(self, version: int, why: str) -> int:
        client = self.store.client
        try:
            started = client.start_deployment(
                ApplicationId=self.store.ids.application,
                EnvironmentId=self.store.ids.environment,
                ConfigurationProfileId=self.store.ids.profile,
                ConfigurationVersion=str(version),
                DeploymentStrategyId=self.store.ids.strategy,
                Description=_ascii(why),
            )
        except client.exceptions.BadRequestException as error:
            raise UserError(one_line(f"AppConfig refuses to deploy version {version}: {error}")) from error
        except client.exceptions.ConflictException as error:
            raise UserError(one_line(f"AppConfig deploys something else right now: {error}")) from error
        return started["DeploymentNumber"]

    def _stop(self, rolling: Rollout) -> None:
        if rolling.state != "ROLLING_BACK":
            self.store.client.stop_deployment(
                ApplicationId=self.store.ids.application,
                EnvironmentId=self.store.ids.environment,
                DeploymentNumber=rolling.number,
                AllowRevert=True,  # else only DEPLOYING can be stopped, not BAKING
            )
        self._wait(rolling.number, ends=_TAKEN_BACK)

    def _wait(self, number: int, ends: tuple[str, ...] = (COMPLETE,)) -> None:
        """Until the deployment is in one of `ends`. Raises `UserError` when it ends otherwise, or not in time."""
        began = self.clock()
        while True:
            found = self.store.client.get_deployment(
                ApplicationId=self.store.ids.application,
                EnvironmentId=self.store.ids.environment,
                DeploymentNumber=number,
            )
            state, planned_s = found["State"], 60.0 * _minutes(found)
            self.progress(found["PercentageComplete"], state)
            if state in ends:
                return
            if state in (COMPLETE, *_TAKEN_BACK):
                told = [event.get("Description", "") for event in found.get("EventLog", [])]
                why = next((line for line in told if "ollback" in line or "evert" in line), "no reason is given")
                raise UserError(one_line(f"deployment {number} ended {state}, the policy before it serves on: {why}"))
            if self.clock() - began > planned_s + SLACK_S:
                raise UserError(f"deployment {number} is still {state} {SLACK_S / 60:.0f} min after it should be done")
            self.sleep(5.0 if planned_s else 0.2)


def _minutes(deployment: object) -> float:
    plan = deployment if isinstance(deployment, dict) else {}
    return float(plan.get("DeploymentDurationInMinutes") or 0) + float(plan.get("FinalBakeTimeInMinutes") or 0)


def _ascii(text: str) -> str:
    """Fit for a description, which may travel as an HTTP header."""
    return one_line(text, 200).encode("ascii", "replace").decode()
