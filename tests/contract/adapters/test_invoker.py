"""The Invoker contract, run against the fake and against the SageMaker adapter over real sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from functions.aws.sagemaker_runtime import SageMakerRuntime
from functions.core.outcome import Kind, Outcome
from functions.ports import Invoker
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.unit.core.builders import DEDICATED, MODEL, NOW, topology
from tests.unit.handlers.fakes import FakeClock, FakeInvoker, failing, hanging, healthy

LANE = topology().sync_lanes(MODEL)["dedicated"]
CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "session-token")
ENDPOINT = str(DEDICATED["endpoint"])
ACCOUNT = "123456789012"
SEE = f"See https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logEventViewer:group=/aws/sagemaker/Endpoints/{ENDPOINT} in account {ACCOUNT} for more information."  # noqa: E501 - AWS's own sentence


def adapter(url: str) -> SageMakerRuntime:
    return SageMakerRuntime("us-east-1", CREDENTIALS, url)


def invoke(invoker: Invoker, timeout_s: float = 5.0, body: bytes = b'{"text":"hi"}') -> Outcome:
    return invoker.invoke(
        LANE, body, "application/json", "text/csv", timeout_s, {"x-amzn-sagemaker-inference-id": "r-1"}
    )


# --- what both promise -------------------------------------------------------------------------------------------

Made = tuple[Invoker, Callable[[], int]]
"""An invoker, and how many attempts reached its lane."""


@contextmanager
def fake(state: str) -> Iterator[Made]:
    behaviours = {
        "healthy": healthy(0.0, Outcome(Kind.OK, 200, b"\x00answer", "image/png")),
        "hanging": hanging(),
        "absent": failing(Kind.UNREACHABLE),
        "throttled": failing(Kind.THROTTLED, status=400),
    }
    made = FakeInvoker(FakeClock(NOW), {"dedicated": behaviours[state]})
    yield made, lambda: len(made.seen)


@contextmanager
def real(state: str) -> Iterator[Made]:
    replies = {
        "healthy": Reply(200, b"\x00answer", {"content-type": "image/png"}),
        "hanging": Reply(after_s=30),
        "throttled": Reply(400, b'{"message":null}', {"x-amzn-ErrorType": "ThrottlingException"}),
    }
    if state == "absent":
        yield adapter(unused_url()), lambda: 1
        return
    with Stub(replies[state]) as stub:
        yield adapter(stub.url), lambda: len(stub.received)


@pytest.fixture(params=[fake, real], ids=["fake", "sagemaker"])
def making(request: pytest.FixtureRequest) -> Callable[[str], object]:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("healthy", Kind.OK),
        ("hanging", Kind.TIMEOUT),
        ("absent", Kind.UNREACHABLE),
        ("throttled", Kind.THROTTLED),
    ],
)
def test_an_attempt_is_one_attempt_and_an_outcome(
    making: Callable[..., Iterator[Made]], state: str, kind: Kind
) -> None:
    """Never an exception, never a second try, never longer than its time; bytes and type as the model sent them."""
    with making(state) as (invoker, attempts):  # type: ignore[attr-defined]
        began = time.monotonic()
        outcome = invoke(invoker, 0.3)
        assert time.monotonic() - began < 1.0
        assert outcome.kind is kind
        assert attempts() == 1
        if kind is Kind.OK:
            assert (outcome.status, outcome.body, outcome.content_type) == (200, b"\x00answer", "image/png")


# --- the wire, exactly -------------------------------------------------------------------------------------------


def model_error(status: int, text: str) -> bytes:
    side = "client" if 400 <= status < 500 else "server"
    return json.dumps(
        {
            "LogStreamArn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/{ENDPOINT}",
            "Message": f'Received {side} error ({status}) from primary with message "{text}". {SEE}',
            "OriginalMessage": text,
            "OriginalStatusCode": status,
        }
    ).encode()


def message(text: str | None) -> bytes:
    return json.dumps({"message": text}).encode()


TIMED_OUT = "Your invocation timed out while waiting for a response from container primary."
WIRE = [
    (400, "ThrottlingException", message(None), Kind.THROTTLED),
    (429, "ModelNotReadyException", message("Model is not ready."), Kind.NOT_READY),
    (424, "ModelError", model_error(500, "boom"), Kind.MODEL_ERROR),
    (424, "ModelError", model_error(0, TIMED_OUT), Kind.UPSTREAM_ERROR),
    (424, "ModelError", model_error(503, "queue full"), Kind.BUSY),
    (424, "ModelError", model_error(429, "queue full"), Kind.BUSY),
    (503, "ServiceUnavailable", message("Service unavailable."), Kind.UNREACHABLE),
    (500, "InternalFailure", message("Internal failure."), Kind.UPSTREAM_ERROR),
    (530, "InternalDependencyException", message("Dependency failed."), Kind.UPSTREAM_ERROR),
    (413, None, message("HTTP content length exceeded 6291456 bytes."), Kind.TOO_LARGE),
    (400, "ValidationError", message("Request r-1 has oversize body."), Kind.TOO_LARGE),
    (400, "ValidationError", message(f"Endpoint {ENDPOINT} of account {ACCOUNT} not found."), Kind.UPSTREAM_ERROR),
    (400, "ValidationError", message("Inference component has no capacity"), Kind.UPSTREAM_ERROR),
    (403, "AccessDeniedException", message(f"User: arn:aws:sts::{ACCOUNT}:x is not authorized"), Kind.UPSTREAM_ERROR),
    (502, None, b"<html>Bad Gateway</html>", Kind.UPSTREAM_ERROR),
    (504, None, b"", Kind.UPSTREAM_ERROR),
    (429, None, b"not json", Kind.THROTTLED),
    (400, "ThrottlingException:http://internal.amazon.com/x", message(None), Kind.THROTTLED),
    (302, None, b"", Kind.UPSTREAM_ERROR),
]


@pytest.mark.parametrize(
    ("status", "code", "body", "kind"), WIRE, ids=[f"{status}-{code}-{kind}" for status, code, _, kind in WIRE]
)
def test_every_wire_form_has_its_outcome(status: int, code: str | None, body: bytes, kind: Kind) -> None:
    """One attempt; our own faults are upstream's; no account id in the detail."""
    headers = {"content-type": "application/json"} | ({"x-amzn-ErrorType": code} if code else {})
    with Stub(Reply(status, body, headers)) as stub:
        outcome = invoke(adapter(stub.url))
        assert len(stub.received) == 1
    assert outcome.kind is kind
    assert ACCOUNT not in outcome.detail
    assert outcome.body == b""


