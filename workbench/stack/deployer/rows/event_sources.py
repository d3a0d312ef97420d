"""Lambda's asynchronous side: what feeds a function (event source mappings), and what becomes of its failed events.

A mapping has a life of its own (Creating, Updating, Disabling, Deleting): each change waits until it is at rest, since
Lambda refuses the next one before. Which source it reads, and where it began, are fixed.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates

REST_LIMIT_S = 300.0
POLL_S = 0.2

_BY_UUID: Templates = {"UUID": "{id}"}
_FUNCTION: Templates = {"FunctionName": "{in.functionName}", "Qualifier": lambda i: i.inputs.get("qualifier")}
_IN_PLACE = (
    "batchSize",
    "bisectBatchOnFunctionError",
    "destinationConfig",
    "enabled",
    "filterCriteria",
    "functionName",
    "functionResponseTypes",
    "kmsKeyArn",
    "maximumBatchingWindowInSeconds",
    "maximumRecordAgeInSeconds",
    "maximumRetryAttempts",
    "metricsConfig",
    "parallelizationFactor",
    "provisionedPollerConfig",
    "scalingConfig",
    "tumblingWindowInSeconds",
)


def _describe(instance: Instance) -> dict[str, object]:
    return instance.cloud.call("lambda", "get_event_source_mapping", {"UUID": instance.id})


def _await(instance: Instance) -> None:
    deadline = time.monotonic() + REST_LIMIT_S
    while (state := _describe(instance).get("State", "Enabled")) not in ("Enabled", "Disabled"):
        if time.monotonic() > deadline:
            raise CloudError("lambda.get_event_source_mapping", f"{instance.id} is {state} after {REST_LIMIT_S:.0f} s")
        instance.cloud.pause(POLL_S)


def _delete(instance: Instance) -> None:
    """Deletes the mapping and waits until it is gone: until then it may still hand out events."""
    instance.cloud.call("lambda", "delete_event_source_mapping", {"UUID": instance.id})
    deadline = time.monotonic() + REST_LIMIT_S
    while time.monotonic() < deadline:
        _describe(instance)  # ends with "not found"
        instance.cloud.pause(POLL_S)
    raise CloudError("lambda.delete_event_source_mapping", f"{instance.id} is still there after {REST_LIMIT_S:.0f} s")


ROWS = (
    Row(
        type="aws:lambda/eventSourceMapping:EventSourceMapping",
        service="lambda",
        create=Call("create_event_source_mapping"),
        id="{out.UUID}",
        outputs={
            "uuid": "{id}",
            "arn": "arn:aws:lambda:{region}:{account}:event-source-mapping:{id}",
            "functionArn": "{out.FunctionArn}",
        },
        steps=(Step(_IN_PLACE, Call("update_event_source_mapping", params=_BY_UUID), at="update"),),
        tags=Tags("tag_resource", "untag_resource", "Resource"),
        local=("useResourceTimeoutForPropagation",),
        settle=_await,
        read=Call("get_event_source_mapping", params=_BY_UUID),
        delete=_delete,
    ),
    Row(
        type="aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig",
        service="lambda",
        create=Call("put_function_event_invoke_config"),
        id=lambda i: ":".join([i.text("functionName"), *([i.text("qualifier")] if i.inputs.get("qualifier") else [])]),
        upsert=True,
        identity=("functionName", "qualifier"),
        read=Call("get_function_event_invoke_config", params=_FUNCTION),
        delete=Call("delete_function_event_invoke_config", params=_FUNCTION),
    ),
)
