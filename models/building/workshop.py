"""The steps that every build takes: the command line, a bar, pinned parts, serving the packed archive, and the machine.

Rules: an error that the user can do something about is one line and exit code 1. A file appears under its name whole or
not at all. The packed archive is unpacked into an empty folder and serves there, in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from building import archive, dataset, readme

Advance = Callable[[int], None]
Build = Callable[[argparse.Namespace, Console], dict[str, Any]]
CONTRACT = Path(__file__).resolve().parents[1] / "contract" / "moderation_contract.py"


class BuildError(Exception):
    """A build that cannot go on; the message says why, and the way out."""


def command(
    name: str,
    here: Path,
    build: Build,
    figures: Callable[[Mapping[str, Any]], str],
    argv: Sequence[str] | None,
    more: Callable[[argparse.ArgumentParser], object] = lambda _: None,
) -> int:
    """Run a build's command line; return the exit code.

    `build` returns its report, without `held_out` where nothing was measured; `figures` the README's block; `more` adds
    options of its own.
    """
    parser = _parser(name, here)
    more(parser)
    options = parser.parse_args(argv)
    console = Console(stderr=True, highlight=False)
    started = time.perf_counter()
    try:
        _make_folder(options.out)
        report = build(options, console)
        if options.write_readme:
            readme.write(here / "README.md", figures(report))
    except (BuildError, dataset.DataError, readme.MarkerError, ArithmeticError, OSError) as error:
        if isinstance(error, OSError) and error.filename:
            error = BuildError(f"{error.filename}: {error.strerror}")
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("error: interrupted; nothing was replaced", style="red")
        return 130
    console.print(
        f"{name} {report['version']}: {_measured(report)}{report['archive']['bytes'] / 1e6:.1f} MB, "
        f"built in {time.perf_counter() - started:.1f} s",
        soft_wrap=True,
    )
    return 0


def _measured(report: Mapping[str, Any]) -> str:
    if "held_out" not in report:
        return ""
    held_out, serving = report["held_out"], report["serving"]
    return (
        f"accuracy {held_out['accuracy']['value']:.3f} on {held_out['texts']} held-out texts, "
        f"P50 {serving['p50_ms']:.1f} ms, P99 {serving['p99_ms']:.1f} ms, "
    )


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise BuildError(f"{out} is not a folder; give another --out")
    out.mkdir(parents=True, exist_ok=True)


def pinned(sources: Mapping[str, Path], sha256: Mapping[str, str]) -> dict[str, bytes]:
    """Return the content of each source by name, refusing any but the pinned bytes."""
    parts = {name: source.read_bytes() for name, source in sources.items()}
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != sha256[name]:
            raise BuildError(f"{sources[name]} is not the file this model is built on; reinstall or restore it")
    return parts


def serve(
    packed: Path, folder: Path, texts: Sequence[str], advance: Advance
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return an answer a text, and the facts of the process that served them from the unpacked archive."""
    archive.unpack(packed, folder)
    environment = {**os.environ, "INFERLANE_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(Path(__file__).with_name("probe.py")), str(folder)]
    asked = folder.with_suffix(".jsonl")
    asked.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
    answers: list[dict[str, Any]] = []
    with (
        asked.open() as lines,
        subprocess.Popen(command, stdin=lines, stdout=subprocess.PIPE, text=True, env=environment) as process,  # noqa: S603 (our own file)
    ):
        for line in process.stdout or ():
            answers.append(json.loads(line))
            advance(1 if "verdict" in answers[-1] else 0)
    if process.returncode or len(answers) != len(texts) + 1:
        raise BuildError(f"the packed model does not serve (exit {process.returncode}); its message stands above")
    return answers[:-1], answers[-1]


def serve_lines(folder: Path, texts: Sequence[str], threads: int) -> dict[str, Any]:
    """Return how long the unpacked archive took for all texts in one request, with so many threads."""
    environment = {**os.environ, "INFERLANE_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(Path(__file__).with_name("probe.py")), str(folder), "--lines"]
    asked = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, env=environment, check=False)  # noqa: S603 (our own file)
    if done.returncode:
        raise BuildError(f"the packed model does not serve lines (exit {done.returncode}); its message stands above")
    return {"threads": threads, **json.loads(done.stdout)}


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("onnxruntime", "tokenizers", "numpy")},
    }


def facts_of(packed: Path) -> dict[str, Any]:
    """Return the archive's hash and size."""
    content = packed.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def toxic(examples: Sequence[dataset.Example]) -> NDArray[np.bool_]:
    """Return the labels of `examples`."""
    return np.array([example.toxic for example in examples])


def words(examples: Sequence[dataset.Example]) -> NDArray[np.int64]:
    """Return the texts' lengths in words."""
    return np.array([len(example.text.split()) for example in examples])


def replace(target: Path, content: bytes) -> None:
    """Put `content` in place of `target` in one step."""
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, target)


@contextmanager
def bar(console: Console, what: str, total: int) -> Iterator[Advance]:
    """Show a progress bar on a terminal, and one plain line in a log."""
    if not console.is_terminal:
        console.print(f"{what}: {total} texts")
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _parser(name: str, here: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=f"Train, pack and measure {name}: writes model.tar.gz and quality.json."
    )
    parser.add_argument(
        "--out", type=Path, default=here / "build", help="folder to write to (default: build/ beside it)"
    )
    parser.add_argument(
        "--baked",
        action="store_true",
        help="leave code/requirements.txt out, for a container image that holds the dependencies already",
    )
    parser.add_argument("--write-readme", action="store_true", help="put this build's figures into README.md")
    return parser
