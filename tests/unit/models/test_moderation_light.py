"""moderation-light under the SageMaker contract: what it takes and answers, and that the shipped archive serves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .conftest import CONTRACT, FOLDER, load_inference

JSON, JSON_LINES = "application/json", "application/jsonlines"


class LengthEncoder:
    """Stands in for MiniLM: a text's vector is its length alone."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[len(text)] for text in texts], np.float32)


@pytest.fixture
def by_length(inference: ModuleType) -> Any:
    """A model whose score is one half for texts of four characters, and grows with length."""
    return inference.Moderator(LengthEncoder(), np.array([1.0]), -4.0, 0.5, "moderation-light", "v1")


@pytest.fixture(scope="session")
def served(inference: ModuleType, model_dir: Path) -> Any:
    return inference.model_fn(str(model_dir))


def ask(inference: ModuleType, model: Any, body: bytes | str, content_type: str, accept: str | None) -> tuple[str, str]:
    request = inference.input_fn(body, content_type)
    answer: tuple[str, str] = inference.output_fn(inference.predict_fn(request, model), accept)
    return answer


# --- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "texts", "single"),
    [
        (b'{"text": "hi"}', JSON, [["hi"]], [True]),
        (b'{"texts": ["a", "b"]}', JSON, [["a", "b"]], [False]),
        ('{"text": "decoded already"}', JSON, [["decoded already"]], [True]),
        (bytearray(b'{"text": "hi"}'), "Application/JSON; charset=UTF-8", [["hi"]], [True]),
        (b'\xef\xbb\xbf{"text": "byte order mark"}', JSON, [["byte order mark"]], [True]),
        (b'{"id": 7, "text": "hi"}', JSON, [["hi"]], [True]),
        (b'{"text": "no content type"}', None, [["no content type"]], [True]),
        (b'{"text": "a"}\n\n{"texts": ["b"]}\r\n', JSON_LINES, [["a"], ["b"]], [True, False]),
        ('{"text": "a\u2028b"}\n', JSON_LINES, [["a\u2028b"]], [True]),
        (json.dumps({"texts": ["x"] * 256}), JSON, [["x"] * 256], [False]),
    ],
)
def test_input(
    inference: ModuleType, body: bytes | str, content_type: str | None, texts: list[list[str]], single: list[bool]
) -> None:
    """Every documented form of a request is read as its texts, record by record."""
    request = inference.input_fn(body, content_type)
    assert [list(record.texts) for record in request.records] == texts
    assert [record.single for record in request.records] == single


