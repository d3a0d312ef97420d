"""An HTTP server on an ephemeral loopback port that answers by script, down to the bytes and the breaks."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from types import TracebackType
from typing import Literal


@dataclass(frozen=True)
class Reply:
    """How one request is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    """Silence before the first byte."""
    drip_s: float = 0.0
    """Pause between the bytes of the body."""
    ending: Literal["keep", "close", "none", "short", "reset_early"] = "keep"
    """keep-alive; close afterwards; no answer at all; half the body; reset before the request was read."""


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Stub:
    """Answers by `script`, one reply a request, the last one for ever."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script) or [Reply()]
        self.received: list[Received] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Stub:
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._closing.set()
        stop_accepting(self._listener, self._accepting)
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            reader = connection.makefile("rb")
            while self._one(connection, reader):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def _next(self) -> Reply:
        with self._lock:
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def _one(self, connection: socket.socket, reader: BufferedReader) -> bool:
        line = reader.readline().decode("latin-1").split()
        if not line:
            return False
        headers: dict[str, str] = {}
        while raw := reader.readline().decode("latin-1").strip():
            name, _, value = raw.partition(":")
            headers[name.lower()] = value.strip()
        reply = self._next()
        if reply.ending == "reset_early":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            reader.close()
            return False
        body = reader.read(int(headers.get("content-length", "0")))
        self.received.append(Received(line[0], line[1], headers, body))
        self._closing.wait(reply.after_s)
        if reply.ending == "none":
            return False
        return self._answer(connection, reply)

    def _answer(self, connection: socket.socket, reply: Reply) -> bool:
        head = [f"HTTP/1.1 {reply.status} Stub", f"content-length: {len(reply.body)}"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        if reply.ending == "short":
            connection.sendall(reply.body[: len(reply.body) // 2])
            return False
        if reply.drip_s:
            for i in range(len(reply.body)):
                connection.sendall(reply.body[i : i + 1])
                time.sleep(reply.drip_s)
        else:
            connection.sendall(reply.body)
        return reply.ending == "keep"


def stop_accepting(listener: socket.socket, accepting: threading.Thread) -> None:
    """Close a listener once its thread is done with it.

    A thread between two `accept` calls would else find its descriptor's number given to the next listener, and answer
    that one's callers.
    """
    listener.shutdown(socket.SHUT_RDWR)
    accepting.join()
    listener.close()


def unused_url() -> str:
    """An address on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
