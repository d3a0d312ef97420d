"""Application Auto Scaling's scheduled actions for endpoint variants: kept and validated. Pure.

An action belongs to its scalable target and goes with it. An update changes what it names; start and end times that
it does not name are deleted, as AWS documents. Nothing acts on them: a schedule of days has no place in an emulator
that lives for minutes.
"""

from __future__ import annotations

import re
import uuid
import zoneinfo
from typing import Any

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.scaling.targets import DIMENSION, Scaling, Target, check_namespace, not_found

_SCHEDULE = re.compile(
    r"at\(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\)"
    r"|rate\([1-9]\d* (?:minutes?|hours?|days?)\)"
    r"|cron\((?:[^ ()]+ ){5}[^ ()]+\)"
)


class Schedules:
    """Scheduled actions of the targets that `scaling` keeps."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def put(self, request: Document, now: float) -> Document:
        """PutScheduledAction, which also changes one of that name."""
        target = self._scaling.target(request)
        name = request["ScheduledActionName"]
        known = dict(target.actions.get(name, {}))
        kept = {k: v for k, v in known.items() if k not in ("StartTime", "EndTime")}
        given = {k: request[k] for k in ("Schedule", "Timezone", "StartTime", "EndTime") if k in request}
        action = {
            "ScheduledActionName": name,
            "ScheduledActionARN": self._arn(target, name),
            "ServiceNamespace": "sagemaker",
            "ResourceId": target.resource_id,
            "ScalableDimension": DIMENSION,
            "CreationTime": now,
            **kept,
            **given,
        }
        if "ScalableTargetAction" in request:
            action["ScalableTargetAction"] = dict(request["ScalableTargetAction"])
        _check(action)
        target.actions[name] = action
        return {}

    def describe(self, request: Document) -> Document:
        """DescribeScheduledActions."""
        check_namespace(request)
        names, resource = request.get("ScheduledActionNames"), request.get("ResourceId")
        every = [a for t in self._scaling.all() for a in t.actions.values()]
        kept = [a for a in every if resource in (None, a["ResourceId"])]
        kept = [a for a in kept if not names or a["ScheduledActionName"] in names]
        page, token = listing.page(
            kept,
            key=lambda a: [f"{a['ResourceId']}/{a['ScheduledActionName']}"],
            size=int(request.get("MaxResults", 50)),
            token=request.get("NextToken"),
        )
        return {"ScheduledActions": page, **({"NextToken": token} if token else {})}

    def delete(self, request: Document) -> Document:
        """DeleteScheduledAction."""
        name = request["ScheduledActionName"]
        if self._scaling.target(request).actions.pop(name, None) is None:
            raise not_found(
                f"No scheduled action found for service namespace: sagemaker, resource ID: {request['ResourceId']}, "
                f"scheduled action name: {name}"
            )
        return {}

    def _arn(self, target: Target, name: str) -> str:
        place = f"arn:aws:autoscaling:{self._scaling.place}:scheduledAction:{uuid.uuid4()}"
        return f"{place}:resource/sagemaker/{target.resource_id}:scheduledActionName/{name}"


def _check(action: dict[str, Any]) -> None:
    schedule = action.get("Schedule")
    if schedule is None or _SCHEDULE.fullmatch(schedule) is None:
        raise invalid(f"Schedule must be at(...), rate(...) or cron(...) with six fields; got {schedule!r}.")
    bounds = action.get("ScalableTargetAction") or {}
    minimum, maximum = bounds.get("MinCapacity"), bounds.get("MaxCapacity")
    if minimum is None and maximum is None:
        raise invalid("ScalableTargetAction needs MinCapacity, MaxCapacity or both.")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise invalid(f"MinCapacity {minimum} is above MaxCapacity {maximum}.")
    zone = action.get("Timezone", "UTC")
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise invalid(f"Timezone {zone!r} is not known.") from error
