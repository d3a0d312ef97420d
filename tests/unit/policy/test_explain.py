"""`policy explain` and its contract files: every form is read, every wrong one is named by file and field."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.core.builders import BATCH, DEDICATED, SERVERLESS
from workbench import cli

POLICY = """
schema: inferlane/policy/v1
version: 2026-12-01.1
defaults: {order: [dedicated, serverless], deadline_ms: 25000}
routes:
  - {path: /realtime/chat, model: moderation}
tiers:
  vip: {max_priority: high}
  internal: {max_priority: low}
tenants:
  - {claim: {client_id: "acme"}, tenant: acme, tier: vip, cost_center: growth}
signals:
  hot: {lane: dedicated, metric: cpu_percent, above: 85, for: 5m, until_below: 70, until_for: 3m}
rules:
  - {id: realtime-chat, when: {path: /realtime/chat}, order: [dedicated, serverless]}
"""
TOPOLOGY = {
    "schema": "inferlane/topology/v1",
    "region": "us-east-1",
    "models": {"moderation": {"lanes": {"dedicated": DEDICATED, "serverless": SERVERLESS, "batch": BATCH}}},
}
REQUEST = {
    "schema": "inferlane/request/v1",
    "id": "r-1",
    "method": "POST",
    "path": "/realtime/chat",
    "headers": {"x-inferlane-priority": "low"},
    "content_type": "application/json",
    "bytes": 812,
    "identity": {"kind": "jwt", "claims": {"client_id": "acme"}},
}
POINTS = [[f"2026-12-01T01:5{minute}:00Z", 91.0] for minute in range(10)]
AT = "2026-12-01T02:00:00Z"
Run = Callable[..., tuple[int, str, str]]


def snapshot(series: object) -> dict[str, object]:
    lane = {"series": {"cpu_percent": series}, "instances": 2, "in_flight": 3, "breaker": "closed"}
    models = {"moderation": {"lanes": {"dedicated": lane}}}
    return {"schema": "inferlane/snapshot/v1", "taken_at": AT, "models": models}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the contract files of the design, and the working directory in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "topology.json").write_text(json.dumps(TOPOLOGY, indent=2))
    (tmp_path / "request.json").write_text(json.dumps(REQUEST, indent=2))
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot(POINTS)))
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`inferlane` in this process: exit code, standard output, standard error."""

    def call(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["inferlane", *arguments])
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def explain(*more: str, request: str = "request.json") -> list[str]:
    base = ["policy", "explain", "policy.yaml", "--topology", "topology.json", "--request", request, "--at", AT]
    return [*base, *more]


def test_the_designs_decision_is_printed(files: Path, run: Run) -> None:
    """Every field of the contract, by the contract's files."""
    code, out, err = run(*explain("--snapshot", "snapshot.json", "--json"))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {key: found[key] for key in ("schema", "model", "order", "rule", "experiment", "policy_version")} == {
        "schema": "inferlane/decision/v1",
        "model": "moderation",
        "order": ["dedicated", "serverless"],
        "rule": "realtime-chat",
        "experiment": None,
        "policy_version": "2026-12-01.1",
    }
    assert (found["tenant"], found["tier"], found["cost_center"]) == ("acme", "vip", "growth")
    assert found["priority"] == {"asked": "low", "granted": "low"}
    assert (found["deadline_ms"], found["async"], found["shed"]) == (25000, False, None)
    assert found["latches"] == {"hot": True}
    assert [item["lane"] for item in found["rejected"]] == ["batch"]
    assert set(found["predicted"]) >= {"dedicated", "serverless"}


def test_both_forms_of_a_series_are_read(files: Path, run: Run) -> None:
    """A list of points, and points with their period, come to the same decision."""
    (files / "other.json").write_text(json.dumps(snapshot({"period_s": 60, "points": POINTS})))
    one = run(*explain("--snapshot", "snapshot.json", "--json"))
    assert run(*explain("--snapshot", "other.json", "--json")) == one