@pytest.mark.parametrize(
    ("body", "content_type", "status", "message"),
    [
        (b"", JSON, 400, "the body is empty"),
        (b" \n ", JSON_LINES, 400, "the body is empty"),
        (b'{"text": "\xff"}', JSON, 400, "the body is not valid UTF-8 (byte 10)"),
        (b'{"text": ', JSON, 400, "not valid JSON: Expecting value at column 10"),
        (b"[" * 100_000, JSON, 400, "JSON that cannot be read"),
        (b'{"n": ' + b"9" * 5_000 + b', "text": "hi"}', JSON, 400, "JSON that cannot be read"),
        (b'["hi"]', JSON, 400, 'expected an object like {"text": "…"}, not a list'),
        (b"null", JSON, 400, 'expected an object like {"text": "…"}, not null'),
        (b"{}", JSON, 400, 'expected one of "text" and "texts", found neither'),
        (b'{"text": "a", "texts": ["b"]}', JSON, 400, 'expected one of "text" and "texts", found both'),
        (b'{"text": 7}', JSON, 400, "text must be a string, not a number"),
        (b'{"text": true}', JSON, 400, "text must be a string, not a boolean"),
        (b'{"text": null}', JSON, 400, "text must be a string, not null"),
        (b'{"text": ""}', JSON, 400, "text is empty"),
        (b'{"text": " \\t\\n"}', JSON, 400, "text is empty"),
        (b'{"text": "a\\ud800"}', JSON, 400, "text holds half of a surrogate pair at character 1"),
        (b'{"texts": "a"}', JSON, 400, "texts must be a list of strings, not a string"),
        (b'{"texts": []}', JSON, 400, "texts must hold 1 to 256 strings, not 0"),
        (json.dumps({"texts": ["x"] * 257}), JSON, 400, "texts must hold 1 to 256 strings, not 257"),
        (b'{"texts": ["a", ""]}', JSON, 400, "texts[1] is empty"),
        (b'{"texts": ["a", {}]}', JSON, 400, "texts[1] must be a string, not an object"),
        (b'{"text": "a"}\n\n{"texts": ["b", ""]}', JSON_LINES, 400, "line 3: texts[1] is empty"),
        (b'{"text": "a"}\nnonsense', JSON_LINES, 400, "line 2: not valid JSON"),
        (b"text\nhi", "text/csv", 415, "content type 'text/csv' is not served"),
        (b'{"text": "a"}', "application/json; charset=latin-1", 415, "charset 'latin-1' is not served"),
    ],
)
def test_bad_input(inference: ModuleType, body: bytes | str, content_type: str, status: int, message: str) -> None:
    """Every fault of the caller is a BadRequest that names the place and carries its HTTP status."""
    with pytest.raises(inference.BadRequest) as raised:
        inference.input_fn(body, content_type)
    assert issubclass(inference.BadRequest, ValueError)
    assert str(raised.value).startswith(message)
    assert raised.value.status == status


# --- output ----------------------------------------------------------------------------------------------------------


def test_single_text(inference: ModuleType, by_length: Any) -> None:
    """One text is answered with one flat verdict."""
    body, content_type = ask(inference, by_length, b'{"text": "12345"}', JSON, JSON)
    assert content_type == JSON
    assert json.loads(body) == {
        "label": "toxic",
        "score": 0.731059,
        "threshold": 0.5,
        "model": "moderation-light",
        "version": "v1",
    }


def test_threshold_is_inclusive(inference: ModuleType, by_length: Any) -> None:
    """A score equal to the threshold is toxic, so a reader can repeat the rule from the answer."""
    body, _ = ask(inference, by_length, b'{"texts": ["1234", "123"]}', JSON, JSON)
    assert [(result["label"], result["score"]) for result in json.loads(body)["results"]] == [
        ("toxic", 0.5),
        ("ok", 0.268941),
    ]


def test_lines_answer_record_by_record(inference: ModuleType, by_length: Any) -> None:
    """JSON lines get one line a record in the order asked, each in the form of its own record."""
    body, content_type = ask(
        inference, by_length, b'{"texts": ["1", "12345"]}\n{"text": "1234567"}\n', JSON_LINES, JSON_LINES
    )
    first, second = (json.loads(line) for line in body.splitlines())
    assert content_type == JSON_LINES
    assert body.endswith("\n")
    assert [result["label"] for result in first["results"]] == ["ok", "toxic"]
    assert second["score"] == pytest.approx(0.952574)


@pytest.mark.parametrize(
    ("sent", "accept", "answered"),
    [
        (JSON, None, JSON),
        (JSON, "", JSON),
        (JSON, "*/*", JSON),
        (JSON, "text/html, Application/JSON;q=0.9", JSON),
        (JSON, "application/*", JSON),
        (JSON, JSON_LINES, JSON_LINES),
        (JSON, "application/json;q=0, application/jsonlines", JSON_LINES),
        (JSON_LINES, None, JSON_LINES),
        (JSON_LINES, JSON, JSON_LINES),  # what AWS's toolkit passes on when the caller named nothing
    ],
)
def test_accept(inference: ModuleType, by_length: Any, sent: str, accept: str | None, answered: str) -> None:
    """The answer's content type follows the request's form within what is accepted."""
    assert ask(inference, by_length, b'{"text": "hi"}', sent, accept)[1] == answered


