"""Serves moderation-heavy under the SageMaker inference contract: model_fn, input_fn, predict_fn, output_fn.

Rules
- What it takes and answers is moderation_contract.py's, beside this file in the archive.
- A text's script chooses its head: `chinese` where at least a fifth of its letters are Chinese characters, else
  `english`. What either was trained on stands in the README; other languages go through `english`, unmeasured.
- A head looks at the vectors of chosen inner layers of the encoders: multilingual-e5-small, and for `english` MiniLM
  beside it. A score does not depend on the texts that a text is judged with.
- A text is read up to 512 tokens by e5 and 256 by MiniLM; what follows is not looked at.
- It serves on the CPU. INFERLANE_THREADS sets the threads of one inference (default 1, so that several workers on one
  host do not fight). Under batch transform the default is every core, shared among the server's workers: nothing else
  runs on the instance.

Importing this file loads nothing heavy: numpy, onnxruntime and tokenizers come with model_fn.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moderation_contract import BadRequest, Verdict, input_fn, output_fn, predict_fn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BadRequest", "input_fn", "model_fn", "output_fn", "predict_fn"]

log = logging.getLogger(__name__)

E5, MINILM = "e5", "minilm"
ENGLISH, CHINESE = "english", "chinese"
PREFIX = {E5: "query: ", MINILM: ""}  # what multilingual-e5 was trained with
# Tokens an inference, padding included. These products keep one core busy from a single text on: with fewer tokens
# short texts pay a call's fixed cost; with more, what lies between the layers falls out of a core's cache (512 took an
# eighth more of a core a text than 128 or 256, 8,192 twice as much).
BATCH_TOKENS = 256
MAX_CHARACTERS = 16_384  # far above 512 tokens of any language; bounds the tokenizer's work on a 6 MB text
CHINESE_SHARE = 0.2


class Encoder:
    """One encoder on onnxruntime: text to the pooled vectors of its layers. Training uses it as well."""

    def __init__(self, folder: Path, name: str, threads: int) -> None:
        """Load `{name}.onnx` and `{name}.tokenizer.json` from `folder`; FileNotFoundError names what is missing."""
        import onnxruntime
        from tokenizers import Tokenizer

        self.name = name
        self._tokenizer = Tokenizer.from_file(str(_present(folder / f"{name}.tokenizer.json")))
        if self._tokenizer.truncation is None:
            raise ValueError(f"{name}.tokenizer.json sets no truncation; rebuild the archive with build.py")
        self._max_tokens = int(self._tokenizer.truncation["max_length"])
        options = onnxruntime.SessionOptions()
        # Threads take batches of their own: within one of these small products they would mostly wait for each other.
        options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(_present(folder / f"{name}.onnx")), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}
        self.layers: tuple[str, ...] = tuple(node.name for node in self._session.get_outputs())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name) if threads > 1 else None

    def embed(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return for each layer one row a text, shape (len(texts), 384). Texts of like length share a batch."""
        import numpy as np

        ids = [self._tokens(text) for text in texts]
        batches = _batches([len(row) for row in ids])
        run = self._pool.map if self._pool and len(batches) > 1 else map
        rows = {layer: np.empty((len(ids), 384), np.float32) for layer in self.layers}
        for batch, outputs in zip(batches, run(lambda batch: self._run([ids[i] for i in batch]), batches), strict=True):
            for layer, output in zip(self.layers, outputs, strict=True):
                rows[layer][batch] = output
        return rows

    def _tokens(self, text: str) -> list[int]:
        # n tokens never need more than n words; cutting there keeps padding by blanks from hiding what follows.
        words = text.split(maxsplit=self._max_tokens)[: self._max_tokens]
        ids: list[int] = self._tokenizer.encode(PREFIX[self.name] + " ".join(words)[:MAX_CHARACTERS]).ids
        return ids

    def _run(self, batch: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        import numpy as np

        shape = (len(batch), max(len(ids) for ids in batch))
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, ids in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        outputs: list[NDArray[np.float32]] = self._session.run(
            list(self.layers), {name: feed[name] for name in self._inputs}
        )
        return outputs


@dataclass(frozen=True)
class Block:
    """One layer's part of a head: the vector is centred, scaled to length one and weighed."""

    encoder: str
    layer: str
    centre: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """A logistic head that `build.py` trained."""

    blocks: tuple[Block, ...]
    bias: float
    threshold: float

    @property
    def encoders(self) -> frozenset[str]:
        """The encoders it looks at."""
        return frozenset(block.encoder for block in self.blocks)

    def scores(self, vectors: Mapping[tuple[str, str], NDArray[np.float32]]) -> list[float]:
        """The probability, to six digits, that a reader would call each text toxic."""
        import numpy as np

        logits = self.bias + sum(
            unit(vectors[block.encoder, block.layer], block.centre) @ block.weights for block in self.blocks
        )
        return [round(float(score), 6) for score in 1.0 / (1.0 + np.exp(-np.asarray(logits)))]


@dataclass(frozen=True)
class Moderator:
    """The loaded model."""

    encoders: Mapping[str, Encoder]
    heads: Mapping[str, Head]
    name: str
    version: str

    @property
    def provider(self) -> str:
        """Where it serves."""
        return "CPUExecutionProvider"

    def judge(self, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """Judge every text by the head of its script."""
        chosen = [script(text) for text in texts]
        verdicts: dict[int, Verdict] = {}
        for language, head in self.heads.items():
            mine = [i for i, choice in enumerate(chosen) if choice == language]
            if not mine:
                continue
            vectors = vectors_of(self.encoders, head.encoders, [texts[i] for i in mine])
            for i, score in zip(mine, head.scores(vectors), strict=True):
                label = "toxic" if score >= head.threshold else "ok"
                verdicts[i] = Verdict(label, score, head.threshold, self.name, self.version)
        return tuple(verdicts[i] for i in range(len(texts)))


def vectors_of(
    encoders: Mapping[str, Encoder], names: frozenset[str], texts: Sequence[str]
) -> dict[tuple[str, str], NDArray[np.float32]]:
    """Return the rows of every layer of the encoders `names`, by encoder and layer."""
    return {(name, layer): rows for name in sorted(names) for layer, rows in encoders[name].embed(texts).items()}


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Deal texts into batches, the longest first, so that no batch pads to more than BATCH_TOKENS."""
    batches: list[list[int]] = []
    room = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not room:
            room = max(1, BATCH_TOKENS // max(1, lengths[i]))
            batches.append([])
        batches[-1].append(i)
        room -= 1
    return batches


def unit(rows: NDArray[np.float32], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows less `centre`, each of length one."""
    import numpy as np

    centred = rows.astype(np.float64) - centre
    scaled: NDArray[np.float64] = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    return scaled


def script(text: str) -> str:
    """Return the head for a text: by the share of Chinese characters among its letters."""
    letters = [letter for letter in text[:MAX_CHARACTERS] if letter.isalpha()]
    han = sum("\u3400" <= letter <= "\u9fff" or "\U00020000" <= letter <= "\U0003ffff" for letter in letters)
    return CHINESE if letters and han >= CHINESE_SHARE * len(letters) else ENGLISH


def model_fn(model_dir: str) -> Moderator:
    """Load the unpacked archive. FileNotFoundError or ValueError say which part is missing or wrong."""
    folder = Path(model_dir)
    model = json.loads(_present(folder / "model.json").read_text(encoding="utf-8"))
    threads = _threads(os.environ)
    heads = {language: _head(head) for language, head in model["heads"].items()}
    names = frozenset[str]().union(*(head.encoders for head in heads.values()))
    encoders = {name: Encoder(folder, name, threads) for name in sorted(names)}
    log.info("%s %s serves with %d threads", model["name"], model["version"], threads)
    return Moderator(encoders, heads, model["name"], model["version"])


def _head(document: Mapping[str, object]) -> Head:
    import numpy as np

    blocks = tuple(
        Block(block["encoder"], block["layer"], np.array(block["centre"]), np.array(block["weights"]))
        for block in document["blocks"]  # type: ignore[attr-defined]
    )
    return Head(blocks, float(document["bias"]), float(document["threshold"]))  # type: ignore[arg-type]


def _threads(environment: Mapping[str, str]) -> int:
    value = environment.get("INFERLANE_THREADS")
    if value is None:
        if environment.get("SAGEMAKER_BATCH", "").lower() != "true":
            return 1
        workers = environment.get("SAGEMAKER_MODEL_SERVER_WORKERS", "1")
        return max(1, (os.cpu_count() or 1) // max(1, int(workers) if workers.isdecimal() else 1))
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"INFERLANE_THREADS must be a whole number of at least 1, not {value!r}")
    return int(value)


def _present(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing from {path.parent}; rebuild the archive with build.py")
    return path
