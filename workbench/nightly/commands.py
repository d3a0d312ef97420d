"""The commands of the nightly recheck: run one, read its report, list them. Parse, call, print.

Exit codes: 0; 1 when something is at fault; 3 when nothing was captured on the day, so that there is nothing to report.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workbench.errors import UserError
from workbench.nightly import reports
from workbench.terminal import Terminal

if TYPE_CHECKING:
    from workbench.nightly.machine import Execution, Machine

NOTHING: Final = 3
"""Exit code of a run for a day without captures."""

app = typer.Typer()
nightly = typer.Typer(
    help="Recheck a day's captured traffic by the heavy model, and read what came of it.", no_args_is_help=True
)
app.add_typer(nightly, name="nightly")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Stack = Annotated[str, typer.Option("--stack", help="The deployed stack.")]
OnAws = Annotated[
    bool, typer.Option("--aws", help="The real account, by the default credential chain; else the offline cloud.")
]
Model = Annotated[str | None, typer.Option("--model", help="The model whose verdicts are rechecked.")]
Date = Annotated[str, typer.Option("--date", metavar="D", help="The day, such as 2026-12-01, in the policy's zone.")]


@nightly.command("run")
def nightly_run(
    context: typer.Context,
    date: Annotated[
        str | None,
        typer.Option(
            "--date", metavar="D", help="The day, such as 2026-12-01; the last one that is over if not given."
        ),
    ] = None,
    stack: Stack = "local",
    model: Model = None,
    aws: OnAws = False,
    as_json: AsJson = False,
) -> None:
    """Recheck a day now, and wait for the report. Again for the same captures: nothing changes. Exits 3 without any."""
    wanted = None if date is None else reports.checked(date)
    machine = _machine(context, stack, aws=aws)
    terminal = Terminal(as_json=as_json)
    with terminal.progress(f"recheck {date or 'yesterday'}") as bar:
        done = machine.run(wanted, model, progress=bar.label)
    terminal.result(
        {"stack": stack, "bucket": machine.bucket, "execution": done.name, **done.answer}, _told(machine, done)
    )
    if done.outcome == "nothing":
        raise typer.Exit(NOTHING)


@nightly.command("report")
def nightly_report(
    context: typer.Context,
    date: Date,
    stack: Stack = "local",
    model: Model = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the page to a file (*.json: the JSON).")
    ] = None,
    aws: OnAws = False,
    as_json: AsJson = False,
) -> None:
    """What the recheck of a day found; its page in a browser, or as a file."""
    machine = _machine(context, stack, aws=aws)
    entry = reports.entry(machine, date, model)
    told = reports.document(machine, entry)
    where = output
    if open_it and where is None:
        where = _kept(stack, entry)
    if where is not None:
        form: reports.Form = "json" if where.suffix == ".json" else "html"
        _write(where, reports.content(machine, entry.key(form)))
    text = f"{entry.model} on {entry.date}, made {told.get('made_at')}\n{reports.headline(told['headline'])}"
    Terminal(as_json=as_json).result(told, text if where is None else f"{text}\n{where}")
    if open_it and where is not None:
        typer.launch(where.resolve().as_uri())


@nightly.command("list")
def nightly_list(
    context: typer.Context,
    stack: Stack = "local",
    model: Model = None,
    limit: Annotated[int, typer.Option(min=1, help="So many, the newest.")] = 30,
    aws: OnAws = False,
    as_json: AsJson = False,
) -> None:
    """The reports there are, newest first, each with its headline."""
    machine = _machine(context, stack, aws=aws)
    found = reports.entries(machine, model)[:limit]
    rows: list[dict[str, Any]] = []
    for each in found:
        told = reports.document(machine, each)
        rows.append({"date": each.date, "model": each.model, "run": told.get("run"), "headline": told["headline"]})
    lines = [f"{row['date']}  {row['model']}  {_short(row['headline'])}" for row in rows]
    text = "\n".join(lines) or f"no report yet: inferlane nightly run --stack {stack}"
    Terminal(as_json=as_json).result({"stack": stack, "reports": rows}, text)


def _machine(context: typer.Context, stack: str, *, aws: bool) -> Machine:
    """The stack's recheck; a test says by the context's object how it is found."""
    from workbench.nightly import machine

    find: Callable[[str], Machine] | None = context.obj
    return (find or (machine.account_machine if aws else machine.offline_machine))(stack)


def _told(machine: Machine, done: Execution) -> str:
    """How a run came out, for a person."""
    message = str(done.answer.get("message", ""))
    keys, figures = done.answer.get("report"), done.answer.get("headline")
    if done.outcome == "nothing" or not isinstance(keys, dict) or not isinstance(figures, dict):
        return message
    return (
        f"{message}\n{reports.headline(figures)}\ns3://{machine.bucket}/{keys.get('html')}\n"
        f"next: inferlane nightly report --date {done.answer.get('date')} --stack {machine.stack} --open"
    )


def _short(told: dict[str, Any]) -> str:
    agreement = told.get("agreement")
    share = "-" if agreement is None else f"{agreement:.2%}"
    return f"{told.get('verdicts', 0):>9,} verdicts  {share:>8} agreement  {told.get('missed', 0):>6,} missed"


def _kept(stack: str, entry: reports.Entry) -> Path:
    """Where a page lies that a browser is to show: it may quote what was captured, so it is for its owner only."""
    from workbench.stack.layout import Layout

    folder = Layout.default().folder / "reports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{stack}-{entry.model}-{entry.date}.html"


def _write(where: Path, body: bytes) -> None:
    try:
        where.touch(mode=0o600)
        where.write_bytes(body)
    except OSError as error:
        raise UserError(f"{where} cannot be written: {error.strerror}") from error
