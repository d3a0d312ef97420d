"""Firehose: delivery streams to S3. Destination and encryption change in place; the name is fixed.

Other destinations than `extended_s3` are refused: none of ours has one, and the emulated ones deliver to S3 only.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.errors import BrokenError, CloudError, ProgramError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import Properties, items, mapping

READY_LIMIT_S = 600.0
POLL_S = 0.2
DESTINATION = "extended_s3"

_STREAM: Templates = {"DeliveryStreamName": "{id}"}


def _create(inputs: Properties) -> Properties:
    if inputs.get("destination") != DESTINATION:
        raise ProgramError(
            f"a delivery stream's destination is {DESTINATION} offline, not {inputs.get('destination')!r}"
        )
    left_out = {"destination", "extendedS3Configuration", "serverSideEncryption"}
    arranged = {name: value for name, value in inputs.items() if name not in left_out}
    arranged["extendedS3DestinationConfiguration"] = _destination(mapping(inputs.get("extendedS3Configuration")))
    encryption = mapping(inputs.get("serverSideEncryption"))
    if encryption.get("enabled"):
        arranged["deliveryStreamEncryptionConfigurationInput"] = _encryption(encryption)
    return arranged


def _destination(given: Properties) -> dict[str, object]:
    """pulumi-aws puts side by side what the API nests."""
    nested = {"bufferingSize", "bufferingInterval", "kmsKeyArn", "dynamicPartitioningConfiguration"}
    arranged = {name: value for name, value in given.items() if name not in nested}
    hints = {"bufferingSize": "sizeInMbs", "bufferingInterval": "intervalInSeconds"}
    if any(given.get(name) is not None for name in hints):
        arranged["bufferingHints"] = {hints[name]: given[name] for name in hints if given.get(name) is not None}
    if given.get("kmsKeyArn") is not None:
        arranged["encryptionConfiguration"] = {"kmsEncryptionConfig": {"awskmsKeyArn": given["kmsKeyArn"]}}
    partitioning = mapping(given.get("dynamicPartitioningConfiguration"))
    if partitioning:
        retry = partitioning.pop("retryDuration", None)
        options = {} if retry is None else {"retryOptions": {"durationInSeconds": retry}}
        arranged["dynamicPartitioningConfiguration"] = {**partitioning, **options}
    return arranged


def _encryption(given: Properties) -> dict[str, object]:
    named = {"keyType": given.get("keyType") or "AWS_OWNED_CMK", "keyArn": given.get("keyArn")}
    return {name: value for name, value in named.items() if value is not None}


def _move(instance: Instance) -> None:
    """Changes the destination: by its id, and only of the version that was seen."""
    found = _describe(instance)
    destination = mapping(items(found["Destinations"])[0])
    shape = instance.cloud.shape("firehose", "update_destination")
    wanted = _destination(mapping(instance.inputs.get("extendedS3Configuration")))
    instance.cloud.call(
        "firehose",
        "update_destination",
        {
            "DeliveryStreamName": instance.id,
            "CurrentDeliveryStreamVersionId": found["VersionId"],
            "DestinationId": destination["DestinationId"],
            **to_parameters({"extendedS3DestinationUpdate": wanted}, shape, {}),
        },
    )


def _encrypt(instance: Instance) -> None:
    given, stream = mapping(instance.inputs.get("serverSideEncryption")), {"DeliveryStreamName": instance.id}
    if not given.get("enabled"):
        instance.cloud.call("firehose", "stop_delivery_stream_encryption", stream)
        return
    shape = instance.cloud.shape("firehose", "start_delivery_stream_encryption")
    wanted = to_parameters({"deliveryStreamEncryptionConfigurationInput": _encryption(given)}, shape, {})
    instance.cloud.call("firehose", "start_delivery_stream_encryption", {**stream, **wanted})


def _describe(instance: Instance) -> dict[str, object]:
    answer = instance.cloud.call("firehose", "describe_delivery_stream", {"DeliveryStreamName": instance.id})
    return mapping(answer["DeliveryStreamDescription"])


def _await(instance: Instance) -> None:
    deadline = time.monotonic() + READY_LIMIT_S
    while (status := _describe(instance).get("DeliveryStreamStatus")) != "ACTIVE":
        if status == "CREATING_FAILED":
            raise BrokenError("firehose.create_delivery_stream", f"{instance.id} is {status}")
        if time.monotonic() > deadline:
            raise CloudError(
                "firehose.describe_delivery_stream", f"{instance.id} is {status} after {READY_LIMIT_S:.0f} s"
            )
        instance.cloud.pause(POLL_S)


def _delete(instance: Instance) -> None:
    instance.cloud.call("firehose", "delete_delivery_stream", {"DeliveryStreamName": instance.id})
    deadline = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < deadline:
        _describe(instance)  # ends with "not found"
        instance.cloud.pause(POLL_S)
    raise CloudError("firehose.delete_delivery_stream", f"{instance.id} is still there after {READY_LIMIT_S:.0f} s")


ROWS = (
    Row(
        type="aws:kinesis/firehoseDeliveryStream:FirehoseDeliveryStream",
        service="firehose",
        create=Call(
            "create_delivery_stream",
            params={"DeliveryStreamType": lambda _: "DirectPut"},
            rename={"name": "DeliveryStreamName"},
        ),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "arn:aws:firehose:{region}:{account}:deliverystream/{in.name}"},
        auto_name="name",
        arrange=_create,
        steps=(
            Step(("extendedS3Configuration",), _move, at="update"),
            Step(("serverSideEncryption",), _encrypt, at="update", unset=_encrypt),
        ),
        tags=Tags("tag_delivery_stream", "untag_delivery_stream", "DeliveryStreamName", "{id}"),
        identity=("name",),
        settle=_await,
        read=Call("describe_delivery_stream", params=_STREAM),
        delete=_delete,
    ),
)
