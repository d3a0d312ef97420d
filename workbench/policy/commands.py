"""The policy commands: check, explain, diff, push, rollback, clear. Parse, call, print.

Exit codes: 0, or 1 when a document, a file or the cloud is at fault. A decision to shed is an answer, not a fault.
check and explain import no AWS library and no terminal one: they are made for editors, hooks and pipes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import typer

from functions.core.decide import decide
from functions.core.document import Fields
from functions.core.policy import Policy
from functions.core.request import Request
from functions.core.topology import Topology
from workbench.errors import UserError
from workbench.policy import contracts
from workbench.policy.check import Checked, check, load
from workbench.policy.document import one_line
from workbench.policy.explain import NOW, describe, moment

if TYPE_CHECKING:
    from workbench.policy.live import Store
    from workbench.policy.push import Pusher, Result
    from workbench.policy.replay import Comparison

SHOWN: Final = 100
"""Problems that `check` prints for a person."""

Done = TypeVar("Done")

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

StackName = Annotated[str | None, typer.Option("--stack", help="A deployed stack: compare with what it serves.")]
Stack = Annotated[str, typer.Option("--stack", help="The deployed stack whose policy to change.")]
OnAws = Annotated[
    bool, typer.Option("--aws", help="The real account, by the default credential chain; else the offline cloud.")
]


@policy.command("check")
def policy_check(file: File, as_json: AsJson = False) -> None:
    """Say every error of a policy with its line and cause. Exits 1 when there is one."""
    checked = check(file)
    if as_json:
        _print_json(_report(checked))
    elif checked.policy is not None:
        _print(one_line(f"{checked.name}: {_summary(checked)}"))
    if checked.problems:
        if not as_json:
            sys.stderr.write("".join(f"{problem}\n" for problem in checked.problems[:SHOWN]))
            if len(checked.problems) > SHOWN:
                sys.stderr.write(f"... and {len(checked.problems) - SHOWN} more: --json has them all\n")
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


@policy.command("diff")
def policy_diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A policy; with --stack the new one.")],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="The policy to compare with it.")] = None,
    stack: StackName = None,
    aws: OnAws = False,
    requests: Annotated[
        str | None, typer.Option("--requests", help="Requests or receipts, JSON Lines: which decisions change?")
    ] = None,
    topology: Annotated[
        str | None, typer.Option("--topology", help="Topology JSON; the stack's own if not given.")
    ] = None,
    snapshot: SnapshotFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When to decide; receipts: when they happened.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two policies, or the one a stack serves with a file: what differs, and which decisions change."""
    from workbench.policy.diff import changes
    from workbench.policy.replay import Scene, compare

    if (new is None) == (stack is None):
        raise UserError("give two policies to compare, or one and --stack")
    sides, lanes = _sides(old, new, stack, aws=aws)
    found = changes(sides[0].value, sides[1].value)
    replayed = None
    if requests is not None:
        lanes = contracts.topology(topology) if topology is not None else lanes
        if lanes is None:
            raise UserError("to compare decisions, give --topology (the stack's output `topology`)")
        scene = Scene(lanes, contracts.snapshot(snapshot), moment(at or NOW), receipts_keep_their_time=at is None)
        replayed = compare(contracts.records(requests), sides[0].policy, sides[1].policy, scene)
    if as_json:
        ends = [{"name": side.name, "version": side.policy.version} for side in sides]
        decisions = None if replayed is None else replayed.to_json()
        _print_json({"old": ends[0], "new": ends[1], "changes": [c.to_json() for c in found], "decisions": decisions})
        return
    _print("\n".join(str(change) for change in found) or f"{sides[0].name} and {sides[1].name} mean the same")
    if replayed is not None:
        _print(_told(replayed))


@policy.command("push")
def policy_push(file: File, stack: Stack, aws: OnAws = False, as_json: AsJson = False) -> None:
    """Check a policy, put it in force on a stack, and wait until AppConfig has rolled it out."""
    document, found = load(file)
    result = _roll("push", stack, aws=aws, act=lambda pusher: pusher.push(document, found.version), as_json=as_json)
    text = f"policy {result.policy_version} is in force on {stack} as version {result.version}"
    _result(stack, result, text if result.changed else f"{text} already: nothing was pushed", as_json=as_json)


