"""Notices: into the queue, and out of it to a topic and to a server over TLS."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from moto import mock_aws

from functions.aws.notices import NoNotices, QueuedNotices
from functions.aws.secrets import SsmSecrets
from functions.aws.webhooks import HttpsWebhooks
from functions.batch_ports import UnavailableError
from functions.core.job import JobKey, JobState
from functions.notify import read_notice, signature
from tests.contract.adapters.batch_tables import client_of, hasty_client_of
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_http1 import certificate, request, server
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.handlers.fakes import FakeLog

__all__ = ["_credentials"]


def test_a_message_for_each_tenant_channel_and_hundred_jobs() -> None:
    """Ids and states, and nothing else; over two channels and 250 jobs of one tenant and one of another."""
    ended = {JobKey("acme", f"{number:032x}"): JobState.DONE for number in range(250)}
    ended[JobKey("other", "x")] = JobState.FAILED
    with mock_aws():
        client = client_of("sqs")
        url = client.create_queue(QueueName="notices")["QueueUrl"]
        QueuedNotices(client, url, ("topic", "webhook"), FakeLog()).send(ended)
        texts: list[str] = []
        while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            texts += [message["Body"] for message in messages]
    notices = [notice for text in texts if (notice := read_notice(text)) is not None]
    assert len(notices) == len(texts) == 8
    for channel in ("topic", "webhook"):
        told = [(notice.tenant, *job) for notice in notices if notice.to == channel for job in notice.jobs]
        assert sorted(told) == sorted((key.tenant, key.id, state.value) for key, state in ended.items())


def test_a_notice_that_cannot_be_sent_is_a_line_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never an error: the record is the truth. How many, and not whose."""
    ended = {JobKey("acme", "x"): JobState.DONE}
    log = FakeLog()
    monkeypatch.setenv("AWS_ENDPOINT_URL", unused_url())
    QueuedNotices(hasty_client_of("sqs"), "https://sqs.test/1/n", ("topic",), log).send(ended)
    refused = json.dumps({"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}).encode()
    with Stub(Reply(200, refused, {"content-type": "application/x-amz-json-1.0"})) as stub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
        QueuedNotices(hasty_client_of("sqs"), "https://sqs.test/1/n", ("topic",), log).send(ended)
    assert [(level, message) for level, message, _ in log.lines] == [
        ("warning", "Notices could not be sent"),
        ("warning", "Notices were refused"),
    ]
    assert log.lines[0][2]["jobs"] == 1
    assert "acme" not in str(log.lines)
    NoNotices().send(ended)


def test_a_secret_is_read_decrypted_and_kept_for_a_while() -> None:
    """So that a busy webhook costs no call each, and a new secret is used within minutes."""
    now = [0.0]
    with mock_aws():
        client = client_of("ssm")
        client.put_parameter(Name="/acme", Value="s1", Type="SecureString")
        secrets = SsmSecrets(client, lambda: now[0])
        assert secrets.read("/acme") == b"s1"
        client.put_parameter(Name="/acme", Value="s2", Type="SecureString", Overwrite=True)
        now[0] = 299.0
        assert secrets.read("/acme") == b"s1"
        now[0] = 300.0
        assert secrets.read("/acme") == b"s2"
        with pytest.raises(UnavailableError, match="ParameterNotFound"):
            secrets.read("/other")


# A webhook, over TLS.

BODY = b'{"jobs":[{"id":"x","status":"done"}]}'


@contextmanager
def receiver(
    answer: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, list[bytes], Callable[[], int]]]:
    """A server whose certificate is trusted: its address, what it received, and how often it was connected to."""
    context, public = certificate(folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))
    received: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        while True:
            received.append(request(sock))
            sock.sendall(answer)

    with server(serve, context) as (url, connections):
        yield url, received, lambda: len(connections)


def test_a_webhook_is_posted_to_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With path, query and headers; what it answers is its status."""
    headers = {"content-type": "application/json", "x-inferlane-signature": "t=1,v1=ab"}
    with receiver(b"HTTP/1.1 204 No Content\r\n\r\n", tmp_path, monkeypatch) as (url, received, _):
        assert HttpsWebhooks().post(f"{url}/hook me?a=b&c=%20", BODY, headers) == 204
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook%20me?a=b&c=%20 HTTP/1.1\r\n")
    assert b"x-inferlane-signature: t=1,v1=ab" in head
    assert body == BODY


def test_a_redirect_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an answer like any other."""
    away = f"HTTP/1.1 307 x\r\nlocation: {unused_url()}/\r\ncontent-length: 0\r\n\r\n".encode()
    with receiver(away, tmp_path, monkeypatch) as (url, received, _):
        assert HttpsWebhooks().post(url, BODY, {}) == 307
        assert len(received) == 1


def test_only_https_is_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even to this machine, and to nobody whose certificate is unknown."""
    with pytest.raises(ValueError, match="https"):
        HttpsWebhooks().post(unused_url(), BODY, {})
    with receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", tmp_path, monkeypatch) as (url, received, _):
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            HttpsWebhooks().post(url, BODY, {})
        assert received == []


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is not ours must not fill our memory."""
    endless = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n" + b"x" * 200_000
    with (
        receiver(endless, tmp_path, monkeypatch) as (url, _, _),
        pytest.raises(UnavailableError, match="longer answer"),
    ):
        HttpsWebhooks().post(url, BODY, {})


def verify(secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """As a receiver would, by the documentation."""
    parts = dict(part.partition("=")[::2] for part in headers["x-inferlane-signature"].split(","))
    wanted = hmac.new(secret, parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, parts["v1"])


def test_a_receiver_can_tell_a_true_notice() -> None:
    """By the secret, the time and the body; a body that was changed on its way is not true."""
    headers = {"x-inferlane-signature": signature(b"secret", 1_700_000_000, BODY)}
    assert verify(b"secret", headers, BODY)
    assert not verify(b"secret", headers, BODY + b" ")
    assert not verify(b"other", headers, BODY)
