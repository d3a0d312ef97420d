"""Where the cloud is, what its refusals mean, and what is worth repeating."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from workbench.stack.deployer.cloud import BotoCloud, is_gone
from workbench.stack.deployer.errors import CloudError, Interrupted


class Answers(ThreadingHTTPServer):
    """Answers each JSON call with the next of `queue`: a status and a document."""

    def __init__(self) -> None:
        self.queue: list[tuple[int, dict[str, object]]] = []
        self.seen: list[str] = []
        super().__init__(("127.0.0.1", 0), AnswersHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class AnswersHandler(BaseHTTPRequestHandler):
    server: Answers

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(self.headers["X-Amz-Target"])
        status, document = self.server.queue.pop(0)
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        """Quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    answers = Answers()
    threading.Thread(target=answers.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", answers.url)
    yield answers
    answers.shutdown()
    answers.server_close()


def test_a_service_can_have_its_own_endpoint(server: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's variable, named as the SDKs name it, wins over the common one."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING", server.url)
    server.queue = [(200, {"ScalableTargets": []})]
    cloud = BotoCloud("us-east-1")

    answer = cloud.call("application-autoscaling", "describe_scalable_targets", {"ServiceNamespace": "sagemaker"})

    assert answer == {"ScalableTargets": []}
    assert cloud.endpoint == "http://127.0.0.1:1"


def test_localstack_variables_choose_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOCALSTACK_HOST works as for every LocalStack client."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("LOCALSTACK_HOST", "127.0.0.1:4599")

    assert BotoCloud("us-east-1").endpoint == "http://127.0.0.1:4599"


def test_what_spreads_is_waited_for(server: Answers) -> None:
    """A role that is not known everywhere yet is tried again, until it is."""
    role: dict[str, object] = {
        "__type": "ValidationException",
        "message": "Could not assume role arn:aws:iam::0:role/r.",
    }
    server.queue = [(400, role), (200, {"ModelArn": "arn"})]
    cloud = BotoCloud("us-east-1", spread_pause_s=0.0)

    model = {"ModelName": "m", "ExecutionRoleArn": "arn:aws:iam::000000000000:role/r"}
    assert cloud.call("sagemaker", "create_model", model) == {"ModelArn": "arn"}
    assert server.seen == ["SageMaker.CreateModel"] * 2


def test_a_refusal_is_one_line_with_operation_and_code(server: Answers) -> None:
    """The message names the call and repeats the cloud's words."""
    server.queue = [(400, {"__type": "ResourceLimitExceeded", "message": "The account-level\n limit is 0"})]

    with pytest.raises(CloudError) as error:
        BotoCloud("us-east-1").call("sagemaker", "delete_model", {"ModelName": "m"})

    assert str(error.value) == "sagemaker.delete_model: ResourceLimitExceeded: The account-level limit is 0"


def test_an_endpoint_that_does_not_know_the_service(server: Answers) -> None:
    """A refusal without a reason names the endpoint and the likely cause."""
    server.queue = [(400, {})]

    with pytest.raises(CloudError, match="gave no reason: does it offer sagemaker"):
        BotoCloud("us-east-1").call("sagemaker", "describe_model", {"ModelName": "m"})


def test_no_cloud_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead endpoint is an error with its address."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    with pytest.raises(CloudError, match=r"127\.0\.0\.1:1"):
        BotoCloud("us-east-1").call("sagemaker", "describe_model", {"ModelName": "m"})


def test_pause_ends_with_the_interruption() -> None:
    """A wait does not outlive Ctrl-C."""
    stop = threading.Event()
    stop.set()

    with pytest.raises(Interrupted):
        BotoCloud("us-east-1", stop).pause(60)


@pytest.mark.parametrize(
    ("code", "text", "gone"),
    [
        ("ResourceNotFoundException", "", True),
        ("NoSuchEntity", "", True),
        ("NoSuchBucketPolicy", "", True),
        ("404", "", True),
        ("ValidationException", 'Could not find endpoint "x".', True),
        ("ObjectNotFoundException", "", True),
        ("ValidationException", "1 validation error detected", False),
        ("AccessDenied", "the resource was not found in a policy", False),
        ("ResourceInUseException", "", False),
    ],
)
def test_what_counts_as_gone(code: str, text: str, gone: bool) -> None:
    """Services say "not there" in many ways; a refusal is not one of them."""
    assert is_gone(CloudError("service.operation", f"{code}: {text}", code)) is gone
