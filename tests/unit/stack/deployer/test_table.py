"""The rows speak the languages of both sides: Pulumi's property names and botocore's operations and members."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from workbench.stack.deployer.capture import PaperCloud
from workbench.stack.deployer.declared import declared_outputs
from workbench.stack.deployer.row import Call, Row
from workbench.stack.deployer.table import ROWS

# Importing a service's module runs the modules of its deprecated types too.
pytestmark = pytest.mark.filterwarnings("ignore:aws\\.:DeprecationWarning")

CLOUD = PaperCloud("us-east-1")


def calls(row: Row) -> Iterator[Call]:
    """Every call a row declares."""
    for run in (row.create, row.read, row.delete, *(one for step in row.steps for one in (step.run, step.unset))):
        if isinstance(run, Call):
            yield run


def declared(row: Row) -> frozenset[str]:
    """The properties of the row's class, which pulumi-aws loads when it is named."""
    module, name = row.type.split(":")[1].split("/")[0], row.type.split(":")[-1]
    getattr(importlib.import_module(f"pulumi_aws.{'lambda_' if module == 'lambda' else module}"), name)
    return declared_outputs(row.type)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.type.split(":")[-1])
def test_properties_exist(row: Row) -> None:
    """Every property that a row names is one that the resource's class declares."""
    named = {*row.outputs, *row.identity, *row.local, *(name for step in row.steps for name in step.on)}
    named |= {row.auto_name} if row.auto_name else set()
    named |= {name for call in calls(row) for name in (*call.take, *(path.split(".")[0] for path in call.rename))}
    shared = {"kmsKeyArn", "name"}  # renames of rows that are built by one function

    assert named - declared(row) - shared == set()


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.type.split(":")[-1])
def test_operations_and_members_exist(row: Row) -> None:
    """Every operation exists and takes the parameters that the row fills."""
    for call in calls(row):
        shape = CLOUD.shape(call.service or row.service, call.operation)
        assert set(call.params) <= set(shape.members), call.operation
        targets = {target for target in call.rename.values() if target}
        assert targets - {"KmsKeyId"} <= set(shape.members), call.operation  # models share a rename
    if row.tags:
        tag, untag = (CLOUD.shape(row.service, operation) for operation in (row.tags.tag, row.tags.untag))
        assert row.tags.resource in tag.members
        assert {row.tags.resource, row.tags.keys} <= set(untag.members)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.type.split(":")[-1])
def test_a_row_can_be_taken_back(row: Row) -> None:
    """Whatever a row makes it can delete, or it says with what it goes; whether it stands can be asked."""
    assert row.delete is not None or row.gone_with
    assert row.read is not None
