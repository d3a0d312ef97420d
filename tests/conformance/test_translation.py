"""Pulumi's properties in the provider's words: found by the schema, or an error that names what has no place."""

from __future__ import annotations

import pytest

from tests.conformance.terraform.translation import (
    Block,
    TranslationError,
    arguments,
    mark,
    outputs,
    rendered,
    resource_type,
)

SCHEMA = Block.parse(
    {
        "attributes": {
            "arn": {"type": "string", "computed": True},
            "name": {"type": "string", "required": True},
            "alarm_name": {"type": "string", "optional": True},
            "tags": {"type": ["map", "string"], "optional": True},
            "actions": {"type": ["list", "string"], "optional": True},
            "rows": {"type": ["list", ["object", {"size_in_mb": "number"}]], "optional": True},
        },
        "block_types": {
            "variant": {"block": {"attributes": {"memory_size_in_mb": {"type": "number", "optional": True}}}}
        },
    }
)


def test_names_types_and_blocks_follow_the_schema() -> None:
    """Plurals become blocks, one value a list, whole floats integers; keys of a map stay as they are."""
    given = {"variants": [{"memorySizeInMb": 2048.0}], "action": "a", "tags": {"teamName": "ml"}, "name": None}
    assert arguments("aws_x", given, SCHEMA) == {
        "variant": [{"memory_size_in_mb": 2048}],
        "actions": ["a"],
        "tags": {"teamName": "ml"},
    }
    assert arguments("aws_x", {"rows": [{"sizeInMB": 1.0}]}, SCHEMA) == {"rows": [{"size_in_mb": 1}]}
    assert arguments("aws_cloudwatch_metric_alarm", {"name": "a"}, SCHEMA) == {"alarm_name": "a"}


def test_what_has_no_place_is_named() -> None:
    """All at once: what the provider does not know, and what it only reads."""
    with pytest.raises(TranslationError, match=r"colour: the provider has no such argument; .*arn: .* only reads it"):
        arguments("aws_x", {"colour": "red", "arn": "arn:"}, SCHEMA)


@pytest.mark.parametrize(
    ("token", "type_"),
    [
        ("aws:sagemaker/endpointConfiguration:EndpointConfiguration", "aws_sagemaker_endpoint_configuration"),
        ("aws:lambda/function:Function", "aws_lambda_function"),
        ("aws:s3/bucketObjectv2:BucketObjectv2", "aws_s3_object"),
        ("aws:kms/key:Key", "aws_kms_key"),
    ],
)
def test_types(token: str, type_: str) -> None:
    """A Pulumi type is the provider's."""
    assert resource_type(token) == type_


def test_outputs_become_references_and_nothing_else_does() -> None:
    """What the program was given comes back as a reference, inside JSON too; its own `${…}` stays text."""
    answers = outputs("aws_x", "my thing", SCHEMA, {"name": "given"})
    assert answers["arn"] == mark("aws_x", "my thing", "arn")
    assert "name" not in answers
    text = f'{{"Resource": "{answers["arn"]}/*", "user": "${{aws:username}}"}}'
    assert rendered({"a": [text]}) == {"a": ['{"Resource": "${aws_x.my_thing.arn}/*", "user": "$${aws:username}"}']}
