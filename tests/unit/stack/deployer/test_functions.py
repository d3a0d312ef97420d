"""Pulumi functions: answered from the cloud, or refused."""

from __future__ import annotations

import json

import pytest

from workbench.stack.deployer.capture import PaperCloud
from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.functions import call

CLOUD = PaperCloud("eu-west-1")


def test_who_and_where() -> None:
    """Identity, region and partition are the cloud's."""
    identity = call(CLOUD, "aws:index/getCallerIdentity:getCallerIdentity", {})
    region = call(CLOUD, "aws:index/getRegion:getRegion", {})

    assert identity["accountId"] == "000000000000"
    assert region["region"] == "eu-west-1"
    assert call(CLOUD, "aws:index/getPartition:getPartition", {})["partition"] == "aws"


def test_a_policy_document() -> None:
    """Statements, principals and conditions take the form IAM reads."""
    statement = {
        "actions": ["sts:AssumeRole"],
        "principals": [{"type": "Service", "identifiers": ["lambda.amazonaws.com"]}],
        "conditions": [{"test": "StringEquals", "variable": "aws:SourceAccount", "values": ["1"]}],
    }

    answer = call(CLOUD, "aws:iam/getPolicyDocument:getPolicyDocument", {"statements": [statement]})

    assert json.loads(str(answer["json"])) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["sts:AssumeRole"],
                "Principal": {"Service": ["lambda.amazonaws.com"]},
                "Condition": {"StringEquals": {"aws:SourceAccount": ["1"]}},
            }
        ],
    }


def test_an_unknown_function_is_refused() -> None:
    """No function gets an invented answer."""
    with pytest.raises(UnmappedError, match="getAvailabilityZones"):
        call(CLOUD, "aws:index/getAvailabilityZones:getAvailabilityZones", {})
    with pytest.raises(UnmappedError, match="sourcePolicyDocuments"):
        call(CLOUD, "aws:iam/getPolicyDocument:getPolicyDocument", {"sourcePolicyDocuments": []})
