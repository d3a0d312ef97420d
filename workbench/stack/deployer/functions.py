"""Pulumi functions (`aws.get_caller_identity()` and its like) answered from the cloud. Any other is an error.

`getPolicyDocument` is pure text work in the provider; it is done here for the statements a policy usually has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.values import Properties, items, mapping

Function = Callable[[Cloud, Properties], dict[str, object]]


def call(cloud: Cloud, token: str, arguments: Properties) -> dict[str, object]:
    """The function's result, in Pulumi's names."""
    if token not in FUNCTIONS:
        raise UnmappedError(f"the function {token} is not mapped: add it in workbench/stack/deployer/functions.py")
    return FUNCTIONS[token](cloud, arguments)


def _caller_identity(cloud: Cloud, _: Properties) -> dict[str, object]:
    answer = cloud.call("sts", "get_caller_identity", {})
    return {
        "accountId": answer["Account"],
        "arn": answer["Arn"],
        "userId": answer["UserId"],
        "id": answer["Account"],
    }


def _region(cloud: Cloud, arguments: Properties) -> dict[str, object]:
    region = str(arguments.get("region") or cloud.region)
    # `name` is deprecated in pulumi-aws 7, but still what older programs read.
    return {
        "region": region,
        "name": region,
        "id": region,
        "description": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _partition(_: Cloud, __: Properties) -> dict[str, object]:
    return {"partition": "aws", "id": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _policy_document(_: Cloud, arguments: Properties) -> dict[str, object]:
    known = {"statements", "version", "policyId"}
    if set(arguments) - known:
        raise UnmappedError(f"getPolicyDocument: {', '.join(sorted(set(arguments) - known))} is not mapped")
    document: dict[str, object] = {"Version": arguments.get("version", "2012-10-17")}
    if arguments.get("policyId"):
        document["Id"] = arguments["policyId"]
    document["Statement"] = [_statement(mapping(item)) for item in items(arguments.get("statements"))]
    text = json.dumps(document, indent=2)
    return {"json": text, "minifiedJson": json.dumps(document, separators=(",", ":")), "id": "policy"}


def _statement(given: Properties) -> dict[str, object]:
    plain = {
        "sid": "Sid",
        "effect": "Effect",
        "actions": "Action",
        "notActions": "NotAction",
        "resources": "Resource",
        "notResources": "NotResource",
    }
    grouped = {"principals": "Principal", "notPrincipals": "NotPrincipal"}
    statement: dict[str, object] = {"Effect": given.get("effect", "Allow")}
    for name, value in given.items():
        if name in plain:
            statement[plain[name]] = value
        elif name in grouped:
            statement[grouped[name]] = _principals([mapping(item) for item in items(value)])
        elif name == "conditions":
            statement["Condition"] = _conditions([mapping(item) for item in items(value)])
        else:
            raise UnmappedError(f"getPolicyDocument: {name} of a statement is not mapped")
    return statement


def _principals(given: list[dict[str, object]]) -> object:
    if [(item["type"], item["identifiers"]) for item in given] == [("*", ["*"])]:
        return "*"
    merged: dict[str, list[object]] = {}
    for item in given:
        merged.setdefault(str(item["type"]), []).extend(items(item["identifiers"]))
    return merged


def _conditions(given: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    merged: dict[str, dict[str, object]] = {}
    for item in given:
        merged.setdefault(str(item["test"]), {})[str(item["variable"])] = item["values"]
    return merged


FUNCTIONS: Mapping[str, Function] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:iam/getPolicyDocument:getPolicyDocument": _policy_document,
}
