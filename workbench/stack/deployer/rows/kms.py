"""KMS. A key cannot be deleted, only scheduled for it: from then on it counts as gone."""

from __future__ import annotations

from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags
from workbench.stack.deployer.values import mapping

DEFAULT_WINDOW_DAYS = 30

_BY_ID = {"KeyId": "{id}"}


def _read_key(instance: Instance) -> None:
    state = mapping(instance.cloud.call("kms", "describe_key", {"KeyId": instance.id})["KeyMetadata"]).get("KeyState")
    if state == "PendingDeletion":
        raise CloudError("kms.describe_key", f"{instance.id} is scheduled for deletion", "NotFound")


def _rotate(instance: Instance) -> None:
    if not instance.inputs.get("enableKeyRotation"):
        instance.cloud.call("kms", "disable_key_rotation", {"KeyId": instance.id})
        return
    period = instance.inputs.get("rotationPeriodInDays")
    extra = {"RotationPeriodInDays": int(str(period).split(".")[0])} if period is not None else {}
    instance.cloud.call("kms", "enable_key_rotation", {"KeyId": instance.id, **extra})


def _enable(instance: Instance) -> None:
    enabled = instance.inputs.get("isEnabled", True)
    instance.cloud.call("kms", "enable_key" if enabled else "disable_key", {"KeyId": instance.id})


def _schedule_deletion(instance: Instance) -> None:
    _read_key(instance)
    days = instance.inputs.get("deletionWindowInDays") or DEFAULT_WINDOW_DAYS
    window = {"PendingWindowInDays": int(str(days).split(".")[0])}
    instance.cloud.call("kms", "schedule_key_deletion", {"KeyId": instance.id, **window})


ROWS = (
    Row(
        type="aws:kms/key:Key",
        service="kms",
        create=Call("create_key", rename={"customerMasterKeySpec": "KeySpec"}),
        id="{out.KeyMetadata.KeyId}",
        outputs={"keyId": "{id}", "arn": "{out.KeyMetadata.Arn}"},
        steps=(
            Step(("description",), Call("update_key_description", params=_BY_ID), at="update"),
            Step(("policy",), Call("put_key_policy", params={**_BY_ID, "PolicyName": "default"}), at="update"),
            Step(("enableKeyRotation", "rotationPeriodInDays"), _rotate, unset=_rotate),
            Step(("isEnabled",), _enable, unset=_enable),
        ),
        tags=Tags("tag_resource", "untag_resource", "KeyId", "{id}"),
        local=("deletionWindowInDays",),
        read=_read_key,
        delete=_schedule_deletion,
    ),
    Row(
        type="aws:kms/alias:Alias",
        service="kms",
        create=Call("create_alias", rename={"name": "AliasName"}),
        id="{in.name}",
        outputs={
            "arn": "arn:aws:kms:{region}:{account}:{in.name}",
            "targetKeyArn": lambda i: _key_arn(i),
        },
        steps=(Step(("targetKeyId",), Call("update_alias", params={"AliasName": "{id}"}), at="update"),),
        identity=("name",),
        read=Call("describe_key", params=_BY_ID),
        delete=Call("delete_alias", params={"AliasName": "{id}"}),
    ),
)


def _key_arn(instance: Instance) -> str:
    target = instance.text("targetKeyId")
    if target.startswith("arn:"):
        return target
    return f"arn:aws:kms:{instance.cloud.region}:{instance.cloud.account}:key/{target}"