@policy.command("rollback")
def policy_rollback(
    stack: Stack,
    to: Annotated[
        int | None, typer.Option("--to", help="AppConfig's version number; the one before if not given.")
    ] = None,
    aws: OnAws = False,
    as_json: AsJson = False,
) -> None:
    """Bring an earlier policy back; a rollout that still lasts is stopped."""
    result = _roll("rollback", stack, aws=aws, act=lambda pusher: pusher.rollback(to), as_json=as_json)
    text = f"policy {result.policy_version} is in force on {stack} again, version {result.version}"
    _result(stack, result, text if result.changed else f"{text}: nothing had to be done", as_json=as_json)


@policy.command("clear")
def policy_clear(stack: Stack, aws: OnAws = False, as_json: AsJson = False) -> None:
    """Before a stack is destroyed: its own policy in force again, every pushed version gone.

    AppConfig refuses to delete a profile that still holds versions, and Pulumi deletes only the one it made.
    """
    cleared = _roll("clear", stack, aws=aws, act=lambda pusher: pusher.clear(), as_json=as_json)
    result, removed, kept = cleared.result, list(cleared.removed), list(cleared.kept)
    if as_json:
        _print_json({"stack": stack, **asdict(result), "removed": removed, "kept": kept})
        return
    gone = f"removed: {', '.join(map(str, removed))}" if removed else "there was nothing to remove"
    _print(f"{stack} serves its own policy {result.policy_version}, version {result.version}; {gone}")
    if len(kept) > 1:
        _print(f"versions {', '.join(map(str, kept))} stay: Pulumi deletes one of them, the others were made by hand")


class _Side(NamedTuple):
    """One of two policies to compare."""

    name: str
    value: Mapping[str, object]
    policy: Policy


def _sides(old: str, new: str | None, stack: str | None, *, aws: bool) -> tuple[tuple[_Side, _Side], Topology | None]:
    """What is compared, old and new, and the topology where a stack tells it."""
    if stack is None:
        return (_side(old), _side(str(new))), None
    given = _side(old)
    store, lanes = _store(stack, aws=aws)
    live = store.live()
    if live is None:
        raise UserError(f"stack {stack} serves no policy yet")
    return (_Side(f"version {live.version} of stack {stack}", live.value, live.policy), given), lanes


def _side(file: str) -> _Side:
    document, found = load(file)
    return _Side(document.name, Fields.of(document.value).values, found)


def _store(stack: str, *, aws: bool) -> tuple[Store, Topology | None]:
    from workbench.policy import live

    return (live.account_store(stack), None) if aws else live.offline_store(stack)


def _roll(label: str, stack: str, *, aws: bool, act: Callable[[Pusher], Done], as_json: bool) -> Done:
    """Change a stack's policy behind a progress bar."""
    from workbench.policy.push import Pusher
    from workbench.terminal import Terminal

    store, _ = _store(stack, aws=aws)
    with Terminal(as_json=as_json).progress(f"{label} {stack}", total=100) as bar:
        reached = 0.0

        def progress(percent: float, state: str) -> None:
            nonlocal reached
            while reached < percent:
                reached += 1
                bar.step()
            bar.label(state.lower())

        return act(Pusher(store, progress=progress))


def _result(stack: str, result: Result, text: str, *, as_json: bool) -> None:
    if as_json:
        _print_json({"stack": stack, **asdict(result)})
    else:
        _print(text)


def _told(replayed: Comparison) -> str:
    lines = [f"{replayed.changed} of {replayed.requests} decisions change"]
    lines += [f"  {number} x {kind}, such as {replayed.examples[kind]}" for kind, number in replayed.most_common()]
    if replayed.skipped:
        lines.append(f"  {replayed.skipped} receipts are of tenants that the old policy does not know any more")
    return "\n".join(one_line(line) for line in lines)


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
