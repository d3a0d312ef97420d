"""Step Functions: state machines. Definition, role, logging and tracing change in place; name and type are fixed.

Deletion ends when running executions have: the deploy waits, so that the name is free.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import Properties, mapping

GONE_LIMIT_S = 300.0
POLL_S = 0.2

_MACHINE: Templates = {"stateMachineArn": "{id}"}
_IN_PLACE = ("definition", "roleArn", "loggingConfiguration", "tracingConfiguration", "encryptionConfiguration")


def _logging(inputs: Properties) -> Properties:
    """pulumi-aws names one log group; the API has a list of destinations. ARNs end with `:*` in both."""
    given = mapping(inputs.get("loggingConfiguration"))
    if not given:
        return inputs
    group = given.get("logDestination")
    logging: dict[str, object] = {name: value for name, value in given.items() if name != "logDestination"}
    if group is not None:
        logging["destinations"] = [{"cloudWatchLogsLogGroup": {"logGroupArn": group}}]
    return {**inputs, "loggingConfiguration": logging}


def _update(instance: Instance) -> None:
    taken = {name: instance.inputs[name] for name in _IN_PLACE if instance.inputs.get(name) is not None}
    off: dict[str, object] = {}
    if "loggingConfiguration" in instance.changed and "loggingConfiguration" not in taken:
        off["loggingConfiguration"] = {"level": "OFF"}
    if "tracingConfiguration" in instance.changed and "tracingConfiguration" not in taken:
        off["tracingConfiguration"] = {"enabled": False}
    shape = instance.cloud.shape("stepfunctions", "update_state_machine")
    parameters = to_parameters(_logging({**taken, **off}), shape, {})
    answer = instance.cloud.call("stepfunctions", "update_state_machine", {"stateMachineArn": instance.id} | parameters)
    instance.answer = {**instance.answer, **answer}


def _delete(instance: Instance) -> None:
    instance.cloud.call("stepfunctions", "delete_state_machine", {"stateMachineArn": instance.id})
    deadline = time.monotonic() + GONE_LIMIT_S
    while time.monotonic() < deadline:
        asked = {"stateMachineArn": instance.id}
        instance.cloud.call("stepfunctions", "describe_state_machine", asked)  # ends with "does not exist"
        instance.cloud.pause(POLL_S)
    raise CloudError("stepfunctions.delete_state_machine", f"{instance.id} is still there: executions run")


ROWS = (
    Row(
        type="aws:sfn/stateMachine:StateMachine",
        service="stepfunctions",
        create=Call("create_state_machine"),
        id="{out.stateMachineArn}",
        outputs={
            "name": "{in.name}",
            "arn": "{id}",
            "status": lambda _: "ACTIVE",
            "creationDate": lambda i: str(i.answer["creationDate"]) if "creationDate" in i.answer else None,
        },
        auto_name="name",
        arrange=_logging,
        steps=(Step(_IN_PLACE, _update, at="update", unset=_update),),
        tags=Tags("tag_resource", "untag_resource", "resourceArn", keys="tagKeys"),
        identity=("name",),
        read=Call("describe_state_machine", params=_MACHINE),
        delete=_delete,
    ),
)
