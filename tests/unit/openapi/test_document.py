"""The front door's OpenAPI document: valid, complete, and the one that lies in the docs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it ships no types
from openapi_spec_validator import OpenAPIV31SpecValidator

from functions.core.outcome import Kind
from functions.core.policy_parser import parse_policy
from functions.core.problem import Problem
from functions.core.receipt import Attempt
from workbench.openapi.__main__ import FILE
from workbench.openapi.document import document, failures, text

ROUTES = parse_policy(
    {
        "schema": "inferlane/policy/v1",
        "version": "1",
        "routes": [
            {"path": "/realtime/chat", "model": "chat"},
            {"path": "/v1/chat/completions", "model": {"from_body": "model"}},
            {"path": "/v2/models/{model}/infer"},
            {"path": "/teams/*/ask", "model": "chat"},
            {"path": "/old/**", "model": "chat"},
        ],
    }
).routes


def test_the_file_in_the_docs_is_what_the_code_says() -> None:
    """A change of the contract that is not written down fails here; `python -m workbench.openapi` writes it."""
    assert FILE.read_text(encoding="utf-8") == text()


@pytest.mark.parametrize("routes", [(), ROUTES], ids=["fixed", "with a policy's routes"])
def test_it_is_valid_openapi(routes: Any) -> None:
    """The document conforms to OpenAPI 3.1, whatever routes a policy adds."""
    OpenAPIV31SpecValidator(document(routes)).validate()


def test_a_policys_routes_become_paths() -> None:
    """Literal and captured segments are expressed, an open end is not, and the built-in path comes once."""
    paths = document(ROUTES)["paths"]
    assert list(paths) == [
        "/healthz",
        "/v1/lanes",
        "/v1/jobs",
        "/v1/jobs/{id}",
        "/v1/models/{model}/batches",
        "/v1/models/{model}/invocations",
        "/realtime/chat",
        "/v1/chat/completions",
        "/v2/models/{model}/infer",
        "/teams/{segment_1}/ask",
    ]


def test_a_route_whose_model_is_in_the_body_says_so() -> None:
    """The body's key is required where the router reads it."""
    body = document(ROUTES)["paths"]["/v1/chat/completions"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"]["required"] == ["model"]


def test_operations_have_names_of_their_own() -> None:
    """Generated clients get a function for each operation."""
    names = [operation["operationId"] for path in document(ROUTES)["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)


def test_every_way_to_fail_is_documented() -> None:
    """Each status that failed attempts can lead to is an answer of the invocation."""
    answers = document()["paths"]["/v1/models/{model}/invocations"]["post"]["responses"]
    assert {str(status) for status in failures()} <= set(answers)
    assert {413, 429, 502, 503, 504} == set(failures())


def test_a_problem_that_the_code_writes_fits_its_schema() -> None:
    """With and without attempts, of every kind."""
    whole = document()
    schema = {**whole["components"]["schemas"]["Problem"], "components": whole["components"]}
    attempts = [Attempt("dedicated", kind, 500, 0.0, 0.1, 1.0, None) for kind in Kind]
    for status, slugs in failures().items():
        for slug in ("", *slugs):
            body = json.loads(Problem(status, "words", slug, 1, attempts).body("r-1"))
            Draft202012Validator(schema).validate(body)
