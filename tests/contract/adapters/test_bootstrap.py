"""The wiring: from the environment the Pulumi program writes to an answered event, over one stub of AWS."""

from __future__ import annotations

import base64
import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from functions.batch_settings import jobs_environment, read_jobs
from functions.bootstrap import authorize_parts, jobs_parts, read_topology, route_parts
from functions.core.topology import TopologyError
from functions.handlers.jobs import respond as show
from functions.handlers.route import respond
from functions.settings import (
    SettingsError,
    authorizer_environment,
    read_authorizer,
    read_router,
    router_environment,
)
from tests.contract.adapters.stub import Reply, Stub
from tests.contract.adapters.test_policies import SESSION, configuration, document
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, PATH, topology_document
from tests.unit.handlers.events import event
from tests.unit.handlers.fakes import FakeContext


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "topology.json").write_text(json.dumps(topology_document()))
    written = router_environment(
        stack="test",
        policy_application="app",
        policy_environment="env",
        policy_profile="policy",
        metric_period_s=10,
        snapshot_ttl_s=3,
        policy_ttl_s=20,
        snapshot_table="snap",
    )
    return written | {"LAMBDA_TASK_ROOT": str(tmp_path), "AWS_REGION": "us-east-1"}


def use(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def test_what_the_program_writes_is_what_the_router_reads(environment: dict[str, str], tmp_path: Path) -> None:
    """Every setting, through the environment and back."""
    found = read_router(environment)
    assert (found.stack, found.policy_application, found.policy_environment) == ("test", "app", "env")
    assert (found.metric_period_s, found.snapshot_ttl_s, found.policy_ttl_s) == (10, 3, 20)
    assert found.topology_file == tmp_path / "topology.json"
    assert found.snapshot_table == "snap"
    lambdas = {"AWS_REGION": "us-east-1"}
    assert read_authorizer(authorizer_environment(keys_table="keys") | lambdas).keys_table == "keys"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"INFERLANE_STACK": ""}, "INFERLANE_STACK is not set"),
        ({"INFERLANE_SNAPSHOT_TTL_S": "soon"}, "INFERLANE_SNAPSHOT_TTL_S is not a number"),
        ({"INFERLANE_POLICY_TTL_S": "0"}, "INFERLANE_POLICY_TTL_S must be positive"),
    ],
)
def test_a_wrong_environment_names_the_variable(
    environment: dict[str, str], change: dict[str, str], named: str
) -> None:
    """Missing, malformed, out of range."""
    with pytest.raises(SettingsError, match=named):
        read_router(environment | change)


def test_a_missing_or_broken_topology_names_its_file(tmp_path: Path) -> None:
    """The package was built wrongly."""
    file = tmp_path / "topology.json"
    with pytest.raises(SettingsError, match=r"topology\.json cannot be read"):
        read_topology(file)
    file.write_text("{")
    with pytest.raises(TopologyError, match=r"topology\.json is not JSON"):
        read_topology(file)


@pytest.mark.parametrize(("table", "unreadable"), [("", 1), ("snap", 3)], ids=["alone", "shared"])
def test_a_request_goes_all_the_way(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, table: str, unreadable: int
) -> None:
    """Policy from AppConfig, all else unreadable (metrics, or shared snapshot, metrics and marks), the model's answer
    back: nothing of it slows or fails the request."""
    verdict = Reply(200, b'{"label":"ok"}', {"content-type": "application/json"})
    script = [SESSION, configuration(document("7")), *[Reply(500, b"{}")] * unreadable, verdict]
    environment["INFERLANE_SNAPSHOT_TABLE"] = table
    with Stub(*script) as stub, redirect_stdout(io.StringIO()) as out:
        use(monkeypatch, stub.url)
        parts = route_parts(read_router(environment | {"AWS_ENDPOINT_URL": stub.url}))
        first = respond(event(), FakeContext(), parts)
        again = respond(event(), FakeContext(), parts)
        paths = [seen.path for seen in stub.received]
    assert (first["statusCode"], again["statusCode"]) == (200, 200)
    assert first["body"] == '{"label":"ok"}'
    assert first["headers"]["x-inferlane-policy"] == "7"  # type: ignore[index]
    assert paths[0] == "/configurationsessions"
    assert len(paths) == 4 + unreadable, "the second request asked AWS for nothing but the answer"
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert sum("_aws" in line for line in lines) == 2


def test_the_authorizer_is_wired_without_a_call() -> None:
    """Nothing is asked before the first key; then the row, with the role's keys and no SDK."""
    with Stub(Reply(200, b"{}", {"content-type": "application/x-amz-json-1.0"})) as stub:
        lambdas = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        written = authorizer_environment(keys_table="keys") | lambdas | {"AWS_ENDPOINT_URL": stub.url}
        parts = authorize_parts(read_authorizer(written))
        assert stub.received == []
        assert parts.keys.find("hash") is None
        (seen,) = stub.received
    assert seen.headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert json.loads(seen.body) == {"TableName": "keys", "Key": {"key_hash": {"S": "hash"}}, "ConsistentRead": True}


