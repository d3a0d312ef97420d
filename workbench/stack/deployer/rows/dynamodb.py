"""DynamoDB tables. The table's own keys are fixed; indexes, recovery, expiry, encryption, capacity, protection change.

Global indexes come and go one at a time, as the API wants it, and a changed one goes before it comes anew; each waits
until the table and its indexes are active. What an attribute is (text, number) cannot change while a key uses it.
The cloud refuses to delete a table with deletion protection; the deployer does not take it off on its own.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.errors import CloudError, ProgramError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import Properties, items, mapping

ACTIVE_LIMIT_S = 300.0
POLL_S = 0.2

_TABLE: Templates = {"TableName": "{id}"}


def _create(inputs: Properties) -> Properties:
    """Key schema and attribute definitions in the API's form."""
    arranged = {name: value for name, value in inputs.items() if name not in _ARRANGED}
    keys = [("hashKey", "HASH"), ("rangeKey", "RANGE")]
    arranged["keySchema"] = [{"attributeName": inputs[k], "keyType": t} for k, t in keys if inputs.get(k) is not None]
    arranged["attributeDefinitions"] = _definitions(inputs)
    if indexes := _indexes(inputs):
        arranged["globalSecondaryIndexes"] = list(indexes.values())
    if inputs.get("readCapacity") is not None:
        arranged["provisionedThroughput"] = _throughput(inputs)
    if inputs.get("serverSideEncryption") is not None:
        arranged["sseSpecification"] = _sse(inputs)
    if inputs.get("streamEnabled") is not None:
        arranged["streamSpecification"] = {
            name: inputs[name] for name in ("streamEnabled", "streamViewType") if inputs.get(name) is not None
        }
    return arranged


_ARRANGED = {
    "hashKey",
    "rangeKey",
    "attributes",
    "globalSecondaryIndexes",
    "readCapacity",
    "writeCapacity",
    "serverSideEncryption",
    "streamEnabled",
    "streamViewType",
}


def _definitions(inputs: Properties) -> list[object]:
    definitions = [mapping(item) for item in items(inputs.get("attributes"))]
    return [{"attributeName": d["name"], "attributeType": d["type"]} for d in definitions]


def _indexes(inputs: Properties) -> dict[str, dict[str, object]]:
    """Global indexes by name, in the API's form. Keys are given as a schema, or by pulumi-aws's older pair of names."""
    return {str(mapping(item)["name"]): _index(mapping(item)) for item in items(inputs.get("globalSecondaryIndexes"))}


def _index(given: Properties) -> dict[str, object]:
    left_out = {"name", "hashKey", "rangeKey", "keySchemas", "projectionType", "nonKeyAttributes"}
    left_out |= {"readCapacity", "writeCapacity"}
    index = {name: value for name, value in given.items() if name not in left_out}
    pair = [("hashKey", "HASH"), ("rangeKey", "RANGE")]
    index["indexName"] = given["name"]
    index["keySchema"] = given.get("keySchemas") or [
        {"attributeName": given[name], "keyType": kind} for name, kind in pair if given.get(name) is not None
    ]
    projection = {name: given[name] for name in ("projectionType", "nonKeyAttributes") if given.get(name) is not None}
    index["projection"] = projection
    if given.get("readCapacity") is not None:
        index["provisionedThroughput"] = _throughput(given)
    return index


def _reindex(instance: Instance) -> None:
    """Brings the global indexes to what is wanted. What an earlier, broken off run did already is not done again."""
    before, wanted = _indexes(instance.before), _indexes(instance.inputs)
    described = mapping(instance.cloud.call("dynamodb", "describe_table", {"TableName": instance.id})["Table"])
    found = {str(mapping(item)["IndexName"]) for item in items(described.get("GlobalSecondaryIndexes"))}
    types = {str(mapping(d)["attributeName"]): mapping(d)["attributeType"] for d in _definitions(instance.inputs)}
    for item in items(described.get("AttributeDefinitions")):
        name, kind = mapping(item)["AttributeName"], mapping(item)["AttributeType"]
        if types.get(str(name), kind) != kind:
            raise ProgramError(f"attribute {name} is a key of type {kind}: it cannot become {types[str(name)]}")
    for name in sorted(found):
        if name not in wanted or (name in before and before[name] != wanted[name]):
            _change_index(instance, {"delete": {"indexName": name}})
            found.discard(name)
    for name in sorted(wanted.keys() - found):
        _change_index(instance, {"create": wanted[name]})


def _change_index(instance: Instance, update: Properties) -> None:
    wanted = {"attributeDefinitions": _definitions(instance.inputs), "globalSecondaryIndexUpdates": [update]}
    parameters = to_parameters(wanted, instance.cloud.shape("dynamodb", "update_table"), {})
    instance.cloud.call("dynamodb", "update_table", {"TableName": instance.id, **parameters})
    _await(instance)


def _throughput(inputs: Properties) -> dict[str, object]:
    return {"readCapacityUnits": inputs.get("readCapacity"), "writeCapacityUnits": inputs.get("writeCapacity")}


