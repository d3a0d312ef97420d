"""Under batch transform a bad line is answered in its place, by both models and through a real model server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import moderation_contract
import pytest
import urllib3

from .conftest import CONTRACT, load_inference

JSON, JSON_LINES = "application/json", "application/jsonlines"
LINES = b'{"text": "Thanks, see you tomorrow."}\n{"text": ""}\nnonsense\n{"texts": ["You worthless idiot.", "ok"]}\n'


class Echo:
    """A model whose verdicts are the texts."""

    def judge(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """Return a verdict a text, labelled with the text."""
        return tuple(moderation_contract.Verdict(text, 0.0, 0.5, "echo", "1") for text in texts)


def answers(body: bytes | str, content_type: str = JSON_LINES) -> list[Any]:
    """What a model of the contract answers, line by line."""
    request = moderation_contract.input_fn(body, content_type)
    text, _ = moderation_contract.output_fn(moderation_contract.predict_fn(request, Echo()), content_type)
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEMAKER_BATCH", "true")


@contextmanager
def server(model_dir: Path, **environment: str) -> Iterator[str]:
    """A model server on an unpacked archive; gives its URL once it is healthy."""
    command = [sys.executable, "-m", "workbench.stack.sagemaker.model.container", "--model-dir", str(model_dir)]
    own = {key: value for key, value in os.environ.items() if not key.startswith(("SAGEMAKER_", "INFERLANE_"))}
    process = subprocess.Popen(
        command, env=own | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline().split()[1])}"
        while urllib3.request("GET", f"{url}/ping").status != 200:
            assert process.poll() is None
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def post(url: str, body: bytes, content_type: str = JSON_LINES) -> urllib3.BaseHTTPResponse:
    return urllib3.request("POST", f"{url}/invocations", body=body, headers={"Content-Type": content_type}, timeout=60)


@pytest.mark.usefixtures("batch")
def test_bad_lines_keep_their_places() -> None:
    """A bad line is answered with its error where it stood; its neighbours are judged as if it were not there."""
    first, empty, nonsense, last = answers(LINES)
    assert first["label"] == "Thanks, see you tomorrow."
    assert empty == {"inferlane_error": {"status": 400, "detail": "text is empty"}}
    assert nonsense["inferlane_error"]["detail"].startswith("not valid JSON: Expecting value")
    assert [result["label"] for result in last["results"]] == ["You worthless idiot.", "ok"]


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize(
    ("body", "details"),
    [
        (b'{"text": "a"}\n\n{"text": "b"}', [None, "the record is empty", None]),
        (b"\n", ["the record is empty"]),
        (b'{"text": "\xff"}\n{"text": "b"}\n', ["the record is not valid UTF-8 (byte 10)", None]),
        (b'\xef\xbb\xbf{"text": "a"}\r\n[]', [None, 'expected an object like {"text": "…"}, not a list']),
        ('{"text": "a\\ud800"}\n', ["text holds half of a surrogate pair at character 1"]),
        (bytearray(b'{"text": "a"}'), [None]),
        (b"null\n" * 300, ['expected an object like {"text": "…"}, not null'] * 300),
    ],
)
def test_a_line_is_an_answer(body: bytes | str, details: list[str | None]) -> None:
    """As many lines come back as were sent, whatever stands in them."""
    assert [answer.get("inferlane_error", {}).get("detail") for answer in answers(body)] == details


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"text": "a"}', None),
        (b'{"text": ""}', "text is empty"),
        (b"", "the record is empty"),
        (b'{"text": "\xff"}', "the record is not valid UTF-8 (byte 10)"),
        (b"[]", 'expected an object like {"text": "…"}, not a list'),
    ],
)
def test_an_object_of_its_own_keeps_its_reason(body: bytes, detail: str | None) -> None:
    """A failed transform job would not say which object it failed for, nor why."""
    [answer] = answers(body, JSON)
    assert answer.get("inferlane_error") == (detail and {"status": 400, "detail": detail})


@pytest.mark.usefixtures("batch")
def test_other_faults_fail_the_body() -> None:
    """What holds for the whole job, a content type that is not served, is refused in a batch as anywhere."""
    with pytest.raises(moderation_contract.BadRequest) as raised:
        answers(b"nonsense", "text/csv")
    assert raised.value.status == 415


@pytest.mark.parametrize("value", ["", "false", "1"])
def test_only_a_batch_is_lenient(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Where SAGEMAKER_BATCH is not true, one bad line refuses the whole body, with its number."""
    monkeypatch.setenv("SAGEMAKER_BATCH", value)
    with pytest.raises(moderation_contract.BadRequest, match="line 2: text is empty"):
        answers(LINES)


def test_contract_stands_alone() -> None:
    """The contract's file needs nothing but the standard library, so that an archive can carry it."""
    code = "import sys, moderation_contract; print(sorted({'numpy', 'onnxruntime', 'building'} & set(sys.modules)))"
    environment = {"PYTHONPATH": str(CONTRACT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("archive", ["model_dir", "heavy_dir"])
def test_through_the_server(archive: str, request: pytest.FixtureRequest) -> None:
    """The shipped archives in a real server: in a batch bad lines stay with themselves, outside it one refuses all."""
    folder: Path = request.getfixturevalue(archive)
    with server(folder, SAGEMAKER_BATCH="true") as url:
        answer = post(url, LINES)
        rows = [json.loads(line) for line in answer.data.splitlines()]
        assert answer.status == 200
        assert [next(iter(row)) for row in rows] == ["label", "inferlane_error", "inferlane_error", "results"]
        assert rows[0]["label"] == "ok"
        assert [result["label"] for result in rows[3]["results"]] == ["toxic", "ok"]
        assert rows[1]["inferlane_error"] == {"status": 400, "detail": "text is empty"}
    with server(folder) as url:
        refused = post(url, LINES)
        assert (refused.status, b"line 2: text is empty" in refused.data) == (400, True)
        assert len(post(url, b'{"text": "a"}\n\n{"text": "b"}\n').data.splitlines()) == 2


def test_toolkit_sees_our_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under AWS's toolkit a BadRequest is one of the toolkit's errors, whose status code reaches the caller."""

    class BaseInferenceToolkitError(Exception):
        """As in sagemaker_inference.errors: the toolkit reads status_code, message and phrase."""

    toolkit = ModuleType("sagemaker_inference.errors")
    toolkit.BaseInferenceToolkitError = BaseInferenceToolkitError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sagemaker_inference.errors", toolkit)
    module = load_inference(CONTRACT / "moderation_contract.py", "contract_under_toolkit")
    with pytest.raises(BaseInferenceToolkitError) as raised:
        module.input_fn(b"", "text/csv")
    assert raised.value.status_code == 415  # type: ignore[attr-defined]
    assert raised.value.message == str(raised.value)  # type: ignore[attr-defined]