def lambdas(url: str, folder: Path) -> dict[str, str]:
    """What Lambda itself puts into a function's environment, and where AWS is."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return {"LAMBDA_TASK_ROOT": str(folder), "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": url, **keys}


def test_a_deferred_request_goes_all_the_way(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Policy, decision, message, record, 202: in this order, and without an SDK."""
    lanes = {"dedicated": DEDICATED, "batch": BATCH}
    (tmp_path / "topology.json").write_text(json.dumps(topology_document(**lanes)))
    written = {
        "INFERLANE_SNAPSHOT_TABLE": "",
        "INFERLANE_JOBS_TABLE": "jobs",
        "INFERLANE_WORK_QUEUE": "http://sqs.test/1/work",
        "INFERLANE_PROMOTE_QUEUE": "http://sqs.test/1/promote",
        "INFERLANE_DATA_BUCKET": "data",
    }
    script = [SESSION, configuration(document("7")), Reply(500, b"{}"), Reply(200, b"{}")]
    with Stub(*script) as stub, redirect_stdout(io.StringIO()) as out:
        use(monkeypatch, stub.url)
        parts = route_parts(read_router({**environment, **written, **lambdas(stub.url, tmp_path)}))

        response = respond(event(headers={"prefer": "respond-async"}), FakeContext(), parts)
        targets = [seen.headers.get("x-amz-target") for seen in stub.received][3:]
    assert response["statusCode"] == 202
    assert targets == ["AmazonSQS.SendMessage", "DynamoDB_20120810.PutItem"]
    message = json.loads(json.loads(stub.received[3].body)["MessageBody"])
    job = json.loads(str(response["body"]))["id"]
    assert (message["id"], message["tenant"], message["model"]) == (job, "demo", MODEL)
    assert json.loads(stub.received[4].body)["Item"]["id"] == {"S": job}
    assert len(job) == 32
    (line,) = [json.loads(line) for line in out.getvalue().splitlines()]
    assert line["JobsAccepted"] == 1


def test_a_captured_request_goes_all_the_way(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The model's answer first, then one record to the stream, redacted; the answer goes out either way."""
    capture = {"share": "100%", "redact": ["/text"]}
    routes = [{"path": PATH, "model": MODEL, "capture": capture}]
    verdict = Reply(200, b'{"label":"ok"}', {"content-type": "application/json"})
    script = [SESSION, configuration(document("7", routes=routes)), Reply(500, b"{}"), verdict, Reply(200, b"{}")]
    written = {"INFERLANE_SNAPSHOT_TABLE": "", "INFERLANE_CAPTURE_STREAM": "captures"}
    with Stub(*script) as stub, redirect_stdout(io.StringIO()) as out:
        use(monkeypatch, stub.url)
        parts = route_parts(read_router({**environment, **written, **lambdas(stub.url, tmp_path)}))
        assert respond(event(), FakeContext(), parts)["body"] == '{"label":"ok"}'
        put = stub.received[-1]
    assert put.headers["x-amz-target"] == "Firehose_20150804.PutRecord"
    line = json.loads(base64.b64decode(json.loads(put.body)["Record"]["Data"]))
    assert (line["input"]["body"], line["output"]["body"]) == ('{"text":null}', '{"label":"ok"}')
    assert json.loads(out.getvalue())["CaptureFailures"] == 0


def test_the_jobs_function_is_wired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Policy from AppConfig, a record from DynamoDB; whose it is comes from the policy."""
    (tmp_path / "topology.json").write_text(json.dumps(topology_document()))
    written = jobs_environment(
        stack="test",
        policy_application="app",
        policy_environment="env",
        policy_profile="policy",
        jobs_table="jobs",
        runs_table="runs",
        work_queue="http://sqs.test/1/work",
        data_bucket="data",
    )
    nothing = Reply(200, b'{"Responses":{},"UnprocessedKeys":{}}', {"content-type": "application/x-amz-json-1.0"})
    with Stub(SESSION, configuration(document("7")), nothing) as stub:
        use(monkeypatch, stub.url)
        parts = jobs_parts(read_jobs({**written, **lambdas(stub.url, tmp_path)}))
        response = show(event(f"/v1/jobs/{'0' * 32}", "GET", body=None), FakeContext(), parts)
        asked = [seen.body for seen in stub.received if b"jobs" in seen.body]
    assert response["statusCode"] == 404
    (body,) = asked
    assert b'"demo"' in body
