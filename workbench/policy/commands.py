"""The policy commands: check, explain, diff, push, rollback. Parse, call, print.

Exit codes: 0, or 1 when a document, a file or the cloud is at fault. A decision to shed is an answer, not a fault.
check and explain import no AWS library and no terminal one: they are made for editors, hooks and pipes.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from functions.core.decide import decide
from functions.core.request import Request
from workbench.policy import contracts
from workbench.policy.check import Checked, check, load
from workbench.policy.explain import NOW, describe, moment

app = typer.Typer()
policy = typer.Typer(
    help="Check a policy, explain its decisions, compare two, push one to a stack, take it back.", no_args_is_help=True
)
app.add_typer(policy, name="policy")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="The policy, YAML or JSON; - for standard input.")]
SnapshotFile = Annotated[
    str | None, typer.Option("--snapshot", help="Snapshot JSON; without it nothing is known of any lane.")
]
At = Annotated[
    str, typer.Option("--at", metavar="TIME", help="The moment to decide at: ISO 8601 with its zone, or now.")
]


@policy.command("check")
def policy_check(file: File, as_json: AsJson = False) -> None:
    """Say every error of a policy with its line and cause. Exits 1 when there is one."""
    checked = check(file)
    if as_json:
        _print_json(_report(checked))
    elif checked.policy is not None:
        _print(f"{checked.name}: {_summary(checked)}")
    if checked.problems:
        if not as_json:
            sys.stderr.write("".join(f"{problem}\n" for problem in checked.problems))
        raise typer.Exit(1)


@policy.command("explain")
def policy_explain(
    file: File,
    topology: Annotated[str, typer.Option("--topology", help="Topology JSON, the stack's output `topology`.")],
    request: Annotated[str, typer.Option("--request", help="Request JSON, or JSON Lines; - for standard input.")],
    snapshot: SnapshotFile = None,
    at: At = NOW,
    as_json: AsJson = False,
) -> None:
    """Print the decision for a request and its reasons; with JSON Lines, one for each."""
    _, found = load(file)
    lanes, known, now = contracts.topology(topology), contracts.snapshot(snapshot), moment(at)
    for record in contracts.records(request):
        asked = record.read(Request.from_json)
        decision = decide(asked, known, found, lanes, now)
        if as_json:
            _print_json(decision.to_json())
        else:
            _print(describe(decision, asked, now))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data) + "\n")


def _report(checked: Checked) -> dict[str, object]:
    problems = [
        {"line": item.line, "column": item.column, "path": item.path, "cause": item.cause} for item in checked.problems
    ]
    version = None if checked.policy is None else checked.policy.version
    return {"file": checked.name, "valid": not problems, "version": version, "problems": problems}


def _summary(checked: Checked) -> str:
    value = checked.document.value if checked.document is not None else None
    if checked.policy is None or not isinstance(value, dict):
        return "not a policy"
    parts = ("routes", "tiers", "tenants", "signals", "rules", "experiments")
    counts = [f"{len(value[part])} {part}" for part in parts if value.get(part)]
    return f"version {checked.policy.version}: " + (", ".join(counts) or "defaults only") + "; no errors"
