"""IAM: roles and their inline policies.

A role that is deleted with `forceDetachPolicies` loses first whatever else was put on it; without, the cloud refuses.
"""

from __future__ import annotations

from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.values import items, mapping

_ROLE: Templates = {"RoleName": "{id}"}


def _created(instance: Instance) -> str | None:
    date = mapping(instance.answer.get("Role")).get("CreateDate")
    return None if date is None else str(date)


def _detach(instance: Instance) -> None:
    if not instance.inputs.get("forceDetachPolicies"):
        return
    role = {"RoleName": instance.id}
    attached = instance.cloud.call("iam", "list_attached_role_policies", role)
    for item in items(attached.get("AttachedPolicies")):
        instance.cloud.call("iam", "detach_role_policy", {**role, "PolicyArn": mapping(item)["PolicyArn"]})
    for name in items(instance.cloud.call("iam", "list_role_policies", role).get("PolicyNames")):
        instance.cloud.call("iam", "delete_role_policy", {**role, "PolicyName": name})


ROWS = (
    Row(
        type="aws:iam/role:Role",
        service="iam",
        create=Call("create_role", rename={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"}),
        id="{in.name}",
        outputs={
            "name": "{in.name}",
            "arn": "{out.Role.Arn}",
            "uniqueId": "{out.Role.RoleId}",
            "createDate": _created,
            "path": lambda i: i.inputs.get("path") or "/",
        },
        auto_name="name",
        steps=(
            Step(
                ("assumeRolePolicy",),
                Call("update_assume_role_policy", params=_ROLE, rename={"assumeRolePolicy": "PolicyDocument"}),
                at="update",
            ),
            Step(
                ("description", "maxSessionDuration"),
                Call("update_role", params=_ROLE),
                at="update",
                unset=Call("update_role", params={**_ROLE, "Description": lambda _: ""}),
            ),
            Step(
                ("permissionsBoundary",),
                Call("put_role_permissions_boundary", params=_ROLE),
                at="update",
                unset=Call("delete_role_permissions_boundary", params=_ROLE),
            ),
        ),
        tags=Tags("tag_role", "untag_role", "RoleName", "{id}"),
        identity=("name",),
        local=("forceDetachPolicies",),
        read=Call("get_role", params=_ROLE),
        before_delete=_detach,
        delete=Call("delete_role", params=_ROLE),
    ),
    Row(
        type="aws:iam/rolePolicy:RolePolicy",
        service="iam",
        create=Call("put_role_policy", rename={"name": "PolicyName", "policy": "PolicyDocument", "role": "RoleName"}),
        id="{in.role}:{in.name}",
        outputs={"name": "{in.name}"},
        auto_name="name",
        upsert=True,
        identity=("role", "name"),
        read=Call("get_role_policy", params={"RoleName": "{in.role}", "PolicyName": "{in.name}"}),
        delete=Call("delete_role_policy", params={"RoleName": "{in.role}", "PolicyName": "{in.name}"}),
    ),
)