def test_without_a_snapshot_nothing_is_known(files: Path, run: Run) -> None:
    """No snapshot: latches are unknown, the decision is made all the same."""
    code, out, _ = run(*explain("--json"))
    assert code == 0
    assert json.loads(out)["latches"] == {"hot": None}


def test_lines_of_requests_give_lines_of_decisions(files: Path, run: Run) -> None:
    """JSON Lines on standard input: a decision a line, empty lines passed over."""
    lines = b"\n".join(json.dumps({**REQUEST, "path": path}).encode() for path in ("/realtime/chat", "/nowhere"))
    code, out, _ = run(*explain("--json", request="-"), stdin=lines + b"\n\n")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [decision["model"] for decision in found] == ["moderation", None]


def test_a_shed_is_an_answer(files: Path, run: Run) -> None:
    """A decision to refuse exits 0."""
    (files / "lost.json").write_text(json.dumps({**REQUEST, "path": "/nowhere"}))
    code, out, _ = run(*explain("--json", request="lost.json"))
    assert code == 0
    assert json.loads(out)["shed"]["status"] == 404
    code, out, _ = run(*explain(request="lost.json"))
    assert code == 0
    assert "404" in out


def test_a_person_reads_who_which_rule_and_why(files: Path, run: Run) -> None:
    """Without --json: caller, rule, each lane with its place or the reason against it, signals."""
    _, out, _ = run(*explain("--snapshot", "snapshot.json"))
    for words in ("acme, tier vip, priority low", "realtime-chat of policy 2026-12-01.1", "1. dedicated", "hot on"):
        assert words in out
    assert "-  batch" in out


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("topology.json", "{", ("topology.json:1:2: not JSON",)),
        ("topology.json", "[]", ("topology.json: expected a mapping",)),
        ("topology.json", json.dumps(REQUEST), ("topology.json: schema:", "inferlane/topology/v1")),
        ("topology.json", json.dumps({**TOPOLOGY, "models": {"m": {}}}), ("topology.json: models.m:", "'lanes'")),
        ("topology.json", '{"a": 1, "a": 2}', ("topology.json:1: not JSON", "'a' appears twice")),
        ("request.json", "", ("request.json: is empty",)),
        ("request.json", '{"a":\n\n1]', ("request.json:3:2: not JSON",)),
        ("request.json", json.dumps({**REQUEST, "bytes": "many"}), ("request.json:1: bytes: expected a number",)),
        ("request.json", json.dumps({**REQUEST, "bytes": -1}, indent=1), ("request.json: bytes: must be at least 0",)),
        ("request.json", json.dumps({**REQUEST, "identity": {"kind": "iam"}}), ("request.json:1: identity", "'arn'")),
        ("request.json", json.dumps(REQUEST) + "\nx\n", ("request.json:2:1: not JSON",)),
        ("request.json", json.dumps({**REQUEST, "bytes": float("nan")}), ("request.json:1: not JSON", "NaN")),
        ("request.json", "9" * 5000, ("request.json:1: not JSON",)),
        ("request.json", "[" * 100_000, ("request.json:1: not JSON: nested too deeply",)),
        ("snapshot.json", json.dumps({**snapshot([]), "taken_at": "noon"}), ("snapshot.json: taken_at:", "'noon'")),
        ("snapshot.json", json.dumps(snapshot([["2026-12-01T01:55:00", 1]])), ("cpu_percent[0][0]", "time zone")),
        ("snapshot.json", json.dumps(snapshot([[AT]])), ("snapshot.json: models.moderation", "[time, value]")),
        ("policy.yaml", POLICY + "rulez: []\n", ("policy.yaml:16:1: rulez: unknown key",)),
    ],
)
def test_a_wrong_file_is_named_with_the_field(
    files: Path, run: Run, file: str, content: str, words: tuple[str, ...]
) -> None:
    """One line on standard error with file and field, also as JSON, exit 1."""
    (files / file).write_text(content)
    code, out, err = run(*explain("--snapshot", "snapshot.json", "--json"))
    assert code == 1
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert "error" in json.loads(out.splitlines()[-1])


