"""Model code under the toolkit's rules."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.stack.sagemaker.model.toolkit import ContractError, Handler, Reply

ECHO = """
def model_fn(model_dir): return "M"
def input_fn(body, content_type): return (type(body).__name__, content_type)
def predict_fn(data, model): return [model, *data]
def output_fn(prediction, accept): return f"{prediction} {accept}"
"""
Load = Callable[..., Handler]


def whole(reply: Reply) -> bytes:
    """The body of an answer that is not streamed."""
    assert isinstance(reply.body, bytes)
    return reply.body


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads model code from a model directory; import state is put back afterwards."""
    path, modules = list(sys.path), set(sys.modules)

    def load(code: str, **environment: str) -> Handler:
        program = tmp_path / "code" / environment.get("SAGEMAKER_PROGRAM", "inference.py")
        program.parent.mkdir(exist_ok=True)
        program.write_text(code)
        return Handler(tmp_path, environment)

    yield load
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.fidelity(
    "containers",
    "JSON and CSV reach input_fn as text, the rest as bytes; no Accept, or */*, is the default accept",
    source="aws/sagemaker-inference-toolkit@f79853d: transformer.py",
)
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "application/json"}, "['M', 'str', 'application/json'] application/json"),
        (
            {"content-type": "text/csv; charset=utf-8", "Accept": "*/*"},
            "['M', 'bytes', 'text/csv; charset=utf-8'] application/json",
        ),
        ({"Content-Type": "image/png", "accept": "text/plain"}, "['M', 'bytes', 'image/png'] text/plain"),
        ({}, "['M', 'bytes', None] application/json"),
    ],
)
def test_types(load: Load, headers: dict[str, str], expected: str) -> None:
    """JSON and CSV arrive as text, the rest, parameters included, as bytes; no Accept, or */*, is the default."""
    reply = load(ECHO).answer(b"{}", headers)
    assert (reply.status, whole(reply).decode()) == (200, expected)
    assert reply.content_type == expected.rsplit(" ", 1)[1]


def test_a_body_that_is_not_utf8(load: Load) -> None:
    """JSON that is not UTF-8 reaches the model as bytes, so that its own refusal is what the caller gets."""
    refusing = """
class Refusal(Exception):
    status = 400
def input_fn(body, content_type): raise Refusal(type(body).__name__)
"""
    reply = load(ECHO + refusing).answer(b'{"text": "\xff"}', {"Content-Type": "application/json"})
    assert (reply.status, reply.body) == (400, b"bytes")


@pytest.mark.fidelity(
    "containers",
    "SAGEMAKER_PROGRAM and SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT are obeyed",
    source="aws/sagemaker-inference-toolkit@f79853d: parameters.py",
)
def test_environment(load: Load) -> None:
    """The program's name and the default accept come from the environment."""
    handler = load(ECHO, SAGEMAKER_PROGRAM="serve.py", SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT="text/x")
    assert handler.answer(b"", {}).content_type == "text/x"


@pytest.mark.fidelity(
    "containers",
    "transform_fn serves alone; handlers may take a context",
    source="aws/sagemaker-inference-toolkit@f79853d: transformer.py",
)
def test_transform_and_context(load: Load) -> None:
    """transform_fn serves alone; a function with one more argument gets the context; a tuple sets the content type."""
    handler = load("""
def model_fn(model_dir, context): return context.system_properties["model_dir"]
def transform_fn(model, body, content_type, accept, context):
    context.set_response_header(0, "X-Seen", context.get_request_header(0, "X-Given"))
    return body, "image/png"
""")
    reply = handler.answer(b"\x89PNG", {"x-given": "7"})
    assert (reply.body, reply.content_type, reply.headers) == (b"\x89PNG", "image/png", {"X-Seen": "7"})


def test_a_generator_is_an_answer_in_parts(load: Load) -> None:
    """Text, bytes and JSON parts go out as bytes, one at a time; what fails before the first is an HTTP error."""
    handler = load(
        ECHO
        + """
def output_fn(prediction, accept):
    yield from (b"a", "b", {"c": 1}) if accept != "text/x" else (1 / 0,)
"""
    )
    reply = handler.answer(b"", {})
    assert not isinstance(reply.body, bytes)
    assert list(reply.body) == [b"a", b"b", b'{"c": 1}']
    assert handler.answer(b"", {"Accept": "text/x"}).status == 500


@pytest.mark.fidelity(
    "containers",
    "pre_model_fn runs before model_fn, model_warmup_fn after it",
    source="aws/sagemaker-inference-toolkit@f79853d: transformer.py",
)
def test_hooks_run_in_order(load: Load) -> None:
    """pre_model_fn runs before model_fn, model_warmup_fn after it with the model."""
    handler = load(
        ECHO
        + """
seen = []
def pre_model_fn(model_dir): seen.append("pre")
def model_fn(model_dir): seen.append("model"); return seen
def model_warmup_fn(model_dir, model): model.append("warm")
def execution_parameters(): return {"MaxPayloadInMB": 6}
"""
    )
    assert whole(handler.answer(b"{}", {"Content-Type": "application/json"})).startswith(b"[['pre', 'model', 'warm']")
    assert handler.execution_parameters() == {"MaxPayloadInMB": 6}