@pytest.mark.parametrize(
    ("status", "text", "content_type"),
    [
        (400, '{"error": "no text"}', "application/json"),
        (415, "unsupported: application/x-unknown", "text/plain; charset=utf-8"),
        (422, 'a "quoted" word', "text/plain; charset=utf-8"),
        (404, "", "text/plain; charset=utf-8"),
    ],
)
def test_the_containers_own_refusal_comes_back_whole(status: int, text: str, content_type: str) -> None:
    """Its status and its text; the console link with the account id stays behind."""
    reply = Reply(424, model_error(status, text), {"x-amzn-ErrorType": "ModelError"})
    with Stub(reply) as stub:
        outcome = invoke(adapter(stub.url))
    assert (outcome.kind, outcome.status) == (Kind.CALLER_ERROR, status)
    assert (outcome.body, outcome.content_type) == (text.encode(), content_type)


def test_without_the_original_message_the_quoted_one_serves() -> None:
    """Older answers carry the text in the sentence only."""
    body = json.dumps(
        {"OriginalStatusCode": 400, "Message": f'Received client error (400) from primary with message "bad". {SEE}'}
    ).encode()
    with Stub(Reply(424, body, {"x-amzn-ErrorType": "ModelError"})) as stub:
        assert invoke(adapter(stub.url)).body == b"bad"


def test_the_request_is_signed_as_it_is_sent() -> None:
    """Recomputing SigV4 over what arrived gives the signature that arrived; path, host, token and headers included."""
    with Stub() as stub:
        invoke(adapter(stub.url))
        host = stub.url.removeprefix("http://")
    got = stub.received[0]
    assert (got.method, got.path) == ("POST", f"/endpoints/{ENDPOINT}/invocations")
    assert (got.headers["content-type"], got.headers["accept"]) == ("application/json", "text/csv")
    assert got.headers["x-amzn-sagemaker-inference-id"] == "r-1"
    assert got.headers["x-amz-security-token"] == "session-token"
    assert got.headers["host"] == host
    signed = got.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest(got.method, stub_url(host, got.path), data=got.body)
    for name in signed:
        request.headers[name] = got.headers[name]
    request.context["timestamp"] = got.headers["x-amz-date"]
    signer = SigV4Auth(CREDENTIALS, "sagemaker", "us-east-1")
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    assert got.headers["authorization"].endswith(f"Signature={signer.signature(to_sign, request)}")


