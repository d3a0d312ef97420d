"""Application Auto Scaling's targets as JSON and back: what outlives the process. Pure.

Kept are targets with their policies, the names of the alarms these made (the alarms themselves are CloudWatch's) and
scheduled actions. Not kept are activities, cooldowns and changes under way: after a restart capacities are brought
within bounds and alarms are evaluated anew, and a rate begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.scaling.demands import Place
from workbench.stack.sagemaker.scaling.policies import Policy, parsed
from workbench.stack.sagemaker.scaling.schedules import checked
from workbench.stack.sagemaker.scaling.targets import Target


def save(targets: Iterable[Target]) -> list[Document]:
    """Each target as a JSON document."""
    return [_saved(target) for target in targets]


def load(rows: Iterable[Document], moment: float) -> list[Target]:
    """The targets of `save`'s documents. `moment` is the emulated time."""
    return [_loaded(row, moment) for row in rows]


def _saved(target: Target) -> Document:
    place = target.place
    return {
        "place": [place.resource_id, place.endpoint, place.variant, place.dimension],
        "bounds": [target.minimum, target.maximum],
        "role": target.role,
        "created": target.created,
        "arn": target.arn,
        "suspended": dict(target.suspended),
        "tags": dict(target.tags),
        "policies": [
            {
                "name": policy.name,
                "arn": policy.arn,
                "created": policy.created,
                "kind": policy.kind,
                "configuration": policy.configuration,
                "alarms": [alarm.name for alarm in policy.alarms],
            }
            for policy in target.policies.values()
        ],
        "actions": [action.document for action in target.actions.values()],
    }


def _loaded(row: Document, moment: float) -> Target:
    minimum, maximum = row["bounds"]
    place = Place(*row["place"])
    target = Target(
        place, minimum, maximum, row["role"], row["created"], row["arn"], row["suspended"], dict(row["tags"])
    )
    target.policies = {p["name"]: _policy(p, target) for p in row["policies"]}
    target.actions = {a["ScheduledActionName"]: checked(dict(a), moment) for a in row["actions"]}
    return target


def _policy(row: dict[str, Any], target: Target) -> Policy:
    rule = parsed(row["configuration"], row["kind"], target, row["alarms"])
    return Policy(row["name"], row["arn"], row["created"], row["kind"], row["configuration"], rule)
