"""What a command says: progress on standard error, results on standard output, one JSON object with --json."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Terminal:
    """The two ways to speak: for a person, or as JSON for a program."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)
        self._out = Console(highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """A line about what goes on."""
        self._err.print(text, markup=False, style="dim")

    def head(self, text: str) -> None:
        """The title of a chapter."""
        self._err.print(f"\n{text}", markup=False, style="bold")

    def result(self, data: Any, text: str) -> None:
        """The command's result: `data` with --json, else `text`."""
        if self.as_json:
            sys.stdout.write(json.dumps(data, indent=1, default=str) + "\n")
        else:
            self._out.print(text, markup=False)

    @contextmanager
    def progress(self, label: str, total: int | None = None) -> Iterator[Bar]:
        """A progress bar, gone when it is done; plain silence where there is no terminal."""
        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        ]
        with Progress(*columns, console=self._err, transient=True, disable=not self._err.is_terminal) as progress:
            yield Bar(progress, progress.add_task(label, total=total))


class Bar:
    """One line of progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def step(self, label: str | None = None) -> None:
        """One more is done."""
        if label is None:
            self._progress.advance(self._task)
        else:
            self._progress.update(self._task, advance=1, description=label)

    def label(self, text: str) -> None:
        """What is being done."""
        self._progress.update(self._task, description=text)
