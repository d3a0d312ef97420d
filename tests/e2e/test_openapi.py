"""The front door against its own OpenAPI document: generated requests, good and bad, over HTTP.

Whatever is sent, the answer has a documented status, content type, headers and body, nothing of the inside is in it,
and no 5xx comes while every lane is healthy, but for a deadline that no lane can keep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
import urllib3
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation, Case, GenerationMode, checks
from schemathesis.core.result import Ok

from functions.core.problem import CONTENT_TYPE
from functions.defer import JOBS_PATH
from functions.router import HEALTH_PATH
from workbench.openapi.document import document
from workbench.openapi.jobs import paths as job_paths
from workbench.policy.check import load
from workbench.stack.deployment import Deployment
from workbench.stack.layout import project_root

Operation = APIOperation[Any, Any, Any, Any]
Keys = Callable[[str], dict[str, str]]
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
    checks.ignored_auth,
]
"""Left out: that good data is taken and bad data refused, since the body is the model's own affair."""
INSIDE = ("inferlane-local", "000000000000", "arn:aws", "Traceback", ".py")
SHORT_MS = 2_000
"""Deadlines below this may pass on a busy machine; 504 is the right answer then."""
EXAMPLES = 40
_, POLICY = load(str(project_root() / "policies/local.yaml"))
OPERATIONS: list[Operation] = [
    found.ok()
    for found in schemathesis.openapi.from_dict(document(POLICY.routes)).get_all_operations()
    if isinstance(found, Ok)
]
JOBS = set(job_paths())
WAITING = {route.pattern.text for route in POLICY.routes if route.prefer_async}
CASES = [
    pytest.param(operation, mode, id=f"{operation.label}-{mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.path != HEALTH_PATH  # it takes nothing that could be wrong
]

SERVED: dict[str, set[str]] = {}
for each in OPERATIONS:
    SERVED.setdefault(each.path, set()).add(each.method.upper())
OTHER_METHODS = [
    pytest.param(path, method, id=f"{method} {path}")
    for path, served in SERVED.items()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    if method not in served
]
"""Where the stack runs no deferred work, what is under these paths is unknown whatever the method."""


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_answer_is_a_documented_one(
    operation: Operation, mode: GenerationMode, deployed: Deployment, api_key: Keys
) -> None:
    """Status, content type, headers and body conform; a healthy stack has no server error and keeps its inside."""
    headers = api_key("demo-fuzz")

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def conforms(case: Case[Any]) -> None:
        response = case.call_and_validate(base_url=deployed.url, headers=headers, checks=CHECKS)
        asked = str(case.headers.get("X-Inferlane-Deadline-Ms", ""))
        hurried = asked.isascii() and asked.isdigit() and int(asked) < SHORT_MS
        assert response.status_code < 500 or (response.status_code == 504 and hurried), response.text
        assert not any(word in response.text for word in INSIDE)

    conforms()


@pytest.mark.parametrize(("path", "method"), OTHER_METHODS)
def test_another_method_is_405_and_says_which_are_served(
    path: str, method: str, deployed: Deployment, api_key: Keys
) -> None:
    """For other methods than a path's own a problem document with `Allow`."""
    headers, there = api_key("demo-fuzz"), path.replace("{model}", "moderation").replace("{id}", "0" * 32)
    if path in JOBS and _call("GET", deployed, JOBS_PATH, headers).status == 404:
        pytest.skip("this stack runs no deferred work")
    answer = _call(method, deployed, there, headers)
    assert answer.status == 405, answer.data
    assert set(answer.headers["allow"].split(", ")) == SERVED[path]
    assert answer.headers["content-type"] == CONTENT_TYPE


def _call(method: str, deployed: Deployment, path: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
    return urllib3.request(method, deployed.url + path, headers=headers, retries=False, timeout=40)


@pytest.mark.parametrize(
    "operation",
    [each for each in OPERATIONS if each.method == "post" and each.path not in JOBS],
    ids=lambda each: each.label,
)
def test_a_served_answer_has_every_header_that_is_promised(
    operation: Operation, deployed: Deployment, api_key: Keys
) -> None:
    """A request that a model can answer is 200 (or 202, on a path for work that waits), with each promised header."""
    status, wishes = (202, {"Prefer": "respond-async"}) if operation.path in WAITING else (200, {})
    parameters = {item.name: "moderation" for item in operation.path_parameters.items}
    case = operation.Case(
        path_parameters=parameters, body={"text": "good morning"}, media_type="application/json", headers=wishes
    )
    response = case.call_and_validate(base_url=deployed.url, headers=api_key("demo-fuzz"), checks=CHECKS)
    assert response.status_code == status, response.text
    promised = operation.definition.raw["responses"][str(status)]["headers"]
    assert {name.lower() for name in promised} <= set(response.headers)
