"""EventBridge Scheduler: groups and schedules. A schedule is put whole; its name and group are fixed.

Deleting a group deletes its schedules, and takes the service a while: the deploy waits, so that its name is free.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates

DEFAULT_GROUP = "default"
GONE_LIMIT_S = 300.0
POLL_S = 0.2

_GROUP: Templates = {"Name": "{id}"}
_SCHEDULE: Templates = {"Name": "{in.name}", "GroupName": lambda i: i.inputs.get("groupName")}
_WHOLE = (
    "description",
    "endDate",
    "flexibleTimeWindow",
    "kmsKeyArn",
    "scheduleExpression",
    "scheduleExpressionTimezone",
    "startDate",
    "state",
    "target",
    "actionAfterCompletion",
)


def _group(instance: Instance) -> str:
    return str(instance.inputs.get("groupName") or DEFAULT_GROUP)


def _delete_group(instance: Instance) -> None:
    instance.cloud.call("scheduler", "delete_schedule_group", {"Name": instance.id})
    deadline = time.monotonic() + GONE_LIMIT_S
    while time.monotonic() < deadline:
        instance.cloud.call("scheduler", "get_schedule_group", {"Name": instance.id})  # ends with "not found"
        instance.cloud.pause(POLL_S)
    raise CloudError("scheduler.delete_schedule_group", f"{instance.id} is still there after {GONE_LIMIT_S:.0f} s")


ROWS = (
    Row(
        type="aws:scheduler/scheduleGroup:ScheduleGroup",
        service="scheduler",
        create=Call("create_schedule_group"),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "{out.ScheduleGroupArn}", "state": lambda _: "ACTIVE"},
        auto_name="name",
        tags=Tags("tag_resource", "untag_resource", "ResourceArn"),
        identity=("name",),
        read=Call("get_schedule_group", params=_GROUP),
        delete=_delete_group,
    ),
    Row(
        type="aws:scheduler/schedule:Schedule",
        service="scheduler",
        create=Call("create_schedule"),
        id=lambda i: f"{_group(i)}/{i.text('name')}",
        outputs={"name": "{in.name}", "groupName": _group, "arn": "{out.ScheduleArn}"},
        auto_name="name",
        steps=(Step(_WHOLE, Call("update_schedule", take=_WHOLE, params=_SCHEDULE), at="update"),),
        identity=("name", "groupName"),
        read=Call("get_schedule", params=_SCHEDULE),
        delete=Call("delete_schedule", params=_SCHEDULE),
    ),
)