def _sse(inputs: Properties) -> dict[str, object]:
    given = mapping(inputs.get("serverSideEncryption"))
    key = given.get("kmsKeyArn")
    specification: dict[str, object] = {"enabled": bool(given.get("enabled"))}
    if key is not None:
        specification |= {"sseType": "KMS", "kmsMasterKeyId": key}
    return specification


def _update(instance: Instance) -> None:
    changed, parameters = instance.changed, dict[str, object]()
    if "deletionProtectionEnabled" in changed:
        parameters["DeletionProtectionEnabled"] = bool(instance.inputs.get("deletionProtectionEnabled"))
    if changed & {"billingMode", "readCapacity", "writeCapacity"}:
        parameters["BillingMode"] = instance.inputs.get("billingMode") or "PROVISIONED"
        if instance.inputs.get("readCapacity") is not None:
            units = _throughput(instance.inputs)
            parameters["ProvisionedThroughput"] = {
                name[0].upper() + name[1:]: int(str(value).split(".")[0]) for name, value in units.items()
            }
    if "serverSideEncryption" in changed:
        sse = _sse(instance.inputs)
        names = {"enabled": "Enabled", "sseType": "SSEType", "kmsMasterKeyId": "KMSMasterKeyId"}
        parameters["SSESpecification"] = {names[name]: value for name, value in sse.items()}
    instance.cloud.call("dynamodb", "update_table", {"TableName": instance.id, **parameters})
    _await(instance)


def _expire(instance: Instance) -> None:
    wanted = mapping(instance.inputs.get("ttl") or instance.before.get("ttl"))
    enabled = bool(mapping(instance.inputs.get("ttl")).get("enabled", bool(instance.inputs.get("ttl"))))
    _await(instance)
    found = mapping(instance.cloud.call("dynamodb", "describe_time_to_live", {"TableName": instance.id}))
    status = mapping(found.get("TimeToLiveDescription")).get("TimeToLiveStatus", "DISABLED")
    if enabled == (status in ("ENABLED", "ENABLING")):
        return  # the API refuses to set what is set already
    specification = {"Enabled": enabled, "AttributeName": wanted.get("attributeName")}
    parameters = {"TableName": instance.id, "TimeToLiveSpecification": specification}
    instance.cloud.call("dynamodb", "update_time_to_live", parameters)


def _recover(instance: Instance) -> None:
    _await(instance)
    enabled = bool(mapping(instance.inputs.get("pointInTimeRecovery")).get("enabled"))
    specification = {"PointInTimeRecoveryEnabled": enabled}
    parameters = {"TableName": instance.id, "PointInTimeRecoverySpecification": specification}
    instance.cloud.call("dynamodb", "update_continuous_backups", parameters)


def _await(instance: Instance) -> None:
    deadline = time.monotonic() + ACTIVE_LIMIT_S
    while True:
        answer = instance.cloud.call("dynamodb", "describe_table", {"TableName": instance.id})
        table = mapping(answer["Table"])
        indexes = [mapping(item) for item in items(table.get("GlobalSecondaryIndexes"))]
        status = table.get("TableStatus")
        if status == "ACTIVE" and all(index.get("IndexStatus", "ACTIVE") == "ACTIVE" for index in indexes):
            return
        if time.monotonic() > deadline:
            raise CloudError("dynamodb.describe_table", f"{instance.id} is {status} after {ACTIVE_LIMIT_S:.0f} s")
        instance.cloud.pause(POLL_S)


def _delete(instance: Instance) -> None:
    """Deletes the table and waits until it is gone, so that its name is free."""
    instance.cloud.call("dynamodb", "delete_table", {"TableName": instance.id})
    deadline = time.monotonic() + ACTIVE_LIMIT_S
    while time.monotonic() < deadline:
        instance.cloud.call("dynamodb", "describe_table", {"TableName": instance.id})  # ends with "not found"
        instance.cloud.pause(POLL_S)
    raise CloudError("dynamodb.delete_table", f"{instance.id} is still there after {ACTIVE_LIMIT_S:.0f} s")


ROWS = (
    Row(
        type="aws:dynamodb/table:Table",
        service="dynamodb",
        create=Call("create_table", rename={"name": "TableName"}),
        id="{in.name}",
        outputs={
            "name": "{in.name}",
            "arn": "{out.TableDescription.TableArn}",
            "streamArn": lambda i: mapping(i.answer.get("TableDescription")).get("LatestStreamArn"),
            "streamLabel": lambda i: mapping(i.answer.get("TableDescription")).get("LatestStreamLabel"),
        },
        auto_name="name",
        arrange=_create,
        steps=(
            Step(
                ("deletionProtectionEnabled", "billingMode", "readCapacity", "writeCapacity", "serverSideEncryption"),
                _update,
                at="update",
                unset=_update,
            ),
            Step(("globalSecondaryIndexes", "attributes"), _reindex, at="update", unset=_reindex),
            Step(("ttl",), _expire, unset=_expire),
            Step(("pointInTimeRecovery",), _recover, unset=_recover),
        ),
        tags=Tags("tag_resource", "untag_resource", "ResourceArn"),
        identity=("name",),
        settle=_await,
        read=Call("describe_table", params=_TABLE),
        delete=_delete,
    ),
)
