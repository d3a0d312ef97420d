"""Scaling activities: what has been tried, why, and how it ended, newest first, for six weeks. Pure.

The wording is the service's own, as its user guide and public transcripts of DescribeScalingActivities show it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.scaling.resources import CONCURRENCY, INSTANCES, Dimension

Status = Literal["InProgress", "Successful", "Failed", "Unfulfilled"]
KEPT_S = 6 * 7 * 86_400.0
MOST_KEPT = 10_000
_NOUNS: dict[Dimension, str] = {INSTANCES: "instance count", CONCURRENCY: "provisioned concurrency"}


@dataclass(slots=True)
class Activity:
    """One activity of one target."""

    resource_id: str
    dimension: Dimension
    description: str
    cause: str
    started: float
    status: Status
    message: str | None = None
    ended: float | None = None
    reason: dict[str, object] | None = None
    """Why nothing was scaled, for an activity that scaled nothing."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def shown(self) -> Document:
        """As DescribeScalingActivities has it."""
        shown: dict[str, object] = {
            "ActivityId": self.id,
            "ServiceNamespace": "sagemaker",
            "ResourceId": self.resource_id,
            "ScalableDimension": self.dimension,
            "Description": self.description,
            "Cause": self.cause,
            "StartTime": self.started,
            "StatusCode": self.status,
        }
        optional = {"EndTime": self.ended, "StatusMessage": self.message}
        shown |= {name: value for name, value in optional.items() if value is not None}
        return shown | ({"NotScaledReasons": [self.reason]} if self.reason else {})


class Activities:
    """The activities of all targets, in the order they began."""

    def __init__(self) -> None:
        self._all: list[Activity] = []

    def begin(self, resource_id: str, dimension: Dimension, count: int, cause: str, now: float) -> Activity:
        """The capacity is being set to `count`."""
        what = f"desired {_NOUNS[dimension]} to {count}."
        message = f"Successfully set {what} Waiting for change to be fulfilled by sagemaker."
        return self._add(Activity(resource_id, dimension, f"Setting {what}", cause, now, "InProgress", message))

    def end(self, activity: Activity, failure: str | None, now: float) -> None:
        """It has been set, or not."""
        waited = activity.message or ""
        activity.ended = now
        if failure is None:
            activity.status = "Successful"
            activity.message = waited.replace("Waiting for change to be", "Change successfully")
        else:
            activity.status = "Unfulfilled"
            activity.message = f"{waited.partition(' Waiting')[0]} Change was not fulfilled by sagemaker: {failure}"

    def refused(self, activity: Activity, failure: str, now: float) -> None:
        """The service did not accept the new capacity."""
        activity.status, activity.ended = "Failed", now
        said = activity.description.replace("Setting", "Failed to set", 1).rstrip(".")
        activity.message = f"{said}. Reason: {failure}"

    def bounds(self, resource_id: str, dimension: Dimension, bounds: tuple[int, int], name: str, now: float) -> None:
        """A scheduled action has set minimum and maximum."""
        said = f"min capacity to {bounds[0]} and max capacity to {bounds[1]}"
        cause = f"scheduled action name {name} was triggered"
        activity = Activity(resource_id, dimension, f"Setting {said}", cause, now, "Successful")
        activity.message, activity.ended = f"Successfully set {said}", now
        self._add(activity)

    def not_scaled(
        self, resource_id: str, dimension: Dimension, cause: str, reason: dict[str, object], now: float
    ) -> None:
        """An alarm asked for what cannot be. Said once, until something else is to be said of the target."""
        ours = (a for a in reversed(self._all) if (a.resource_id, a.dimension) == (resource_id, dimension))
        latest = next(ours, None)
        if latest is not None and latest.reason == reason:
            return
        text = "Attempting to scale due to alarm triggered"
        self._add(Activity(resource_id, dimension, text, cause, now, "Failed", reason=reason, ended=now))

    def describe(self, request: Document, now: float) -> Document:
        """DescribeScalingActivities."""
        resource, dimension = request.get("ResourceId"), request.get("ScalableDimension")
        found = [
            a
            for a in reversed(self._all)
            if resource in (None, a.resource_id)
            and dimension in (None, a.dimension)
            and a.started > now - KEPT_S
            and (a.reason is None or request.get("IncludeNotScaledActivities"))
        ]
        page, token = listing.page(
            found,
            key=lambda a: [-a.started, a.id],
            size=int(request.get("MaxResults", 50)),
            token=request.get("NextToken"),
        )
        return {"ScalingActivities": [a.shown() for a in page], **({"NextToken": token} if token else {})}

    def _add(self, activity: Activity) -> Activity:
        self._all.append(activity)
        del self._all[:-MOST_KEPT]
        return activity
