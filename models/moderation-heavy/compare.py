#!/usr/bin/env python3
"""Compares candidates for moderation-heavy's heads on the training texts alone, and writes them into the README.

A candidate is a choice of encoders and layers. Its accuracy and log loss are those out of fold, at the penalty with the
least log loss. The English texts are few, so that one deal of them into folds says little: theirs is the mean of five.
No candidate meets a held-out text here. Takes some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "contract"))  # beside inference.py in the archive

from building import head, readme, workshop
from moderation_heavy import training
from moderation_heavy.training import Block

E5_7, E5_10, E5_12 = (("e5", f"layer_{layer}") for layer in (7, 10, 12))
MINILM_5, MINILM_6 = (("minilm", f"layer_{layer}") for layer in (5, 6))
CANDIDATES: dict[str, tuple[tuple[Block, ...], ...]] = {
    "english": (
        (MINILM_6,),
        (MINILM_5,),
        (E5_12,),
        (E5_7,),
        (E5_10,),
        (E5_7, E5_10),
        (E5_12, MINILM_6),
        (E5_7, MINILM_5),
        (E5_7, E5_10, MINILM_5),
        (E5_7, E5_10, E5_12, MINILM_5, MINILM_6),
    ),
    "chinese": ((E5_12,), (E5_7,), (E5_10,), (E5_7, E5_10), (E5_7, E5_10, E5_12)),
}
REPEATS = {"english": 5, "chinese": 1}
PENALTIES = {"english": (0.0625, 0.125, 0.25), "chinese": (0.5, 1.0)}


def main() -> int:
    """Compare; return the exit code."""
    console = Console(stderr=True, highlight=False)
    out = training.HERE / "build"
    out.mkdir(exist_ok=True)
    rows = ["| head | looks at | accuracy out of fold | log loss out of fold | |", "|---|---|---|---|---|"]
    for language, candidates in CANDIDATES.items():
        examples = training.texts()[language].train
        every = sorted({block for blocks in candidates for block in blocks})
        # An encoder that no candidate of the language looks at is made all the same, and not used.
        files = training.encoders([*every, E5_7, MINILM_5])
        vectors = training.vectors(every, examples, files, out / f"candidates-{language}.npz", console)
        for blocks in candidates:
            units, toxic = training.centred(blocks, vectors)[1], workshop.toxic(examples)
            scores = [head.score(units, toxic, penalty, REPEATS[language]) for penalty in PENALTIES[language]]
            accuracy, loss = min(scores, key=lambda pair: pair[1])
            chosen = "chosen" if blocks == training.BLOCKS[language] else ""
            named = ", ".join(".".join(block) for block in blocks)
            rows.append(f"| {language} | {named} | {accuracy:.3f} | {loss:.4f} | {chosen} |")
            console.print(rows[-1], markup=False)
    readme.write(training.HERE / "README.md", "\n".join(rows), "candidates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
