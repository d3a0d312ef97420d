"""Serves moderation-light under the SageMaker inference contract: model_fn, input_fn, predict_fn, output_fn.

Rules
- What it takes and answers is moderation_contract.py's, beside this file in the archive.
- A text is read up to the tokenizer's limit (128 tokens, the two markers included); what follows is not looked at.
- CUDA serves where the host has an NVIDIA device and onnxruntime can use it, else the CPU.
  INFERLANE_THREADS sets the threads of one inference (default 1), so that several workers on one host do not fight.

Importing this file loads nothing heavy: numpy, onnxruntime and tokenizers come with model_fn.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moderation_contract import BadRequest, Verdict, input_fn, output_fn, predict_fn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BadRequest", "input_fn", "model_fn", "output_fn", "predict_fn"]

log = logging.getLogger(__name__)

# Texts an inference. On one CPU core 4 to 8 are fastest (measured from 1 to 64: larger ones outgrow the caches); a GPU
# wants enough work to outweigh its launches (not measured).
CPU_BATCH, GPU_BATCH = 8, 64
MAX_CHARACTERS = 16_384  # far above 128 tokens of any language; bounds the tokenizer's work on a 6 MB text


class Encoder:
    """MiniLM on onnxruntime: text to a unit vector (mean over the token vectors, then L2). Training uses it as well."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load `model.onnx` and `tokenizer.json` from `folder`; FileNotFoundError names the one that is missing."""
        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(_present(folder / "tokenizer.json")))
        self._tokenizer.no_padding()  # the file pads every text to 128 tokens; most have a fifth of that
        if self._tokenizer.truncation is None:
            raise ValueError("tokenizer.json sets no truncation; rebuild the archive with build.py")
        self._max_tokens = int(self._tokenizer.truncation["max_length"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads must not burn a core
        self._session = onnxruntime.InferenceSession(
            str(_present(folder / "model.onnx")), options, providers=_providers(onnxruntime.get_available_providers())
        )
        self.provider: str = self._session.get_providers()[0]
        self._batch = CPU_BATCH if self.provider == "CPUExecutionProvider" else GPU_BATCH

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, shape (len(texts), 384). Texts of like length share a batch: padding stays small."""
        import numpy as np

        ids = [self._tokens(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        rows: list[NDArray[np.float32] | None] = [None] * len(ids)
        for start in range(0, len(order), self._batch):
            batch = order[start : start + self._batch]
            for i, row in zip(batch, self._run([ids[i] for i in batch]), strict=True):
                rows[i] = row
        return np.stack([row for row in rows if row is not None])

    def _tokens(self, text: str) -> list[int]:
        # n tokens never need more than n words; cutting there keeps padding by blanks from hiding what follows.
        words = text.split(maxsplit=self._max_tokens)[: self._max_tokens]
        ids: list[int] = self._tokenizer.encode(" ".join(words)[:MAX_CHARACTERS]).ids
        return ids

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import numpy as np

        shape = (len(batch), max(len(ids) for ids in batch))
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, ids in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        hidden = self._session.run(["last_hidden_state"], feed)[0]
        pooled = (hidden * mask[..., None]).sum(axis=1, dtype=np.float32)
        vectors: NDArray[np.float32] = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
        return vectors


@dataclass(frozen=True)
class Moderator:
    """The loaded model: the encoder and the logistic head that `build.py` trained on its vectors."""

    encoder: Encoder
    weights: NDArray[np.float64]
    bias: float
    threshold: float
    name: str
    version: str

    @property
    def provider(self) -> str:
        """Where it serves."""
        return self.encoder.provider

    def judge(self, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """Score every text: the probability, to six digits, that a reader would call it toxic."""
        import numpy as np

        if not texts:  # a batch of nothing but bad records
            return ()
        logits = self.encoder.embed(texts).astype(np.float64) @ self.weights + self.bias
        scores = [round(float(score), 6) for score in 1.0 / (1.0 + np.exp(-logits))]
        return tuple(
            Verdict("toxic" if score >= self.threshold else "ok", score, self.threshold, self.name, self.version)
            for score in scores
        )


def model_fn(model_dir: str) -> Moderator:
    """Load the unpacked archive. FileNotFoundError or ValueError say which part is missing or wrong."""
    import numpy as np

    folder = Path(model_dir)
    head = json.loads(_present(folder / "model.json").read_text(encoding="utf-8"))
    encoder = Encoder(folder, _threads(os.environ))
    log.info("%s %s serves on %s", head["name"], head["version"], encoder.provider)
    return Moderator(
        encoder, np.array(head["weights"], np.float64), head["bias"], head["threshold"], head["name"], head["version"]
    )


def _threads(environment: Mapping[str, str]) -> int:
    value = environment.get("INFERLANE_THREADS", "1")
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"INFERLANE_THREADS must be a whole number of at least 1, not {value!r}")
    return int(value)


def _providers(available: Iterable[str]) -> list[str]:
    # onnxruntime-gpu lists CUDA on any host; asking for it without a device only prints errors before it falls back.
    if "CUDAExecutionProvider" not in available or not any(Path("/dev").glob("nvidia[0-9]*")):
        return ["CPUExecutionProvider"]
    import onnxruntime

    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()  # CUDA and cuDNN from the image's PyTorch, which are on no library path
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def _present(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing from {path.parent}; rebuild the archive with build.py")
    return path
