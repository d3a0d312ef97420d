"""SNS: topics, their policies, their subscriptions.

A topic that exists already under the same name is the same topic to SNS. A subscription that waits for its owner's word
(e-mail, HTTPS) stands as far as a deploy is concerned.
"""

from __future__ import annotations

import json

from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.rows.attributes import Attribute, Attributes, changed, gathered
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import mapping

_TOPIC = {
    "displayName": Attribute("DisplayName", ""),
    "deliveryPolicy": Attribute("DeliveryPolicy", ""),
    "kmsMasterKeyId": Attribute("KmsMasterKeyId", ""),
    "policy": Attribute("Policy", ""),
    "signatureVersion": Attribute("SignatureVersion", "1"),
    "tracingConfig": Attribute("TracingConfig", "PassThrough"),
    "contentBasedDeduplication": Attribute("ContentBasedDeduplication", False),
}
_TOPIC_AT_CREATION = {**_TOPIC, "fifoTopic": Attribute("FifoTopic", False)}
_SUBSCRIPTION = {
    "deliveryPolicy": Attribute("DeliveryPolicy", ""),
    "filterPolicy": Attribute("FilterPolicy", ""),
    "filterPolicyScope": Attribute("FilterPolicyScope", "MessageAttributes"),
    "rawMessageDelivery": Attribute("RawMessageDelivery", False),
    "redrivePolicy": Attribute("RedrivePolicy", ""),
    "subscriptionRoleArn": Attribute("SubscriptionRoleArn", ""),
}
_BY_ARN: Templates = {"TopicArn": "{id}"}


def _set_topic(instance: Instance) -> None:
    _set(instance, _TOPIC, "set_topic_attributes", "TopicArn")


def _set_subscription(instance: Instance) -> None:
    _set(instance, _SUBSCRIPTION, "set_subscription_attributes", "SubscriptionArn")


def _set(instance: Instance, known: Attributes, operation: str, resource: str) -> None:
    shape = instance.cloud.shape("sns", operation)
    for name, value in changed(known, instance).items():
        parameters = to_parameters({"attributeName": name, "attributeValue": value}, shape, {})
        instance.cloud.call("sns", operation, {resource: instance.id, **parameters})


def _owners_policy(instance: Instance) -> str:
    """What SNS gives a topic that nobody gave a policy: its account may do everything with it."""
    account = instance.cloud.account
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": [
            f"SNS:{action}"
            for action in (
                "GetTopicAttributes",
                "SetTopicAttributes",
                "AddPermission",
                "RemovePermission",
                "DeleteTopic",
                "Subscribe",
                "ListSubscriptionsByTopic",
                "Publish",
            )
        ],
        "Resource": instance.text("arn"),
        "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
    }
    return json.dumps({"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]})


def _pending(instance: Instance) -> bool:
    asked = {"SubscriptionArn": instance.id}
    found = mapping(instance.cloud.call("sns", "get_subscription_attributes", asked).get("Attributes"))
    return found.get("PendingConfirmation") == "true"


ROWS = (
    Row(
        type="aws:sns/topic:Topic",
        service="sns",
        create=Call("create_topic"),
        id="{out.TopicArn}",
        outputs={"name": "{in.name}", "arn": "{id}", "owner": "{account}"},
        auto_name="name",
        arrange=gathered(_TOPIC_AT_CREATION, only_true=frozenset({"fifoTopic"})),
        steps=(Step(tuple(_TOPIC), _set_topic, at="update", unset=_set_topic),),
        tags=Tags("tag_resource", "untag_resource", "ResourceArn"),
        identity=("name",),
        read=Call("get_topic_attributes", params=_BY_ARN),
        delete=Call("delete_topic", params=_BY_ARN),
    ),
    Row(
        type="aws:sns/topicPolicy:TopicPolicy",
        service="sns",
        create=Call(
            "set_topic_attributes",
            params={"AttributeName": lambda _: "Policy"},
            rename={"arn": "TopicArn", "policy": "AttributeValue"},
        ),
        id="{in.arn}",
        outputs={"owner": "{account}"},
        upsert=True,
        identity=("arn",),
        read=Call("get_topic_attributes", params=_BY_ARN),
        delete=Call(
            "set_topic_attributes",
            params={**_BY_ARN, "AttributeName": lambda _: "Policy", "AttributeValue": _owners_policy},
        ),
    ),
    Row(
        type="aws:sns/topicSubscription:TopicSubscription",
        service="sns",
        create=Call("subscribe", params={"ReturnSubscriptionArn": lambda _: True}, rename={"topic": "TopicArn"}),
        id="{out.SubscriptionArn}",
        outputs={"arn": "{id}", "ownerId": "{account}", "pendingConfirmation": _pending},
        arrange=gathered(_SUBSCRIPTION),
        steps=(Step(tuple(_SUBSCRIPTION), _set_subscription, at="update", unset=_set_subscription),),
        identity=("topic", "protocol", "endpoint"),
        local=("confirmationTimeoutInMinutes", "endpointAutoConfirms"),
        read=Call("get_subscription_attributes", params={"SubscriptionArn": "{id}"}),
        delete=Call("unsubscribe", params={"SubscriptionArn": "{id}"}),
    ),
)
