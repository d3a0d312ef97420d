"""Requests to a model process, lean: one POST with a whole body on a kept-open connection, its whole answer back.

Every invocation passes here, and the client library's general request costs five times as much processor time as this
(`python -m workbench.bench sagemaker` measures what is left). Streams and large bodies go by the library.

Both ends are HTTP/1.1; an answer's body is told by Content-Length or comes in chunks. Where it is neither, or is cut
off, the connection is given up and a `ConnectionError` raised, as for a connection that cannot be made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

_END = b"\r\n\r\n"


class Reply(NamedTuple):
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Connections:
    """Kept-open connections to one process."""

    url: str
    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)
    _closed: bool = False

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request. Raises `ConnectionError`; the caller sets the time limit."""
        reader, writer = await self._open()
        try:
            writer.write(self._head(path, headers, len(body)) + body)
            reply = await _read(reader)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            writer.close()
            raise ConnectionResetError("the answer is cut off, or no HTTP") from error
        except BaseException:
            writer.close()
            raise
        if self._closed or reply.headers.get("connection", "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return reply

    def close(self) -> None:
        """Give up all connections; what is in flight on them ends by itself."""
        self._closed = True
        while self._idle:
            self._idle.pop()[1].close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        parts = urlsplit(self.url)
        return await asyncio.open_connection(parts.hostname, parts.port)

    def _head(self, path: str, headers: Mapping[str, str], length: int) -> bytes:
        lines = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(self.url).netloc}", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode("latin-1") + _END


async def _read(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(_END)).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    fields = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    if (length := headers.get("content-length")) is not None:
        return Reply(status, headers, await reader.readexactly(int(length)))
    if headers.get("transfer-encoding", "").lower() != "chunked":
        if status in (204, 304):
            return Reply(status, headers, b"")
        raise ValueError("the answer does not tell its length")
    parts: list[bytes] = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";", 1)[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        """Trailers."""
    return Reply(status, headers, b"".join(parts))
