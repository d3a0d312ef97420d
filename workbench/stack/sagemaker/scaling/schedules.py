"""Application Auto Scaling's scheduled actions: put, described, deleted, and which are due. Pure.

An action belongs to its scalable target and goes with it. An update changes what it names; start and end times that
it does not name are deleted, as AWS documents. When due, an action sets its target's minimum and maximum. Schedules are
told by the emulated time: with a time scale of 60, `rate(5 minutes)` is due every five seconds, and a cron or at
schedule as if the time since the start of the emulator had passed 60 times as fast.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid
from workbench.stack.sagemaker.scaling.targets import Scaling, Target, check_namespace, not_found, page
from workbench.stack.sagemaker.scaling.timing import Bounds, ScheduleError, next_fire

MOST_ACTIONS = 200
"""Per scalable target. Application Auto Scaling's quota."""


@dataclass(slots=True)
class Action:
    """A scheduled action."""

    document: dict[str, Any]
    bounds: Bounds
    due: float | None
    """Emulated epoch seconds; None when it is over."""

    @property
    def name(self) -> str:
        """Unique in its target."""
        return str(self.document["ScheduledActionName"])

    def renew(self, moment: float) -> None:
        """It has been carried out: the next time."""
        self.due = next_fire(self.document["Schedule"], self.document.get("Timezone"), self.bounds, moment)

    def limits(self, target: Target) -> tuple[int, int]:
        """Minimum and maximum that it leaves. One that it does not name gives way to one that it does."""
        given = self.document["ScalableTargetAction"]
        minimum, maximum = given.get("MinCapacity"), given.get("MaxCapacity")
        if minimum is None:
            return min(target.minimum, maximum), maximum
        return minimum, max(target.maximum, minimum) if maximum is None else maximum


class Schedules:
    """Scheduled actions of the targets that `scaling` keeps."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def put(self, request: Document, now: float, moment: float) -> Document:
        """PutScheduledAction, which also changes one of that name. `moment` is `now` in emulated time."""
        target = self._scaling.target(request)
        name = request["ScheduledActionName"]
        known = target.actions.get(name)
        if known is None and len(target.actions) >= MOST_ACTIONS:
            raise AwsError("LimitExceededException", f"A scalable target can have {MOST_ACTIONS} scheduled actions.")
        kept = {k: v for k, v in known.document.items() if k not in ("StartTime", "EndTime")} if known else {}
        given = {k: request[k] for k in ("Schedule", "Timezone", "StartTime", "EndTime") if k in request}
        document = {
            "ScheduledActionName": name,
            "ScheduledActionARN": self._arn(target, name),
            "ServiceNamespace": "sagemaker",
            "ResourceId": target.place.resource_id,
            "ScalableDimension": target.place.dimension,
            "CreationTime": now,
            **kept,
            **given,
        }
        if "ScalableTargetAction" in request:
            document["ScalableTargetAction"] = dict(request["ScalableTargetAction"])
        target.actions[name] = checked(document, moment)
        return {}

    def describe(self, request: Document) -> Document:
        """DescribeScheduledActions."""
        check_namespace(request)
        names, resource = request.get("ScheduledActionNames"), request.get("ResourceId")
        rows = [a.document for t in self._scaling.all() for a in t.actions.values()]
        rows = [a for a in rows if resource in (None, a["ResourceId"])]
        rows = [a for a in rows if not names or a["ScheduledActionName"] in names]
        found, token = page(rows, request, lambda a: f"{a['ResourceId']}/{a['ScheduledActionName']}")
        return {"ScheduledActions": found, **token}

    def delete(self, request: Document) -> Document:
        """DeleteScheduledAction."""
        name = request["ScheduledActionName"]
        if self._scaling.target(request).actions.pop(name, None) is None:
            raise not_found(
                f"No scheduled action found for service namespace: sagemaker, resource ID: {request['ResourceId']}, "
                f"scheduled action name: {name}"
            )
        return {}

    def due(self, moment: float) -> list[tuple[Target, Action]]:
        """The actions whose time has come, the longest due first."""
        every = [(t, a) for t in self._scaling.all() for a in t.actions.values()]
        return sorted(
            ((t, a) for t, a in every if a.due is not None and a.due <= moment), key=lambda pair: pair[1].due or 0.0
        )

    def _arn(self, target: Target, name: str) -> str:
        place = f"arn:aws:autoscaling:{self._scaling.place}:scheduledAction:{uuid.uuid4()}"
        return f"{place}:resource/sagemaker/{target.place.resource_id}:scheduledActionName/{name}"


def checked(document: dict[str, Any], moment: float) -> Action:
    """An action, if its document makes one. Raises `AwsError`."""
    limits = document.get("ScalableTargetAction") or {}
    minimum, maximum = limits.get("MinCapacity"), limits.get("MaxCapacity")
    if minimum is None and maximum is None:
        raise invalid("ScalableTargetAction needs MinCapacity, MaxCapacity or both.")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise invalid(f"MinCapacity {minimum} is above MaxCapacity {maximum}.")
    bounds = Bounds(moment, _epoch(document.get("StartTime")), _epoch(document.get("EndTime")))
    if bounds.start is not None and bounds.end is not None and bounds.start >= bounds.end:
        raise invalid("EndTime must be after StartTime.")
    try:
        due = next_fire(str(document.get("Schedule")), document.get("Timezone"), bounds, moment)
    except ScheduleError as error:
        raise invalid(str(error)) from error
    return Action(document, bounds, due)


def _epoch(value: float | str | None) -> float | None:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError as error:
            raise invalid(f"{value!r} is not a timestamp.") from error
    return value
