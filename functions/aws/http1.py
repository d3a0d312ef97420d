"""HTTP/1.1 to one host over kept connections: the lean half of the way to a model.

The exchange itself, in one piece of data each way, costs 25 µs; urllib3 and http.client around it cost 90 to 190 more,
mostly in parsing headers as if they were e-mail, and in sending head and body apart. The standard library still
resolves, connects and verifies TLS; here are only framing (RFC 9112) and what the router must know of a failure:

* `ConnectError`: nobody was reached. `NotSentError`: the connection broke before the whole request was handed over;
  nothing can have run, since a server acts on a complete request only. (It may still answer an incomplete one, as with
  an early 413; such an answer is taken.) `AnswerError`: the request was sent, and no proper answer came.
* `TimeoutError` at `ends`, which bounds the whole exchange, not each read, nor each address of a name: connecting is
  given up after a second in all. Only the resolver cannot be hurried.

A connection is used again only after an answer that was read to its end, within 20 s, and if nothing has come in on
it meanwhile: a peer that closed it, or a late byte of something else, must not meet the next request.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_CONNECT_S: Final = 1.0
"""A service in the same region accepts within milliseconds; a dead one must not eat the fallback's time."""
_IDLE_S: Final = 20.0
"""Less than services keep an idle connection; covers a Lambda that was frozen in between."""
_KEPT: Final = 16
"""A Lambda instance works on one request at a time; other drivers on some more."""
_CHUNK: Final = 65536
_LONGEST_HEAD: Final = 65536
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?", re.ASCII | re.DOTALL)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


class ConnectError(ConnectionError):
    """No connection."""


class NotSentError(ConnectionError):
    """The connection broke before the whole request was written."""


