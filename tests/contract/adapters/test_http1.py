"""The HTTP client over real sockets: framing as the standard library reads it, failures told apart, TLS verified."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.aws.http1 import AnswerError, ConnectError, NotSentError, Peer, Response
from tests.contract.adapters.stub import stop_accepting, unused_url

Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve, context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[int]]]:
    """Each connection is given to `serve`. The address, and a list with an entry for each connection."""
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                connections.append(1)
                threading.Thread(target=one, args=(sock,), daemon=True).start()

        def one(sock: socket.socket) -> None:
            try:
                if context is not None:
                    sock = context.wrap_socket(sock, server_side=True)
                with sock:
                    serve(sock)
            except OSError:
                sock.close()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        scheme = "http" if context is None else "https"
        try:
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", connections
        finally:
            stop_accepting(listener, accepting)


def request(sock: socket.socket) -> bytes:
    """One whole request."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError("no request")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body


def answering(*answers: bytes, pieces: int = 1_000_000, then_close: bool = False) -> Serve:
    """Answer one request after the other with these bytes, `pieces` bytes at a time."""

    def serve(sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for answer in answers:
            request(sock)
            for at in range(0, len(answer), pieces):
                sock.sendall(answer[at : at + pieces])
        if not then_close:
            time.sleep(5)

    return serve


def post(url: str, body: bytes = b"body", timeout_s: float = 3.0, headers: dict[str, str] | None = None) -> Response:
    return Peer(url).exchange("/path", headers or {}, body, time.monotonic() + timeout_s)


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n02\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
CLOSED = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, CLOSED, CONTINUED], ids=["length", "chunks", "closed", "continued"])
@pytest.mark.parametrize("pieces", [1, 7, 100_000])
def test_every_framing_in_whatever_pieces_it_comes(answer: bytes, pieces: int) -> None:
    """By length, in chunks with extension and trailer, until closed, after an interim answer."""
    with server(answering(answer, pieces=pieces, then_close=True)) as (url, _):
        found = post(url)
    assert (found.status, found.body) == (200, b"hello")


