"""Connections to a model process: kept open, given up when broken, whole answers in either form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from workbench.stack.sagemaker.model.connection import Connections

Answers = Callable[..., Awaitable[tuple[Connections, list[bytes]]]]


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    """A server that answers each request of a connection with the next of some texts, then closes it."""
    servers: list[asyncio.Server] = []
    seen: list[bytes] = []

    async def start(*texts: bytes) -> tuple[Connections, list[bytes]]:
        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for text in texts:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                seen.append(head + await reader.readexactly(length))
                writer.write(text)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(converse, "127.0.0.1", 0)
        servers.append(server)
        port = server.sockets[0].getsockname()[1]
        return Connections(f"http://127.0.0.1:{port}"), seen

    yield start
    for server in servers:
        server.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=1\r\ncde\r\n0\r\n\r\n"


async def test_request_and_answer(answers: Answers) -> None:
    """The request is as given; the answer's headers are found in lower case."""
    connections, seen = await answers(OK)
    reply = await connections.post("/invocations", {"Accept": "a/b"}, b"body")
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, "text/x", b"hi")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /invocations HTTP/1.1"
    assert b"Accept: a/b" in head
    assert b"Content-Length: 4" in head
    assert body == b"body"


async def test_a_connection_is_used_again(answers: Answers) -> None:
    """Two requests, one connection; when the process has closed it, another is made."""
    connections, seen = await answers(OK, CHUNKED)
    bodies = [(await connections.post("/", {}, b"%d" % n)).body for n in range(2)]
    await asyncio.sleep(0.05)  # the end of the connection is noticed
    bodies.append((await connections.post("/", {}, b"2")).body)
    assert bodies == [b"hi", b"abcde", b"hi"]
    assert len(seen) == 3


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        CHUNKED[:-9],
        b"HTTP/1.1 200 OK\r\n\r\nhi",
        b"no http\r\n\r\n",
    ],
    ids=["nothing", "cut off", "cut off in chunks", "no length", "no http"],
)
async def test_what_is_no_answer(answers: Answers, text: bytes) -> None:
    """An answer that is cut off, or whose end cannot be told, is a broken connection."""
    connections, _ = await answers(text)
    with pytest.raises(ConnectionError):
        await connections.post("/", {}, b"")


async def test_nobody_listens() -> None:
    """A process that is gone is a broken connection."""
    with pytest.raises(ConnectionError):
        await Connections("http://127.0.0.1:9").post("/", {}, b"")