@pytest.mark.parametrize("accept", ["text/csv", "image/*", "application/json;q=0", "application/json; q=0.0"])
def test_unservable_accept(inference: ModuleType, by_length: Any, accept: str) -> None:
    """An Accept that allows neither form is 406."""
    with pytest.raises(ValueError, match="is served") as raised:
        ask(inference, by_length, b'{"text": "hi"}', JSON, accept)
    assert raised.value.status == 406  # type: ignore[attr-defined]


# --- the module ------------------------------------------------------------------------------------------------------


def test_import_is_cheap() -> None:
    """Importing inference.py loads none of numpy, onnxruntime and tokenizers, and nothing of this project."""
    code = (
        "import runpy, sys; runpy.run_path(sys.argv[1]); "
        "print(sorted({name.partition('.')[0] for name in sys.modules} "
        "& {'numpy', 'onnxruntime', 'tokenizers', 'functions', 'workbench', 'infra', 'building'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(FOLDER / "code" / "inference.py")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(CONTRACT)},
    )
    assert done.stdout.strip() == "[]"


def test_model_without_its_parts(inference: ModuleType, tmp_path: Path) -> None:
    """A folder that is no unpacked archive is an error that names the missing file."""
    with pytest.raises(FileNotFoundError, match=r"model\.json is missing from"):
        inference.model_fn(str(tmp_path))


@pytest.mark.parametrize("threads", ["0", "-1", "two", ""])
def test_threads_must_be_a_count(
    inference: ModuleType, model_dir: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    """A useless INFERLANE_THREADS stops the start with a message, rather than being guessed at."""
    monkeypatch.setenv("INFERLANE_THREADS", threads)
    with pytest.raises(ValueError, match="INFERLANE_THREADS must be a whole number of at least 1"):
        inference.model_fn(str(model_dir))


# --- the archive that ships ------------------------------------------------------------------------------------------


def test_archive_serves_itself(model_dir: Path) -> None:
    """The archive's own inference.py tells an insult from a greeting, and answers with the archive's version."""
    shipped = load_inference(model_dir / "code" / "inference.py", "moderation_light_shipped")
    model = shipped.model_fn(str(model_dir))
    body, _ = ask(
        shipped,
        model,
        json.dumps({"texts": ["You are a worthless idiot, shut up.", "Thanks, see you tomorrow at the office!"]}),
        JSON,
        None,
    )
    results = json.loads(body)["results"]
    assert [result["label"] for result in results] == ["toxic", "ok"]
    assert {result["version"] for result in results} == {json.loads((model_dir / "model.json").read_text())["version"]}


def test_batch_equals_single(served: Any) -> None:
    """A text's score does not depend on the texts it is judged with."""
    texts = ["short", "a somewhat longer text about the weather in May", "x " * 200, "Nobody likes you, loser.", "?"]
    assert [verdict.score for verdict in served.judge(texts)] == pytest.approx(
        [served.judge([text])[0].score for text in texts], abs=2e-6
    )


def test_blanks_hide_nothing(served: Any) -> None:
    """A megabyte of blanks before an insult does not push it out of the model's sight."""
    plain, padded = served.judge(["You are a worthless idiot.", " \n" * 500_000 + "You are a worthless idiot."])
    assert padded == plain


def test_long_text_is_cut_at_the_limit(served: Any) -> None:
    """What follows the tokenizer's limit does not change the score, however much there is."""
    first, longer = served.judge(["word " * 130, "word " * 130 + "idiot " * 500_000])
    assert longer == first


def test_held_out_accuracy(served: Any, step: Callable[[str], ModuleType]) -> None:
    """The shipped model keeps its measured quality: at least 0.88 on the whole held-out half."""
    dataset = step("dataset")
    held_out = dataset.halve(dataset.read(FOLDER / "data" / "surge_toxicity_en.csv")).held_out
    verdicts = served.judge([example.text for example in held_out])
    hits = sum((verdict.label == "toxic") == example.toxic for verdict, example in zip(verdicts, held_out, strict=True))
    assert hits / len(held_out) >= 0.88
