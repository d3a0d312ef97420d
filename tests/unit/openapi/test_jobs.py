"""What the jobs API answers fits what its document says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it ships no types

from functions.core.job import PROMOTED, Dataset, End, JobError, JobState
from tests.unit.core.builders import NOW
from tests.unit.handlers.test_jobs import ASKED, BATCHES, ID, Desk, desk, done, many
from tests.unit.handlers.test_route import headers
from workbench.openapi.document import document

WHOLE = document()
ENDS: dict[str, dict[str, Any]] = {
    "queued": {},
    "running": {"run": PROMOTED},
    "done": {"end": done(size=2, body=b"{}")},
    "late": {"end": done(size=1, body=b"\xff"), "due_at": NOW},
    "large": {"end": done(size=10**6, object="k")},
    "data set": {"end": End(JobState.DONE, NOW, "batch"), "dataset": Dataset("s3://data/a/", "s3://data/b/")},
    "failed": {"end": End(JobState.FAILED, NOW, "batch", 0.0, error=JobError(400, "no text"))},
    "expired": {"end": End(JobState.EXPIRED, NOW)},
    "cancelled": {"end": End(JobState.CANCELLED, NOW)},
}


def conforms(response: dict[str, object], path: str, method: str) -> None:
    """The answer's status, body and headers are documented; nothing in the body is unknown to the schema."""
    said = WHOLE["paths"][path][method]["responses"][str(response["statusCode"])]
    sent = headers(response)
    schema = said["content"][sent["content-type"]]["schema"]
    body = json.loads(str(response["body"]))
    Draft202012Validator({**schema, "components": WHOLE["components"]}).validate(body)
    name = schema["$ref"].rpartition("/")[2]
    assert set(body) <= set(WHOLE["components"]["schemas"][name]["properties"])
    for header, about in said["headers"].items():
        if header.lower() in sent and about["schema"].get("type") == "string":
            Draft202012Validator(about["schema"]).validate(sent[header.lower()])
    undocumented = set(sent) - {header.lower() for header in said["headers"]}
    assert undocumented <= {"content-type", "cache-control", "allow"}


@pytest.mark.parametrize("parts", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_job_is_as_documented_however_it_stands(parts: dict[str, Any], method: str) -> None:
    """Open, ended each way, with each kind of result; looked at and cancelled."""
    made = desk()
    made.add(**parts)
    conforms(made.call(f"/v1/jobs/{ID}", method.upper()), "/v1/jobs/{id}", method)


def test_a_page_is_as_documented() -> None:
    """With and without more to come."""
    made = desk()
    many(made, 3)
    for limit in ("2", "3"):
        conforms(made.call("/v1/jobs", query={"limit": limit}), "/v1/jobs", "get")


def pages_and_promises(made: Desk) -> list[tuple[dict[str, object], str, str]]:
    """Calls that are refused or promised something."""
    return [
        (made.call("/v1/jobs", query={"limit": "x"}), "/v1/jobs", "get"),
        (made.call(f"/v1/jobs/{ID}"), "/v1/jobs/{id}", "get"),
        (made.call(BATCHES, "POST", body=ASKED), "/v1/models/{model}/batches", "post"),
        (made.call(BATCHES, "POST", body={}), "/v1/models/{model}/batches", "post"),
        (made.call(BATCHES, "POST", body="x" * 20_000), "/v1/models/{model}/batches", "post"),
        (made.call("/v1/models/x/batches", "POST", body=ASKED), "/v1/models/{model}/batches", "post"),
    ]


def test_refusals_and_promises_are_as_documented() -> None:
    """Each with its own status."""
    calls = pages_and_promises(desk())
    assert [response["statusCode"] for response, _, _ in calls] == [400, 404, 202, 400, 413, 404]
    for call in calls:
        conforms(*call)
