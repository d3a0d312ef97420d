"""An output that no row maps is an error as soon as the program uses it, never a silent None."""

from __future__ import annotations

import json

import pytest
from pulumi_aws.dynamodb import Table

from workbench.stack.deployer.declared import complete, declared_outputs, refuse_marks
from workbench.stack.deployer.errors import UnmappedError
from workbench.stack.deployer.values import Payload

TYPE = "aws:dynamodb/table:Table"
assert Table.__name__ == TYPE.split(":")[-1]  # importing the class declares the type


def test_every_declared_output_gets_a_value() -> None:
    """Mapped outputs, then inputs, then what pulumi-aws derives itself; all else is marked."""
    outputs = complete(TYPE, {"name": "t", "tags": {"a": "b"}}, {"arn": "arn:t"}, "us-east-1")

    assert set(outputs) == set(declared_outputs(TYPE))
    assert outputs["arn"] == "arn:t"
    assert outputs["name"] == "t"
    assert outputs["tagsAll"] == {"a": "b"}
    assert outputs["region"] == "us-east-1"


@pytest.mark.parametrize("form", ["plain", "nested", "json", "key", "payload"])
def test_a_mark_is_found_wherever_it_goes(form: str) -> None:
    """Text built from an unmapped output gives it away, also inside JSON, keys and archives."""
    mark = complete(TYPE, {}, {}, "us-east-1")["streamArn"]
    forms: dict[str, object] = {
        "plain": mark,
        "nested": [{"a": [f"prefix-{mark}-suffix"]}],
        "json": json.dumps({"arn": mark}),
        "key": {str(mark): 1},
        "payload": Payload.of(f"topology {mark}".encode()),
    }

    with pytest.raises(UnmappedError, match=f"output streamArn of {TYPE} is not mapped, but the reader reads it"):
        refuse_marks({"value": forms[form]}, "the reader")


def test_ordinary_values_pass() -> None:
    """Nothing else is taken for a mark."""
    refuse_marks({"a": [1, None, "unmapped", Payload.of(b"\xff\x00")]}, "the reader")


def test_a_type_without_a_class_is_an_error() -> None:
    """Without the class nobody knows the outputs."""
    with pytest.raises(UnmappedError, match="no imported class declares"):
        declared_outputs("aws:no/such:Type")
