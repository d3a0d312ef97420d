"""SQS: queues, and the three settings that pulumi-aws also has as resources of their own.

A queue's URL is its id, as in pulumi-aws. Whether it is a FIFO queue is fixed; everything else changes in place.
"""

from __future__ import annotations

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.rows.attributes import Attribute, changed, gathered
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import mapping

_SETTINGS = {
    "delaySeconds": Attribute("DelaySeconds", 0),
    "maxMessageSize": Attribute("MaximumMessageSize", 262_144),
    "messageRetentionSeconds": Attribute("MessageRetentionPeriod", 345_600),
    "receiveWaitTimeSeconds": Attribute("ReceiveMessageWaitTimeSeconds", 0),
    "visibilityTimeoutSeconds": Attribute("VisibilityTimeout", 30),
    "kmsMasterKeyId": Attribute("KmsMasterKeyId", ""),
    "kmsDataKeyReusePeriodSeconds": Attribute("KmsDataKeyReusePeriodSeconds", 300),
    "sqsManagedSseEnabled": Attribute("SqsManagedSseEnabled", True),
    "policy": Attribute("Policy", ""),
    "redrivePolicy": Attribute("RedrivePolicy", ""),
    "redriveAllowPolicy": Attribute("RedriveAllowPolicy", ""),
    "contentBasedDeduplication": Attribute("ContentBasedDeduplication", False),
    "deduplicationScope": Attribute("DeduplicationScope", "queue"),
    "fifoThroughputLimit": Attribute("FifoThroughputLimit", "perQueue"),
}
_AT_CREATION = {**_SETTINGS, "fifoQueue": Attribute("FifoQueue", False)}
_QUEUE: Templates = {"QueueUrl": "{id}"}


def _set(instance: Instance) -> None:
    shape = instance.cloud.shape("sqs", "set_queue_attributes")
    attributes = to_parameters({"attributes": changed(_SETTINGS, instance)}, shape, {})
    instance.cloud.call("sqs", "set_queue_attributes", {"QueueUrl": instance.id, **attributes})


def _setting(type_: str, name: str) -> Row:
    """One setting of a queue as a resource: put whole, known by its queue, empty when it is gone."""
    attribute = _SETTINGS[name]

    def read(instance: Instance) -> None:
        asked = {"QueueUrl": instance.text("queueUrl"), "AttributeNames": [attribute.name]}
        found = mapping(instance.cloud.call("sqs", "get_queue_attributes", asked).get("Attributes"))
        if not found.get(attribute.name):
            raise CloudError("sqs.get_queue_attributes", f"{asked['QueueUrl']} has no {attribute.name}", "NotFound")

    return Row(
        type=type_,
        service="sqs",
        create=Call("set_queue_attributes"),
        id="{in.queueUrl}",
        arrange=gathered({name: attribute}),
        upsert=True,
        identity=("queueUrl",),
        read=read,
        delete=Call(
            "set_queue_attributes",
            params={"QueueUrl": "{in.queueUrl}", "Attributes": lambda _: {attribute.name: attribute.default}},
        ),
    )


ROWS = (
    Row(
        type="aws:sqs/queue:Queue",
        service="sqs",
        create=Call("create_queue", rename={"name": "QueueName"}),
        id="{out.QueueUrl}",
        outputs={"name": "{in.name}", "url": "{id}", "arn": "arn:aws:sqs:{region}:{account}:{in.name}"},
        auto_name="name",
        arrange=gathered(_AT_CREATION, only_true=frozenset({"fifoQueue"})),
        steps=(Step(tuple(_SETTINGS), _set, at="update", unset=_set),),
        tags=Tags("tag_queue", "untag_queue", "QueueUrl", "{id}"),
        identity=("name",),
        read=Call("get_queue_attributes", params={**_QUEUE, "AttributeNames": lambda _: ["QueueArn"]}),
        delete=Call("delete_queue", params=_QUEUE),
    ),
    _setting("aws:sqs/queuePolicy:QueuePolicy", "policy"),
    _setting("aws:sqs/redrivePolicy:RedrivePolicy", "redrivePolicy"),
    _setting("aws:sqs/redriveAllowPolicy:RedriveAllowPolicy", "redriveAllowPolicy"),
)