def test_a_file_that_is_not_utf_8_is_named(files: Path, run: Run) -> None:
    """Bytes that are no text: the line is told."""
    (files / "request.json").write_bytes(json.dumps(REQUEST).encode() + b"\n\n{\xff}\n")
    code, _, err = run(*explain(request="request.json"))
    assert code == 1
    assert "request.json:3: not UTF-8: byte 0xff" in err


@pytest.mark.parametrize("option", ["--topology", "--request", "--snapshot"])
def test_a_missing_file_is_named(files: Path, run: Run, option: str) -> None:
    """Any of the files."""
    code, _, err = run(*explain(option, "none.json"))
    assert (code, err) == (1, "error: none.json: there is no such file\n")


@pytest.mark.parametrize("time", ["noon", "2026-12-01T02:00:00", "", "1764554400"])
def test_a_wrong_time_is_told(files: Path, run: Run, time: str) -> None:
    """--at takes ISO 8601 with a zone, or now."""
    code, _, err = run(*explain("--at", time))
    assert code == 1
    assert err.startswith("error: --at: ")
    assert run(*explain("--at", "now"))[0] == 0


def test_check_prints_problems_where_errors_go(files: Path, run: Run) -> None:
    """Problems on standard error, exit 1; with --json one object on standard output; none: exit 0."""
    assert run("policy", "check", "policy.yaml")[0] == 0
    code, out, err = run("policy", "check", "-", stdin=b"schema: inferlane/policy/v1\nversion: 1\n")
    assert (code, out) == (1, "")
    assert err == "standard input:2:1: version: expected text, found a number\n"
    (files / "policy.yaml").write_text(POLICY + "rulez: []\n")
    code, out, err = run("policy", "check", "policy.yaml", "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert (found["valid"], found["version"], found["file"]) == (False, None, "policy.yaml")
    assert {key: found["problems"][0][key] for key in ("line", "column", "path")} == {
        "line": 16,
        "column": 1,
        "path": "rulez",
    }


def test_a_flood_of_problems_is_cut_for_a_person(files: Path, run: Run) -> None:
    """A hundred are printed, the others counted; --json has them all."""
    (files / "policy.yaml").write_text(POLICY + "".join(f"k{i}: 1\n" for i in range(150)))
    code, _, err = run("policy", "check", "policy.yaml")
    assert (code, len(err.splitlines())) == (1, 101)
    assert err.endswith("... and 50 more: --json has them all\n")
    assert len(json.loads(run("policy", "check", "policy.yaml", "--json")[1])["problems"]) == 150


def test_diff_compares_two_files_and_their_decisions(files: Path, run: Run) -> None:
    """Differences by name, then what they change for the requests given."""
    changed = POLICY.replace("2026-12-01.1", "next").replace(
        "order: [dedicated, serverless]}\n", "order: [serverless]}\n"
    )
    (files / "next.yaml").write_text(changed)
    code, out, _ = run(
        "policy", "diff", "policy.yaml", "next.yaml", "--requests", "request.json", "--topology", "topology.json"
    )
    assert code == 0
    assert "version: 2026-12-01.1 -> next" in out
    assert 'rule realtime-chat.order: ["dedicated", "serverless"] -> ["serverless"]' in out
    assert "1 of 1 decisions change" in out
    code, out, _ = run("policy", "diff", "policy.yaml", "policy.yaml", "--json")
    assert (code, json.loads(out)["changes"], json.loads(out)["decisions"]) == (0, [], None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diff", "policy.yaml"], "or one and --stack"),
        (["diff", "policy.yaml", "policy.yaml", "--stack", "local"], "or one and --stack"),
        (["diff", "policy.yaml", "policy.yaml", "--requests", "request.json"], "give --topology"),
        (["push", "none.yaml", "--stack", "local"], "none.yaml: there is no such file"),
    ],
)
def test_what_is_missing_is_told(files: Path, run: Run, arguments: list[str], words: str) -> None:
    """One line with the way out."""
    code, _, err = run("policy", *arguments)
    assert code == 1
    assert words in err
