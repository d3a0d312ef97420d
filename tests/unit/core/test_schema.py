"""policies/schema.json: generated, readable by editors and by AppConfig, as strict as a schema can be."""

from __future__ import annotations

import contextlib
import json
import runpy
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own, for one test
import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from functions.core.policy import Policy, PolicyError
from functions.core.policy_parser import parse_policy, problems
from tests.unit.core.builders import policy_document
from tests.unit.core.refused import REFUSED
from tests.unit.core.test_policy import near_miss
from tests.unit.core.test_properties import policy_documents

POLICIES = Path(__file__).parents[3] / "policies"
SCHEMA = json.loads((POLICIES / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
APPCONFIG = jsonschema.Draft4Validator({key: value for key, value in SCHEMA.items() if key != "$schema"})
BEYOND = (
    "unknown signal",
    "unknown tier",
    "never reached",
    "given twice (first",
    "no value lies within",
    "never holds",
    "must not exceed",
    "at most 60m",
    "above zero",
    "no time zone",
    "unknown time zone",
    "no {model} segment",
    "at the end",
    "nested more than",
    "the same time",
    "must be literal",
    "captured twice",
)
"""What no schema can see: declared names, comparisons between values, order."""


def test_the_file_is_what_the_generator_writes() -> None:
    """After a change of the language: python policies/generate_schema.py."""
    generated = runpy.run_path(str(POLICIES / "generate_schema.py"))["text"]()
    assert (POLICIES / "schema.json").read_text() == generated


def test_it_is_a_schema_in_both_drafts_and_small_enough() -> None:
    """2020-12 for editors; draft-04 for AppConfig, whose validators hold at most 32 KiB."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft4Validator.check_schema(APPCONFIG.schema)
    assert len(json.dumps(APPCONFIG.schema)) < 32_768


@pytest.mark.parametrize("file", sorted(POLICIES.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_policy_is_valid(file: Path) -> None:
    """By the parser and by both drafts; and each names the schema for editors."""
    document = yaml.safe_load(file.read_text())
    assert problems(document) == []
    VALIDATOR.validate(document)
    APPCONFIG.validate(document)


@pytest.mark.parametrize(("parts", "place", "cause"), REFUSED)
def test_what_the_parser_refuses_the_schema_refuses_unless_it_cannot(
    parts: dict[str, object], place: str, cause: str
) -> None:
    """The same list of mistakes; both drafts agree on each."""
    document = policy_document(**parts)
    valid = VALIDATOR.is_valid(document)
    assert valid == APPCONFIG.is_valid(document)
    message = str(problems(document)[0])
    assert valid == any(words in message for words in BEYOND), message


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(policy_documents())
def test_what_the_parser_accepts_the_schema_accepts(document: dict[str, object]) -> None:
    """No editor marks a policy that works."""
    if not problems(document):
        VALIDATOR.validate(document)
        APPCONFIG.validate(document)


@given(near_miss)
def test_the_schema_is_never_stricter(value: object) -> None:
    """Whatever the parser takes for a rule's list, a signal's map or a default, the schema takes."""
    for key in ("rules", "signals", "defaults", "routes", "tenants", "tiers", "experiments"):
        document = {**policy_document(), key: value}
        with contextlib.suppress(PolicyError):
            assert isinstance(parse_policy(document), Policy)
            VALIDATOR.validate(document)