@pytest.mark.fidelity(
    "containers",
    "An unhandled exception of a handler is HTTP 500",
    source="aws/sagemaker-inference-toolkit@f79853d: transformer.py",
)
def test_exceptions(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """An exception is a 500 with its text and a traceback, also in the log; a 4xx status of its own is kept."""
    handler = load(
        ECHO
        + """
class Refusal(Exception):
    def __init__(self, status): super().__init__("not this"); self.status = status
def predict_fn(data, model):
    if data[1]: raise Refusal(int(data[1]))
    raise KeyError("weights")
"""
    )
    assert (reply := handler.answer(b"", {})).status == 500
    assert whole(reply).startswith(b"'weights'\nTraceback (most recent call last)")
    assert whole(reply).rstrip().endswith(b"KeyError: 'weights'")
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert (reply := handler.answer(b"", {"content-type": "422"})).status == 422
    assert reply.body == b"not this"
    assert handler.answer(b"", {"content-type": "302"}).status == 500


@pytest.mark.fidelity(
    "containers",
    "transform_fn beside input_fn, predict_fn or output_fn is refused",
    source="aws/sagemaker-inference-toolkit@f79853d: transformer.py",
)
def test_the_toolkits_own_errors(load: Load) -> None:
    """An error of the toolkit's kind has its status, and its message before the traceback."""
    handler = load(
        ECHO
        + """
class ToolkitError(Exception):
    def __init__(self): self.status_code, self.message, self.phrase = 507, "no room", "No Room"
def predict_fn(data, model): raise ToolkitError()
"""
    )
    reply = handler.answer(b"", {})
    assert reply.status == 507
    assert whole(reply).startswith(b"no room\nTraceback")


DOUBLE = """
def model_fn(model_dir): return 2
def predict_fn(data, model): return data * model
"""


def npy(array: Any) -> bytes:
    """An array as NPY has it."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.fidelity(
    "containers",
    "Without input_fn and output_fn, arrays come and go as JSON, CSV or NPY; other types are a 500",
    source="aws/sagemaker-inference-toolkit decoder.py, encoder.py, default_inference_handler.py",
)
@pytest.mark.parametrize(
    ("sent", "content_type", "accept", "expected"),
    [
        (b"[[1, 2]]", "application/json", None, b"[[2, 4]]"),
        (b"1,2\n3,4\n", "text/csv", "text/csv", b"2.0,4.0\n6.0,8.0\n"),
        (npy(np.array([1, 2])), "application/x-npy", "application/json", b"[2, 4]"),
        (b"[1]", "application/json", "application/x-npy", npy(np.array([2]))),
    ],
)
def test_default_codecs(load: Load, sent: bytes, content_type: str, accept: str | None, expected: bytes) -> None:
    """The toolkit's default functions decode, and encode as Accept says."""
    headers = {"Content-Type": content_type} | ({"Accept": accept} if accept else {})
    reply = load(DOUBLE).answer(sent, headers)
    assert (reply.status, whole(reply), reply.content_type) == (200, expected, accept or "application/json")


@pytest.mark.parametrize(
    ("code", "headers", "text"),
    [
        (DOUBLE, {"Content-Type": "image/png"}, b"Content type image/png is not supported by this framework"),
        (DOUBLE, {"Content-Type": "application/json", "Accept": "a/b"}, b"Content type a/b is not supported"),
        ("def model_fn(d): pass", {"Content-Type": "application/json"}, b"\nPlease provide a predict_fn"),
    ],
)
def test_what_the_defaults_cannot_do(load: Load, code: str, headers: dict[str, str], text: bytes) -> None:
    """Types without a codec, and a program without predict_fn, are a 500 with the toolkit's words."""
    reply = load(code).answer(b"[1]", headers)
    assert reply.status == 500
    assert whole(reply).startswith(text)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def predict_fn(d, m): pass", "inference.py does not define model_fn"),
        ("def transform_fn(m, b, c, a): pass", "inference.py does not define model_fn"),
        (ECHO + "\ndef transform_fn(m, b, c, a): pass", "Cannot use transform_fn implementation in conjunction with"),
    ],
)
def test_broken_contracts(load: Load, code: str, message: str) -> None:
    """Code that does not keep the contract is refused when it is loaded, with what is missing."""
    with pytest.raises(ContractError, match=message):
        load(code)


def test_misplaced_code(tmp_path: Path) -> None:
    """An archive with a folder around everything gets a hint."""
    with pytest.raises(ContractError, match=r"has no code/inference\.py$"):
        Handler(tmp_path, {})
    (tmp_path / "model" / "code").mkdir(parents=True)
    (tmp_path / "model" / "code" / "inference.py").touch()
    with pytest.raises(ContractError, match=r"found model/code/inference\.py: files must be at the archive's root"):
        Handler(tmp_path, {})
