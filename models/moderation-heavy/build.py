#!/usr/bin/env python3
"""Builds moderation-heavy: makes the encoders, packs them with the heads into build/model.tar.gz, and tries it.

The heads were trained once and are kept in heads.json; `--train` trains them anew, and so does a build whose texts,
encoders or code are not those that they were made of. `--measure` serves all held-out texts (minutes).

Rules
- No choice depends on held-out texts. The English ones are those that moderation-light is measured on, in the same
  halves; neither model has seen them. The packed archive serves them, text by text, through the contract functions.
- moderation-light's archive serves the same texts: what is compared is what ships, and paired text by text.
- The archive holds nothing that was measured, so two builds give the same bytes. Figures go to build/quality.json.
- The archive is put in place last, and only if it serves: a build that fails leaves no new one.
"""

from __future__ import annotations

import argparse
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "contract"))  # beside inference.py in the archive

from building import archive, dataset, head, paired, quality, workshop
from moderation_heavy import heads as trained
from moderation_heavy import training
from moderation_heavy.figures import figures

HERE, LIGHT = training.HERE, training.LIGHT
NAME = "moderation-heavy"
TRIED = 4
"""Held-out texts a language that every build serves, to see that the archive does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return workshop.command(NAME, HERE, build, figures, argv, _options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--train", action="store_true", help=f"train the heads anew and keep them in {trained.FILE.name}"
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="serve all held-out texts, beside moderation-light, and write quality.json (implied by --write-readme)",
    )


def build(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Pack, and measure where that was asked for; write into `options.out`, and return what is known of the archive."""
    texts = training.texts()
    files = training.encoders([block for blocks in training.BLOCKS.values() for block in blocks])
    heads = _heads(texts, files, options, console)
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as scratch:
        files |= _more_files(files, heads, baked=options.baked)
        packed = Path(scratch) / "model.tar.gz"
        archive.pack(files, packed)
        if options.measure or options.write_readme:
            report = _measured(texts, heads, packed, Path(scratch), console)
            workshop.replace(options.out / "quality.json", (json.dumps(report, indent=2) + "\n").encode())
        else:
            few = [example.text for halves in texts.values() for example in halves.held_out[:TRIED]]
            served, _ = workshop.serve(packed, Path(scratch) / "model", few, lambda _: None)
            report = {"version": served[0]["verdict"]["version"], "archive": workshop.facts_of(packed)}
        workshop.replace(options.out / "model.tar.gz", packed.read_bytes())
    return report


def _heads(
    texts: Mapping[str, dataset.Halves], files: Mapping[str, bytes], options: argparse.Namespace, console: Console
) -> dict[str, training.Trained]:
    key = trained.made_of(texts, files)
    if not options.train:
        if (kept := trained.kept(key)) is not None:
            return kept
        console.print(f"{trained.FILE.name} is of other texts, encoders or code: training anew (minutes)")
    heads = {
        language: _trained(language, halves.train, files, options.out, console) for language, halves in texts.items()
    }
    if options.train:
        trained.keep(key, heads)
    return heads


def _measured(
    texts: Mapping[str, dataset.Halves],
    heads: Mapping[str, training.Trained],
    packed: Path,
    scratch: Path,
    console: Console,
) -> dict[str, Any]:
    light = LIGHT / "build" / "model.tar.gz"
    if not light.is_file():
        raise workshop.BuildError(f"{light} is missing, which this model is compared with; run `make models`")
    folder = scratch / "model"
    held_out = [example for halves in texts.values() for example in halves.held_out]
    with workshop.bar(console, "serving the held-out texts", len(held_out)) as advance:
        served, facts = workshop.serve(packed, folder, [example.text for example in held_out], advance)
    rival = _mixed(texts)
    with workshop.bar(console, "moderation-light serving the same", len(rival)) as advance:
        lights, _ = workshop.serve(light, scratch / "light", [example.text for example in rival], advance)
    lines = [
        workshop.serve_lines(folder, [example.text for example in held_out[::4]], threads)
        for threads in sorted({1, os.cpu_count() or 1})
    ]
    return _report(texts, heads, served, lights, {**facts, "lines": lines}, packed)


def _mixed(texts: Mapping[str, dataset.Halves]) -> list[dataset.Example]:
    """Return the English held-out texts, and after them as many Chinese ones."""
    english = texts["english"].held_out
    return [*english, *texts["chinese"].held_out[: len(english)]]


def _trained(
    language: str, examples: Sequence[dataset.Example], files: Mapping[str, bytes], out: Path, console: Console
) -> training.Trained:
    blocks = training.BLOCKS[language]
    rows = training.vectors(blocks, examples, files, out / f"vectors-{language}.npz", console)
    return training.train(blocks, examples, rows, training.PENALTIES[language])


def _more_files(
    encoders: Mapping[str, bytes], heads: Mapping[str, training.Trained], *, baked: bool
) -> dict[str, bytes]:
    """Return what stands in the archive beside the encoders; model.json carries the version of all the rest."""
    files = {
        "LICENSE": (LIGHT / "encoder" / "LICENSE").read_bytes(),
        "LICENSE.e5": (HERE / "encoder" / "LICENSE.e5").read_bytes(),
        "LICENSE.training-data": (LIGHT / "data" / "surge_LICENSE").read_bytes(),
        "NOTICE": (HERE / "encoder" / "NOTICE").read_bytes(),
        "code/inference.py": (HERE / "code" / "inference.py").read_bytes(),
        f"code/{workshop.CONTRACT.name}": workshop.CONTRACT.read_bytes(),
    }
    if not baked:
        files["code/requirements.txt"] = (HERE / "code" / "requirements.txt").read_bytes()
    model = {"name": NAME, "heads": {language: made.document for language, made in heads.items()}}
    version = archive.version({**encoders, **files, "model.json": json.dumps(model).encode()})
    files["model.json"] = (json.dumps({"version": version, **model}) + "\n").encode()
    return files


def _report(
    texts: Mapping[str, dataset.Halves],
    heads: Mapping[str, training.Trained],
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
        "heads": {language: _head(language, made) for language, made in heads.items()},
        "held_out": measured["mixed"],
        "by_language": {language: measured[language] for language in texts},
        "against": {
            "model": lights[0]["verdict"]["model"],
            "version": lights[0]["verdict"]["version"],
            **{name: _pair(pair) for name, pair in against.items()},
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


def _head(language: str, made: training.Trained) -> dict[str, Any]:
    return {
        "blocks": [".".join(block) for block in training.BLOCKS[language]],
        "penalty": made.head.penalty,
        "threshold": made.head.threshold,
        "out_of_fold_accuracy": made.head.accuracy,
        "out_of_fold_log_loss": [{"penalty": penalty, "log_loss": loss} for penalty, loss in made.head.log_loss],
    }


def _pair(pair: paired.Paired) -> dict[str, Any]:
    return {
        **asdict(pair),
        "heavy_accuracy": pair.first_accuracy,
        "light_accuracy": pair.second_accuracy,
        "gain": dict(zip(("value", "low", "high"), pair.gain, strict=True)),
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