class AnswerError(ConnectionError):
    """The request was sent; the answer broke off, or is no HTTP."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, read to its end. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Peer:
    """One host. Threads may share it; connections are theirs alone while in use."""

    def __init__(self, url: str, largest: int | None = None) -> None:
        """`url` gives scheme, host and port. Nothing is connected yet.

        `largest` bounds what is read of an answer, in bytes: for a host that is not trusted.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} names no HTTP host")
        self._secure = parts.scheme == "https"
        self._name = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        shown = f"[{self._name}]" if ":" in self._name else self._name
        self.host: Final = shown if parts.port in (None, 443 if self._secure else 80) else f"{shown}:{parts.port}"
        """What the Host header says."""
        self._largest = largest
        self._tls: ssl.SSLContext | None = None
        self._idle: list[tuple[socket.socket, float]] = []

    def exchange(
        self, path: str, headers: Mapping[str, str], body: bytes, ends: float, method: str = "POST"
    ) -> Response:
        """One exchange. `ends` is a reading of `time.monotonic()`. Raises the module's errors, or ValueError."""
        head = _head(method, path, self.host, headers, len(body))
        sock = self._taken() or self._connect(ends)
        try:
            sent = _send(sock, head + body, ends)
            try:
                response, reusable = _Reader(sock, ends, self._largest).response()
            except AnswerError as error:
                if sent:
                    raise
                raise NotSentError("broke while the request was being written") from error
        except BaseException:
            sock.close()
            raise
        if reusable and sent and len(self._idle) < _KEPT:
            self._idle.append((sock, time.monotonic()))
        else:
            sock.close()
        return response

    def _taken(self) -> socket.socket | None:
        """An idle connection that is still good; the others are closed."""
        while self._idle:
            try:
                sock, since = self._idle.pop()
            except IndexError:  # another thread took the last
                return None
            if time.monotonic() - since < _IDLE_S and not _readable(sock):
                return sock
            sock.close()
        return None

    def _connect(self, ends: float) -> socket.socket:
        limit = min(ends, time.monotonic() + _CONNECT_S)
        try:
            return self._secured(self._reached(limit), limit)
        except TimeoutError as error:
            if time.monotonic() >= ends:  # the caller's time was short: that says nothing of the peer
                raise TimeoutError("the attempt's time was over before there was a connection") from error
            raise ConnectError(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            raise ConnectError(f"{type(error).__name__}: {error}") from error

    def _reached(self, limit: float) -> socket.socket:
        """The first of the host's addresses that accepts. Those left share the time that is left."""
        addresses = socket.getaddrinfo(self._name, self._port, type=socket.SOCK_STREAM)
        for place, (family, kind, protocol, _, address) in enumerate(addresses, 1):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(_left(limit) / (len(addresses) - place + 1))
                sock.connect(address)
            except OSError:
                sock.close()
                if place == len(addresses):
                    raise
            else:
                return sock
        raise OSError("the name has no address")

    def _secured(self, sock: socket.socket, limit: float) -> socket.socket:
        if not self._secure:
            return sock
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        try:
            sock.settimeout(_left(limit))
            return self._tls.wrap_socket(sock, server_hostname=self._name)
        except BaseException:
            sock.close()
            raise


def _head(method: str, path: str, host: str, headers: Mapping[str, str], length: int) -> bytes:
    if _CONTROL.search(" ".join(headers.values())):
        raise ValueError("a header holds a control character")
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", *[f"{name}: {value}" for name, value in headers.items()]]
    return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode("latin-1")


def _send(sock: socket.socket, data: bytes, ends: float) -> bool:
    """Whether all was handed over; False when the peer broke off, in which case an answer may still lie there."""
    sock.settimeout(_left(ends))
    try:
        sock.sendall(data)
    except TimeoutError:
        raise
    except OSError:
        return False
    return True


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("the attempt's time was over")
    return left


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class _Reader:
    """One answer from a connection."""

    def __init__(self, sock: socket.socket, ends: float, largest: int | None) -> None:
        self._sock = sock
        self._ends = ends
        self._left = largest
        self._data = bytearray()

    def response(self) -> tuple[Response, bool]:
        """The answer, and whether the connection may be used again."""
        status, version, headers = self._head()
        while 100 <= status < 200:
            status, version, headers = self._head()
        closes = "close" in headers.get("connection", "").lower() or version == "0"
        if status in (204, 304):
            body = b""
        elif "transfer-encoding" in headers:
            if headers["transfer-encoding"].strip().lower() != "chunked":
                raise AnswerError("an unknown transfer encoding")
            body = self._chunks()
            closes = closes or "content-length" in headers  # RFC 9112 §6.3: two framings are not to be trusted
        elif "content-length" in headers:
            body = self._exactly(_length(headers["content-length"]))
        else:
            body, closes = self._rest(), True
        return Response(status, headers, body), not closes and not self._data

    def _head(self) -> tuple[int, str, dict[str, str]]:
        lines = self._upto(b"\r\n\r\n").decode("latin-1").split("\r\n")
        found = _STATUS.fullmatch(lines[0])
        if found is None:
            raise AnswerError("not an HTTP status line")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or _NAME.fullmatch(name) is None:
                raise AnswerError("not an HTTP header")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return int(found[2]), found[1], headers

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            size = self._upto(b"\r\n").partition(b";")[0].strip()
            if re.fullmatch(rb"[0-9A-Fa-f]{1,15}", size) is None:
                raise AnswerError("not a chunk size")
            if int(size, 16) == 0:
                while self._upto(b"\r\n"):  # trailers
                    pass
                return b"".join(parts)
            parts.append(self._exactly(int(size, 16)))
            if self._exactly(2) != b"\r\n":
                raise AnswerError("a chunk does not end where it says")

    def _upto(self, mark: bytes) -> bytes:
        """The bytes before `mark`, which is taken as well."""
        begin = 0
        while (at := self._data.find(mark, begin)) < 0:
            begin = max(0, len(self._data) - len(mark) + 1)
            if len(self._data) > _LONGEST_HEAD:
                raise AnswerError("a head without an end")
            if not self._more():
                raise AnswerError("closed without an answer" if not self._data else "closed in the middle of a head")
        found = bytes(self._data[:at])
        del self._data[: at + len(mark)]
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self._data) < count:
            if not self._more():
                raise AnswerError("closed in the middle of the answer")
        found = bytes(self._data[:count])
        del self._data[:count]
        return found

    def _rest(self) -> bytes:
        while self._more():
            pass
        found = bytes(self._data)
        self._data.clear()
        return found

    def _more(self) -> bool:
        """Read on; False at the end of the connection."""
        self._sock.settimeout(_left(self._ends))
        try:
            data = self._sock.recv(_CHUNK)
        except TimeoutError:
            raise
        except OSError as error:
            raise AnswerError(f"{type(error).__name__}: {error}") from error
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise AnswerError("a longer answer than is taken")
        self._data += data
        return bool(data)


def _length(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,15}", text, re.ASCII) is None:
        raise AnswerError("not a content length")
    return int(text)
