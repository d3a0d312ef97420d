"""The HTTP contract, over HTTP: who gets in, what comes back, what an error looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import urllib3

from tests.e2e.conftest import PATH
from workbench import keys
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults

Keys = Callable[[str], dict[str, str]]
HTTP = urllib3.PoolManager(retries=False, timeout=40)


def post(url: str, body: object, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HTTP.request("POST", url, body=data, headers={"Content-Type": "application/json", **headers})


def problem(response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert {"type", "title", "status", "detail", "request_id"} <= set(body)
    assert body["status"] == response.status
    return body


def test_a_real_verdict_comes_back_with_the_contracts_headers(deployed: Deployment, api_key: Keys) -> None:
    """A request with a key is answered by the model itself, and says by which lane, rule, policy and at what cost."""
    kind = post(deployed.url + PATH, {"text": "Thank you, this was a great help."}, api_key("demo-app"))
    insult = post(deployed.url + PATH, {"text": "You are a stupid piece of shit."}, api_key("demo-app"))
    assert (kind.status, insult.status) == (200, 200), (kind.data, insult.data)
    assert kind.json()["label"] == "ok"
    assert insult.json()["label"] == "toxic"
    assert kind.json()["score"] < insult.json()["score"]
    headers = kind.headers
    assert headers["content-type"].startswith("application/json")
    assert headers["x-inferlane-lane"] == "dedicated"
    assert headers["x-inferlane-rule"]
    assert headers["x-inferlane-policy"]
    assert float(headers["x-inferlane-cost-usd"]) >= 0
    assert headers["x-request-id"]
    assert "decide;dur=" in headers["server-timing"]
    assert 'attempt;desc="dedicated";dur=' in headers["server-timing"]


@pytest.mark.parametrize("headers", [{}, {"X-Api-Key": ""}, {"X-Api-Key": "il_" + "x" * 43}, {"X-Api-Key": "' OR 1=1"}])
def test_nobody_gets_in_without_a_key(deployed: Deployment, headers: dict[str, str]) -> None:
    """No key, an empty one or a wrong one: 401 or 403 before the router runs."""
    refused = post(deployed.url + PATH, {"text": "hello"}, headers)
    assert refused.status in (401, 403)
    assert "x-inferlane-lane" not in refused.headers


def test_health_needs_no_key_and_tells_nothing(deployed: Deployment) -> None:
    """Liveness is open and holds no detail of the stack."""
    response = HTTP.request("GET", deployed.url + "/healthz")
    assert response.status == 200
    assert "inferlane-local" not in response.data.decode()


def test_lanes_tell_what_the_router_believes(deployed: Deployment, api_key: Keys) -> None:
    """GET /v1/lanes names all lanes and the snapshot's age."""
    response = HTTP.request("GET", deployed.url + "/v1/lanes", headers=api_key("demo-app"))
    assert response.status == 200
    assert set(response.json()["models"]["moderation"]["lanes"]) == {"dedicated", "serverless", "batch"}


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/models/nothing/invocations", 404), ("/nowhere", 404), ("/v1/models/moderation", 404)]
)
def test_unknown_places_are_404(deployed: Deployment, api_key: Keys, path: str, status: int) -> None:
    """A path or model that does not exist is a problem document, not a gateway's shrug."""
    response = post(deployed.url + path, {"text": "x"}, api_key("demo-app"))
    assert response.status == status
    problem(response)


@pytest.mark.parametrize(
    "wish",
    [{"X-Inferlane-Priority": "urgent"}, {"X-Inferlane-Deadline-Ms": "soon"}, {"X-Inferlane-Deadline-Ms": "-5"}],
)
def test_an_impossible_wish_is_400_and_names_the_header(
    deployed: Deployment, api_key: Keys, wish: dict[str, str]
) -> None:
    """A malformed wish is refused with the header's name; the model is not bothered."""
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app") | wish)
    assert response.status == 400
    assert next(iter(wish)).lower() in problem(response)["detail"].lower()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"{not json", "application/json"), (b'{"wrong": 1}', "application/json"), (b"hello", "application/x-unknown")],
)
def test_the_models_own_refusal_is_passed_on(
    deployed: Deployment, api_key: Keys, body: bytes, content_type: str
) -> None:
    """A container's 4xx is the caller's: its status and words, from one attempt, on the first lane."""
    response = post(deployed.url + PATH, body, api_key("demo-app") | {"Content-Type": content_type})
    assert response.status in (400, 415)
    assert response.headers["x-inferlane-lane"] == "dedicated"
    assert response.headers["server-timing"].count("attempt;") == 1


def test_errors_never_leak_the_stack(deployed: Deployment, api_key: Keys) -> None:
    """No endpoint name, account id or trace in any error body."""
    bodies = [
        post(deployed.url + "/v1/models/nothing/invocations", {}, api_key("demo-app")).data,
        post(deployed.url + PATH, b"{", api_key("demo-app")).data,
        post(deployed.url + PATH, {}, {}).data,
    ]
    text = b"\n".join(bodies).decode()
    for secret in ("inferlane-local", "000000000000", "Traceback", "arn:aws", ".py"):
        assert secret not in text


def test_a_policys_own_path_is_served(deployed: Deployment, api_key: Keys) -> None:
    """A route of the policy document reaches its model."""
    response = post(deployed.url + "/realtime/chat", {"text": "good morning"}, api_key("demo-app"))
    assert response.status == 200, response.data


def test_a_revoked_key_stops_working(deployed: Deployment, client: Callable[[str], Any]) -> None:
    """A key that was disabled before its first use never gets in."""
    made = keys.create(client("dynamodb"), deployed.stack, "fired-app", datetime.now(UTC))
    keys.revoke(client("dynamodb"), deployed.stack, "fired-app")
    assert post(deployed.url + PATH, {"text": "x"}, {"X-Api-Key": made.key}).status == 403


@pytest.mark.parametrize("kind", ["throttle", "error"])
def test_a_key_is_found_although_its_table_refuses(
    deployed: Deployment, client: Callable[[str], Any], faults: Faults, kind: str
) -> None:
    """Two reads that DynamoDB refuses cost a caller nothing; the gateway would have to answer 500."""
    made = keys.create(client("dynamodb"), deployed.stack, f"patient-{kind}", datetime.now(UTC))
    table = f"inferlane-{deployed.stack}-keys"
    fault = faults.on_service("dynamodb", kind, resource=table, operations=["GetItem"], percent=100, times=2)
    assert post(deployed.url + PATH, {"text": "x"}, {"X-Api-Key": made.key}).status == 200
    assert [one["met"] for one in faults.active() if one["id"] == fault["id"]] in ([2], [])


def test_receipts_and_metrics_hold_no_payload_and_no_key(
    deployed: Deployment, api_key: Keys, client: Callable[[str], Any]
) -> None:
    """After a request with a marked text, neither the text nor the key stands in any log line."""
    marked = "xylophone-of-a-secret-customer"
    headers = api_key("demo-app")
    assert post(deployed.url + PATH, {"text": marked}, headers).status == 200
    logs = client("logs")
    lines: list[str] = []
    for group in logs.describe_log_groups()["logGroups"]:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
            lines += [event["message"] for event in page["events"]]
    text = "\n".join(lines)
    assert '"receipt"' in text
    assert marked not in text
    assert headers["X-Api-Key"] not in text
