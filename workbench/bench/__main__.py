"""Run the measurements, print them, write `build/bench/<name>.json`: `python -m workbench.bench [NAME …]`.

A figure that breaks its budget (`budgets.py`) is named; with `--check` it also ends the command with 1.
`--write-readme` measures nothing: it puts the last figures into the README and docs/batch.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from workbench.bench import cold_import, decide, package, sagemaker
from workbench.bench.batch import BatchBench
from workbench.bench.batch_bill import Assumptions
from workbench.bench.budgets import verdicts
from workbench.bench.figures import read, rewrite, rewrite_batch
from workbench.bench.processes import BenchError
from workbench.bench.router import RouterBench
from workbench.stack.layout import project_root
from workbench.terminal import Terminal

FOLDER: Final = project_root() / "build/bench"


class Bench(Protocol):
    """One measurement: a module or an object."""

    def steps(self) -> int:
        """How often `measure` calls `step`."""
        ...

    def measure(self, step: Callable[[], None]) -> dict[str, Any]:
        """The figures."""
        ...


def main() -> None:
    """Each measurement in turn, on an otherwise idle machine. SIGTERM ends it as Ctrl-C does, and nothing is left."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    terminal = Terminal(as_json=True)
    names = ["decide", "router", "cold_import", "package", "sagemaker", "batch"]
    parser = argparse.ArgumentParser(prog="python -m workbench.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(names)}; all if not given")
    parser.add_argument(
        "--with-others",
        action="store_true",
        help="router: also LiteLLM's proxy and the article's sketch, from PyPI into build/bench/venv (0.8 GB)",
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="batch: something else in place of an assumption of its bills (workbench/bench/batch_bill.py); repeatable",
    )
    parser.add_argument("--check", action="store_true", help="end with 1 when a budget is broken")
    parser.add_argument(
        "--write-readme",
        action="store_true",
        help="measure nothing; put the last figures into README.md and docs/batch.md",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"there is no bench {', '.join(unknown)}; there are: {', '.join(names)}")
    try:
        assumed = Assumptions().changed(dict(each.partition("=")[::2] for each in options.assume))
    except ValueError as error:
        parser.error(str(error))
    benches: dict[str, Bench] = {
        "decide": decide,
        "router": RouterBench(with_others=options.with_others, say=terminal.say),
        "cold_import": cold_import,
        "package": package,
        "sagemaker": sagemaker,
        "batch": BatchBench(assumed),
    }
    try:
        if options.write_readme:
            _write_readme()
            return
        broken = [broken for name in options.names or names for broken in _run(name, benches[name], terminal)]
    except BenchError as error:
        terminal.say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        terminal.say("stopped")
        sys.exit(130)
    if broken:
        terminal.say("\n".join(broken))
    sys.exit(bool(broken and options.check))


def _write_readme() -> None:
    figures = read(FOLDER)
    readme, batch_page = project_root() / "README.md", project_root() / "docs/batch.md"
    readme.write_text(rewrite(readme.read_text(encoding="utf-8"), figures), encoding="utf-8")
    page = rewrite_batch(batch_page.read_text(encoding="utf-8"), figures["batch"])
    batch_page.write_text(page, encoding="utf-8")


def _run(name: str, bench: Bench, terminal: Terminal) -> list[str]:
    """Measure, write, print; the budgets that are broken, a line each."""
    with terminal.progress(name, bench.steps()) as bar:
        figures = bench.measure(bar.step)
    judged = verdicts(name, figures)
    about = {"bench": name, "python": platform.python_version(), "at": datetime.now(UTC).isoformat()}
    document = {**about, **figures, "budgets": [verdict.to_json() for verdict in judged]}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    terminal.result(document, "")
    return [f"over budget: {verdict.sentence()}" for verdict in judged if not verdict.held]


if __name__ == "__main__":
    main()
