"""Lambda: functions, aliases and permissions.

An update never touches a published version, so what is behind an alias keeps serving: code, then configuration go to
`$LATEST`, each followed by a wait until Lambda took it, then a new version is published, and only the alias, a resource
of its own, moves callers over. Nothing is published when nothing changed. Versions stay until the function is deleted.
"""

from __future__ import annotations

import json
import time

from workbench.stack.deployer.errors import BrokenError, CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.values import Properties, items, mapping

UPDATE_LIMIT_S = 300.0
POLL_S = 0.2

_CODE = ("code", "sourceCodeHash", "s3Bucket", "s3Key", "s3ObjectVersion", "imageUri", "architectures")
_SETTINGS = (
    "description",
    "environment",
    "ephemeralStorage",
    "deadLetterConfig",
    "fileSystemConfig",
    "handler",
    "imageConfig",
    "kmsKeyArn",
    "layers",
    "loggingConfig",
    "memorySize",
    "role",
    "runtime",
    "snapStart",
    "timeout",
    "tracingConfig",
    "vpcConfig",
)
_FUNCTION: Templates = {"FunctionName": "{id}"}
_INVOKE = "arn:aws:apigateway:{region}:lambda:path/2015-03-31/functions"


def _with_code(inputs: Properties) -> Properties:
    """`create_function` wants the code in a member of its own."""
    members = {
        "code": "zipFile",
        "s3Bucket": "s3Bucket",
        "s3Key": "s3Key",
        "s3ObjectVersion": "s3ObjectVersion",
        "imageUri": "imageUri",
    }
    code = {member: inputs[name] for name, member in members.items() if inputs.get(name) is not None}
    left_out = {*members, "sourceCodeHash"}
    return {**{name: value for name, value in inputs.items() if name not in left_out}, "code": code}


def _await(instance: Instance) -> None:
    deadline = time.monotonic() + UPDATE_LIMIT_S
    while True:
        found = instance.cloud.call("lambda", "get_function_configuration", {"FunctionName": instance.id})
        state, update = found.get("State", "Active"), found.get("LastUpdateStatus", "Successful")
        if state == "Failed":
            raise BrokenError("lambda.create_function", str(found.get("StateReason") or "the function failed to start"))
        if update == "Failed":
            raise CloudError("lambda.update_function", str(found.get("LastUpdateStatusReason") or "the update failed"))
        if state != "Pending" and update != "InProgress":
            return
        if time.monotonic() > deadline:
            raise CloudError("lambda.get_function_configuration", f"not ready after {UPDATE_LIMIT_S:.0f} s ({state})")
        instance.cloud.pause(POLL_S)


def _reserve(instance: Instance) -> None:
    count = instance.inputs.get("reservedConcurrentExecutions")
    if count is None or int(str(count).split(".")[0]) < 0:
        instance.cloud.call("lambda", "delete_function_concurrency", {"FunctionName": instance.id})
        return
    reserved = {"ReservedConcurrentExecutions": int(str(count).split(".")[0])}
    instance.cloud.call("lambda", "put_function_concurrency", {"FunctionName": instance.id, **reserved})


def _publish(instance: Instance) -> None:
    if instance.inputs.get("publish"):
        instance.answer = instance.cloud.call("lambda", "publish_version", {"FunctionName": instance.id})


def _read_permission(instance: Instance) -> None:
    qualifier = instance.inputs.get("qualifier")
    parameters = {"FunctionName": instance.text("function"), **({"Qualifier": qualifier} if qualifier else {})}
    policy = json.loads(str(instance.cloud.call("lambda", "get_policy", parameters)["Policy"]))
    if all(mapping(statement).get("Sid") != instance.id for statement in items(policy.get("Statement"))):
        raise CloudError("lambda.get_policy", f"no statement {instance.id}", "NotFound")


ROWS = (
    Row(
        type="aws:lambda/function:Function",
        service="lambda",
        create=Call("create_function", rename={"name": "FunctionName"}),
        id="{in.name}",
        outputs={
            "name": "{in.name}",
            "arn": "arn:aws:lambda:{region}:{account}:function:{in.name}",
            "version": "{out.Version}",
            "qualifiedArn": "{own.arn}:{own.version}",
            "invokeArn": _INVOKE + "/{own.arn}/invocations",
            "qualifiedInvokeArn": _INVOKE + "/{own.qualifiedArn}/invocations",
            "lastModified": "{out.LastModified}",
            "codeSha256": "{out.CodeSha256}",
            "sourceCodeHash": "{out.CodeSha256}",
            "sourceCodeSize": "{out.CodeSize}",
        },
        auto_name="name",
        arrange=_with_code,
        steps=(
            Step(
                _CODE,
                Call("update_function_code", params=_FUNCTION, rename={"code": "ZipFile", "sourceCodeHash": None}),
                at="update",
            ),
            Step(_CODE, _await, at="update"),
            Step(_SETTINGS, Call("update_function_configuration", params=_FUNCTION), at="update"),
            Step((*_CODE, *_SETTINGS), _await, at="update"),
            Step((*_CODE, *_SETTINGS, "publish"), _publish, at="update"),
            Step(("reservedConcurrentExecutions",), _reserve, unset=_reserve),
        ),
        tags=Tags("tag_resource", "untag_resource", "Resource"),
        identity=("name",),
        local=("skipDestroy", "useResourceTimeoutForPropagation"),
        settle=_await,
        read=Call("get_function_configuration", params=_FUNCTION),
        delete=Call("delete_function", params=_FUNCTION),
    ),
    Row(
        type="aws:lambda/alias:Alias",
        service="lambda",
        create=Call("create_alias"),
        id="{out.AliasArn}",
        outputs={"arn": "{out.AliasArn}", "invokeArn": _INVOKE + "/{own.arn}/invocations"},
        steps=(
            Step(
                ("functionVersion", "description", "routingConfig"),
                Call("update_alias", params={"FunctionName": "{in.functionName}", "Name": "{in.name}"}),
                at="update",
            ),
        ),
        identity=("functionName", "name"),
        read=Call("get_alias", params={"FunctionName": "{in.functionName}", "Name": "{in.name}"}),
        delete=Call("delete_alias", params={"FunctionName": "{in.functionName}", "Name": "{in.name}"}),
    ),
    Row(
        type="aws:lambda/permission:Permission",
        service="lambda",
        create=Call("add_permission", rename={"function": "FunctionName"}),
        id="{in.statementId}",
        outputs={"statementId": "{in.statementId}"},
        auto_name="statementId",
        identity=("function", "statementId", "qualifier"),
        read=_read_permission,
        delete=Call(
            "remove_permission",
            params={
                "FunctionName": "{in.function}",
                "StatementId": "{in.statementId}",
                "Qualifier": lambda i: i.inputs.get("qualifier"),
            },
        ),
    ),
)