names = st.from_regex(r"\A[a-z][a-z0-9-]{0,10}\Z").filter(
    lambda name: name not in ("content-length", "transfer-encoding", "connection")
)
texts = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([200, 400, 424, 429, 500, 503, 530]),
    st.lists(st.tuples(names, texts), max_size=6),
    st.binary(max_size=3000),
    st.booleans(),
    st.integers(1, 4000),
)
def test_it_reads_what_the_standard_library_reads(
    status: int, headers: list[tuple[str, str]], body: bytes, chunked: bool, pieces: int
) -> None:
    """Any proper answer: same status, headers and body."""
    lines = [f"HTTP/1.1 {status} Some Reason", *[f"{name}:  {value}" for name, value in headers]]
    if chunked:
        lines.append("transfer-encoding: chunked")
        parts = [body[at : at + 700] for at in range(0, len(body), 700)]
        sent = b"".join(f"{len(part):X}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"
    else:
        lines.append(f"content-length: {len(body)}")
        sent = body
    answer = "\r\n".join([*lines, "", ""]).encode() + sent
    with server(answering(answer, pieces=max(pieces, len(answer) // 20))) as (url, _):
        ours = post(url)
        theirs_connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=3)
        theirs_connection.request("POST", "/path", body=b"body")
        theirs = theirs_connection.getresponse()
        their_body = theirs.read()
        theirs_connection.close()
    assert (ours.status, ours.body) == (theirs.status, their_body)
    assert ours.headers == {name.lower(): theirs.headers[name] for name in theirs.headers} or len(
        {name for name, _ in headers}
    ) < len(headers)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 99 No\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
    ],
)
def test_what_is_no_answer_is_an_error_of_the_answer(answer: bytes) -> None:
    """Closed, something else than HTTP, framing that contradicts itself, or no end: the request was sent, though."""
    with server(answering(answer, then_close=True)) as (url, _), pytest.raises(AnswerError):
        post(url)


def test_an_answer_to_half_a_request_is_taken() -> None:
    """A server that refuses 20 MB by its head answers 413 and closes without reading on."""

    def serve(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        time.sleep(0.3)

    with server(serve) as (url, _):
        try:
            assert post(url, b"x" * 20_000_000).status == 413
        except NotSentError:
            pytest.skip("this machine's TCP dropped the answer with the reset")


def test_nobody_there_is_a_connect_error() -> None:
    """A refused connection and a name that does not exist."""
    with pytest.raises(ConnectError):
        post(unused_url())
    with pytest.raises(ConnectError):
        post("http://nothing.invalid")


@contextmanager
def deaf() -> Iterator[int]:
    """A port that lets nobody in: its queue is full and nobody accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as waiting:
        for _ in range(3):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            with suppress(BlockingIOError):
                sock.connect(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_caller_short_of_time_does_not_make_the_peer_absent() -> None:
    """Time over before the connection stood, in TCP or in TLS, is a timeout; a whole second in vain is the peer's."""
    with deaf() as port, server(lambda _: time.sleep(5)) as (silent, _):
        for url in (f"http://127.0.0.1:{port}", silent.replace("http:", "https:")):
            with pytest.raises(TimeoutError):
                post(url, timeout_s=0.1)
            started = time.monotonic()
            with pytest.raises(ConnectError):
                post(url, timeout_s=5)
            assert 0.9 < time.monotonic() - started < 2


def test_addresses_of_a_name_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs does not keep the next from being tried, and together they take no longer than one."""
    with deaf() as port, server(answering(PLAIN)) as (url, _):
        hanging = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        there = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(url.rpartition(":")[2])))
        found = [hanging, hanging, there]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        started = time.monotonic()
        assert post("http://several.example").body == b"hello"
        assert time.monotonic() - started < 1
        found.pop()
        with pytest.raises(ConnectError):
            post("http://several.example", timeout_s=5)
        assert time.monotonic() - started < 2.5
        found.clear()
        with pytest.raises(ConnectError, match="no address"):
            post("http://several.example")


def test_time_bounds_the_whole_exchange() -> None:
    """Not each read: a byte now and then does not prolong it."""
    started = time.monotonic()

    def serve(sock: socket.socket) -> None:
        request(sock)
        for byte in PLAIN:
            sock.sendall(bytes([byte]))
            time.sleep(0.05)

    with server(serve) as (url, _), pytest.raises(TimeoutError):
        post(url, timeout_s=0.3)
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\x00b"])
def test_a_header_cannot_carry_another(value: str) -> None:
    """Refused before anything is sent."""
    with server(answering(PLAIN)) as (url, connections):
        with pytest.raises(ValueError, match="control character"):
            post(url, headers={"content-type": value})
        assert connections == []


@pytest.mark.parametrize(
    ("first", "kept"),
    [
        (PLAIN, True),
        (CHUNKED, True),
        (PLAIN.replace(b"Content-Type: text/plain", b"Connection: close"), False),
        (PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"), False),
        (PLAIN + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", False),
    ],
    ids=["length", "chunks", "asked to close", "1.0", "more than the answer"],
)
def test_a_connection_is_used_again_only_when_that_is_safe(first: bytes, kept: bool) -> None:
    """Above all, nobody gets the rest of another's answer."""
    second = PLAIN.replace(b"hello", b"world")

    def serve(sock: socket.socket) -> None:
        for _ in range(2):
            seen = request(sock)
            sock.sendall(first if seen.endswith(b"one") else second)

    with server(serve) as (url, connections):
        peer = Peer(url)
        assert peer.exchange("/", {}, b"one", time.monotonic() + 3).body == b"hello"
        assert peer.exchange("/", {}, b"two", time.monotonic() + 3).body == b"world"
        assert len(connections) == (1 if kept else 2)


def test_what_comes_late_on_an_idle_connection_meets_no_request() -> None:
    """It is found to be readable, and closed."""
    poisoned = threading.Event()

    def serve(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(PLAIN)
        if not poisoned.is_set():
            time.sleep(0.05)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            poisoned.set()
        time.sleep(1)

    with server(serve) as (url, connections):
        peer = Peer(url)
        peer.exchange("/", {}, b"one", time.monotonic() + 3)
        assert poisoned.wait(3)
        time.sleep(0.05)
        assert peer.exchange("/", {}, b"two", time.monotonic() + 3).body == b"hello"
        assert len(connections) == 2


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A self-signed certificate of 127.0.0.1: the server's context, and what a client must trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, both = folder / "cert.pem", folder / "both.pem"
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public.write_bytes(pem)
    both.write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, public


def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown certificate is nobody; a trusted one serves, twice over one connection, and only under its name."""
    context, public = certificate(tmp_path)
    with server(answering(PLAIN, PLAIN), context) as (url, connections):
        with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            post(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(public))
        peer = Peer(url)
        began = len(connections)
        assert [peer.exchange("/", {}, b"b", time.monotonic() + 3).body for _ in range(2)] == [b"hello"] * 2
        assert len(connections) - began in (1, 2), "a session ticket that comes after the answer costs a connection"
        with pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            post(url.replace("127.0.0.1", "localhost"))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://runtime.sagemaker.us-east-1.amazonaws.com", "runtime.sagemaker.us-east-1.amazonaws.com"),
        ("https://h:443/x", "h"),
        ("http://h:80", "h"),
        ("http://h:443", "h:443"),
        ("http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_the_host_header_names_a_port_that_is_not_the_schemes(url: str, host: str) -> None:
    """As every client does, so that the signature over it holds."""
    assert Peer(url).host == host


@pytest.mark.parametrize("url", ["ftp://h", "h", "http://"])
def test_an_address_that_is_none_is_an_error_at_once(url: str) -> None:
    """Not at the first request."""
    with pytest.raises(ValueError, match="names no HTTP host"):
        Peer(url)