def stub_url(host: str, path: str) -> str:
    return f"http://{host}{path}"


def test_absent_content_type_and_accept_are_not_invented() -> None:
    """As boto3: neither header is sent."""
    with Stub() as stub:
        adapter(stub.url).invoke(LANE, b"", None, None, 1.0, {})
    assert not {"content-type", "accept"} & set(stub.received[0].headers)


def test_connections_are_kept_and_used_again() -> None:
    """Five attempts, one connection."""
    with Stub(Reply(200, b"{}")) as stub:
        invoker = adapter(stub.url)
        assert [invoke(invoker).kind for _ in range(5)] == [Kind.OK] * 5
        assert stub.connections == 1


def test_a_connection_closed_while_idle_is_replaced() -> None:
    """The peer closed after its answer: the next attempt uses a fresh connection and succeeds."""
    with Stub(Reply(200, b"{}", ending="close")) as stub:
        invoker = adapter(stub.url)
        assert invoke(invoker).kind is Kind.OK
        time.sleep(0.2)
        assert invoke(invoker).kind is Kind.OK
        assert (stub.connections, len(stub.received)) == (2, 2)


def test_a_request_that_was_not_wholly_sent_is_sent_once_more() -> None:
    """The peer resets while 5 MB are being written: it saw half a request, so it is sent again, and runs once."""
    with Stub(Reply(200, b"{}"), Reply(ending="reset_early"), Reply(200, b"done")) as stub:
        invoker = adapter(stub.url)
        invoke(invoker)
        outcome = invoke(invoker, body=b"x" * 5_000_000)
        assert (outcome.kind, outcome.body) == (Kind.OK, b"done")
        assert len(stub.received) == 2


def test_a_peer_that_never_takes_the_request_is_unreachable() -> None:
    """Twice not sent: given up."""
    with Stub(Reply(ending="reset_early")) as stub:
        assert invoke(adapter(stub.url), body=b"x" * 5_000_000).kind is Kind.UNREACHABLE
        assert (stub.connections, len(stub.received)) == (2, 0)


def test_what_was_not_sent_is_sent_again_within_a_budget() -> None:
    """Every connection breaks: one in five is tried again, the others go to the next lane at once."""
    with Stub(Reply(ending="reset_early")) as stub:
        invoker = adapter(stub.url)
        kinds = {invoke(invoker, body=b"x" * 5_000_000).kind for _ in range(11)}
        assert kinds == {Kind.UNREACHABLE}
        assert stub.connections == 11 + 1 + 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(ending="none"), Kind.LOST),
        (Reply(200, b"half an answer", ending="short"), Kind.LOST),
        (Reply(200, b"x" * 100, drip_s=0.1), Kind.TIMEOUT),
        (Reply(200, b"late", after_s=5), Kind.TIMEOUT),
    ],
    ids=["closed without an answer", "closed in the middle", "dripping", "late"],
)
def test_what_may_have_run_is_never_repeated(reply: Reply, kind: Kind) -> None:
    """The whole request was sent: one attempt, whatever became of the answer, within its time."""
    with Stub(Reply(200, b"{}"), reply) as stub:
        invoker = adapter(stub.url)
        invoke(invoker)
        began = time.monotonic()
        assert invoke(invoker, 0.4).kind is kind
        assert time.monotonic() - began < 1.0
        assert len(stub.received) == 2


def test_after_a_timeout_the_next_attempt_gets_its_own_answer() -> None:
    """A late answer must never be taken for the next request's."""
    with Stub(Reply(200, b"first", after_s=0.4), Reply(200, b"second")) as stub:
        invoker = adapter(stub.url)
        assert invoke(invoker, 0.1).kind is Kind.TIMEOUT
        assert invoke(invoker).body == b"second"
