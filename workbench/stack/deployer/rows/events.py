"""EventBridge: rules and their targets.

PutTargets answers 200 for targets that it did not take and lists them: that is the deploy's error. A rule with targets
cannot be deleted; the engine removes the targets first, since they depend on it.
"""

from __future__ import annotations

from workbench.stack.deployer.errors import CloudError, ProgramError
from workbench.stack.deployer.row import Call, Instance, Row, Tags
from workbench.stack.deployer.rows.gone import listed
from workbench.stack.deployer.values import Properties, items, mapping

DEFAULT_BUS = "default"


def _bus(instance: Instance) -> object:
    return instance.inputs.get("eventBusName")


def _rule_id(instance: Instance) -> str:
    """As pulumi-aws has it: the bus is named where it is not the default one."""
    bus, name = instance.inputs.get("eventBusName"), instance.text("name")
    return name if bus in (None, DEFAULT_BUS) else f"{bus}/{name}"


def _state(inputs: Properties) -> Properties:
    """`isEnabled` is the older word for `state`."""
    rest = {name: value for name, value in inputs.items() if name != "isEnabled"}
    if inputs.get("isEnabled") is None:
        return rest
    if inputs.get("state") is not None:
        raise ProgramError("a rule has either state or isEnabled")
    return {**rest, "state": "ENABLED" if inputs["isEnabled"] else "DISABLED"}


def _target(inputs: Properties) -> Properties:
    """All that is not the rule's belongs to the target."""
    whose = ("rule", "eventBusName")
    names = {"targetId": "id", "sqsTarget": "sqsParameters"}
    target = {names.get(name, name): value for name, value in inputs.items() if name not in whose}
    transformer = mapping(target.get("inputTransformer"))
    if transformer:
        paths = {"inputPaths": "inputPathsMap"}
        target["inputTransformer"] = {paths.get(name, name): value for name, value in transformer.items()}
    return {**{name: inputs[name] for name in whose if name in inputs}, "targets": [target]}


def _target_id(instance: Instance) -> str:
    _taken(instance)
    return f"{instance.text('rule')}-{instance.text('targetId')}"


def _taken(instance: Instance) -> None:
    for failed in items(instance.answer.get("FailedEntries")):
        entry = mapping(failed)
        code = str(entry.get("ErrorCode") or "")
        raise CloudError("events.put_targets", f"{code}: {entry.get('ErrorMessage')}", code)


def _remove(instance: Instance) -> None:
    instance.cloud.call(
        "events",
        "remove_targets",
        {
            "Rule": instance.text("rule"),
            "Ids": [instance.text("targetId")],
            **({"EventBusName": _bus(instance)} if _bus(instance) else {}),
        },
    )


ROWS = (
    Row(
        type="aws:cloudwatch/eventRule:EventRule",
        service="events",
        create=Call("put_rule"),
        id=_rule_id,
        outputs={
            "name": "{in.name}",
            "arn": "{out.RuleArn}",
            "eventBusName": lambda i: _bus(i) or DEFAULT_BUS,
        },
        auto_name="name",
        arrange=_state,
        tags=Tags("tag_resource", "untag_resource", "ResourceARN"),
        upsert=True,
        identity=("name", "eventBusName"),
        local=("forceDestroy",),
        read=Call("describe_rule", params={"Name": "{in.name}", "EventBusName": _bus}),
        delete=Call(
            "delete_rule",
            params={"Name": "{in.name}", "EventBusName": _bus, "Force": lambda i: i.inputs.get("forceDestroy")},
        ),
    ),
    Row(
        type="aws:cloudwatch/eventTarget:EventTarget",
        service="events",
        create=Call("put_targets"),
        id=_target_id,
        auto_name="targetId",
        arrange=_target,
        upsert=True,
        identity=("rule", "eventBusName", "targetId"),
        local=("forceDestroy",),
        settle=_taken,
        read=listed(
            "events",
            "list_targets_by_rule",
            lambda i: {"Rule": i.text("rule"), **({"EventBusName": _bus(i)} if _bus(i) else {})},
            "Targets",
            "Id",
            lambda i: i.text("targetId"),
        ),
        delete=_remove,
    ),
)
