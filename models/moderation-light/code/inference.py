"""Serves moderation-light under the SageMaker inference contract: model_fn, input_fn, predict_fn, output_fn.

Rules
- A request is `application/json`, `{"text": "…"}` or `{"texts": ["…", …]}` (1 to 256 texts), or `application/jsonlines`
  with one such object a line. Other fields of an object are ignored. Blank lines are skipped. Bodies are UTF-8.
- `text` is answered with one verdict, `texts` with `{"results": [verdict, …]}` in the same order; JSON lines with one
  line of that form a record. A text is `toxic` exactly when its score is at least the threshold.
- A text is read up to the tokenizer's limit (128 tokens, the two markers included); what follows is not looked at.
- A bad request raises BadRequest, whose message is meant for the caller and whose `status` is the HTTP status.
- CUDA serves where the host has an NVIDIA device and onnxruntime can use it, else the CPU.
  INFERLANE_THREADS sets the threads of one inference (default 1), so that several workers on one host do not fight.

Importing this file loads nothing heavy: numpy, onnxruntime and tokenizers come with model_fn.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _ToolkitError = Exception
else:
    # AWS's serving toolkit answers 500 to any exception but its own, and a 500 would be retried on another lane.
    # Where the toolkit is loaded (it always is before this file), BadRequest is one of its errors too: 400, 415, 406
    # reach the caller there too, with the toolkit's traceback under the message. Our own servers read only `status`.
    _ToolkitError = getattr(sys.modules.get("sagemaker_inference.errors"), "BaseInferenceToolkitError", Exception)

log = logging.getLogger(__name__)

JSON, JSON_LINES = "application/json", "application/jsonlines"
MAX_TEXTS = 256
# Texts an inference. On one CPU core 4 to 8 are fastest (measured from 1 to 64: larger ones outgrow the caches); a GPU
# wants enough work to outweigh its launches (not measured).
CPU_BATCH, GPU_BATCH = 8, 64
MAX_CHARACTERS = 16_384  # far above 128 tokens of any language; bounds the tokenizer's work on a 6 MB text


class BadRequest(ValueError, _ToolkitError):  # noqa: N818 (the contract with our model server)
    """The caller's fault: `str()` says what is wrong and what is wanted, `status` is 400, 415 or 406."""

    def __init__(self, message: str, status: int = 400) -> None:
        ValueError.__init__(self, message)
        self.status = status
        self.status_code, self.message, self.phrase = status, message, message  # the toolkit's names for the same


@dataclass(frozen=True)
class Record:
    """One object of a request: its texts, and whether it came as a single `text`."""

    texts: tuple[str, ...]
    single: bool


@dataclass(frozen=True)
class Request:
    """A parsed body: one record from JSON, one a line from JSON lines."""

    records: tuple[Record, ...]
    lines: bool


@dataclass(frozen=True)
class Verdict:
    label: str
    score: float
    threshold: float
    model: str
    version: str


@dataclass(frozen=True)
class Prediction:
    """The verdicts of a request, record by record, in the order asked."""

    request: Request
    verdicts: tuple[tuple[Verdict, ...], ...]


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

    def judge(self, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """Score every text: the probability, to six digits, that a reader would call it toxic."""
        import numpy as np

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


def input_fn(body: bytes | bytearray | str, content_type: str | None) -> Request:
    """Parse a request body (the toolkit hands JSON over already decoded). No content type is taken for JSON."""
    kind, _, parameters = (content_type or JSON).partition(";")
    kind = kind.strip().lower()
    if kind not in (JSON, JSON_LINES):
        raise BadRequest(f"content type {kind!r} is not served; send {JSON} or {JSON_LINES}", status=415)
    _refuse_foreign_charset(parameters)
    text = _decoded(body)
    if not text.strip():
        raise BadRequest('the body is empty; send {"text": "…"} or {"texts": ["…"]}')
    if kind == JSON:
        return Request((_record(text, ""),), lines=False)
    numbered = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    return Request(tuple(_record(line, f"line {number}: ") for number, line in numbered), lines=True)


def predict_fn(data: Request, model: Moderator) -> Prediction:
    """Judge every text of the request, all records together."""
    verdicts = iter(model.judge([text for record in data.records for text in record.texts]))
    return Prediction(data, tuple(tuple(next(verdicts) for _ in record.texts) for record in data.records))


def output_fn(prediction: Prediction, accept: str | None) -> tuple[str, str]:
    """Return the body and its content type: JSON lines for a JSON lines request or where only those are accepted."""
    accepted = set(_accepted(accept or "*/*"))
    if not accepted & {JSON, JSON_LINES, "application/*", "*/*"}:
        raise BadRequest(f"no type in Accept {accept!r} is served; accept {JSON} or {JSON_LINES}", status=406)
    answers = [
        asdict(verdicts[0]) if record.single else {"results": [asdict(verdict) for verdict in verdicts]}
        for record, verdicts in zip(prediction.request.records, prediction.verdicts, strict=True)
    ]
    lines = [json.dumps(answer) for answer in answers]
    if prediction.request.lines or not accepted & {JSON, "application/*", "*/*"}:
        return "".join(line + "\n" for line in lines), JSON_LINES
    return lines[0], JSON


def _record(text: str, where: str) -> Record:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{where}not valid JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # a number of more than 4,300 digits; thousands of brackets
        raise BadRequest(f"{where}JSON that cannot be read: {error}") from None
    if not isinstance(value, Mapping):
        raise BadRequest(f'{where}expected an object like {{"text": "…"}}, not {_kind(value)}')
    if ("text" in value) == ("texts" in value):
        found = "both" if "text" in value else "neither"
        raise BadRequest(f'{where}expected one of "text" and "texts", found {found}')
    if "text" in value:
        return Record((_text(value["text"], f"{where}text"),), single=True)
    texts = value["texts"]
    if not isinstance(texts, list):
        raise BadRequest(f"{where}texts must be a list of strings, not {_kind(texts)}")
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise BadRequest(f"{where}texts must hold 1 to {MAX_TEXTS} strings, not {len(texts)}; split the request")
    return Record(tuple(_text(item, f"{where}texts[{index}]") for index, item in enumerate(texts)), single=False)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{where} must be a string, not {_kind(value)}")
    if not value.strip():
        raise BadRequest(f"{where} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{where} holds half of a surrogate pair at character {error.start}") from None
    return value


def _decoded(body: bytes | bytearray | str) -> str:
    if isinstance(body, str):
        return body.removeprefix("\ufeff")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not valid UTF-8 (byte {error.start})") from None


def _refuse_foreign_charset(parameters: str) -> None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8", "us-ascii"):
            raise BadRequest(f"charset {charset!r} is not served; send UTF-8", status=415)


def _accepted(accept: str) -> Iterator[str]:
    for choice in accept.lower().split(","):
        kind, *parameters = (part.strip().replace(" ", "") for part in choice.split(";"))
        if not any(parameter in ("q=0", "q=0.0", "q=0.00", "q=0.000") for parameter in parameters):
            yield kind


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


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
