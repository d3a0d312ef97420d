"""Requests to a container: what is tried again, what is final, and what the log says of either."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.unit.stack.sagemaker.transform.test_request import request
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.settings import Settings
from workbench.stack.sagemaker.transform.instance import Instance, InvocationError
from workbench.stack.sagemaker.transform.request import OfferError, Parameters, parse

CLIENT = "API reference: ModelClientConfig"
Serve = Callable[[list[Any]], Awaitable[tuple[Instance, list[tuple[bytes, Any]]]]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Makes an instance whose container gives scripted answers: statuses, or None for none at all."""
    servers: list[TestServer] = []
    session = aiohttp.ClientSession(skip_auto_headers=("Content-Type",))

    async def start(script: list[Any]) -> tuple[Instance, list[tuple[bytes, Any]]]:
        seen: list[tuple[bytes, Any]] = []

        async def answer(incoming: web.Request) -> web.Response:
            seen.append((await incoming.read(), incoming.headers))
            status = script[min(len(seen), len(script)) - 1]
            if status is None:
                assert incoming.transport is not None
                incoming.transport.abort()
            return web.Response(status=status or 200, text=f"answer {status}\nsecond line")

        app = web.Application()
        app.router.add_post("/invocations", answer)
        app.router.add_get("/execution-parameters", offer)
        servers.append(TestServer(app))
        await servers[-1].start_server()
        document = request(ModelClientConfig={"InvocationsTimeoutInSeconds": 5, "InvocationsMaxRetries": 2})
        host = SimpleNamespace(session=session, settings=Settings(tmp_path, time_scale=1000))
        replica = SimpleNamespace(url=str(servers[-1].make_url("")).rstrip("/"), child=SimpleNamespace(alive=True))
        spec = parse(document, Container("image", None, {}))
        return Instance("i-1", spec, SimpleNamespace(host=host), replica), seen  # type: ignore[arg-type]

    async def offer(_: web.Request) -> web.Response:
        return web.Response(status=offers[0], text=offers[1])

    offers: list[Any] = [404, ""]
    start.offers = offers  # type: ignore[attr-defined]
    yield start
    for server in servers:
        await server.close()
    await session.close()


@pytest.mark.fidelity(
    "batch transform", "A failing request is retried up to InvocationsMaxRetries times", source=CLIENT
)
@pytest.mark.parametrize(
    ("script", "requests"), [([200], 1), ([500, 200], 2), ([None, 503, 200], 3), ([500, None, 500, 200], 3)]
)
async def test_retries(serve: Serve, script: list[Any], requests: int) -> None:
    """A 5xx or a broken connection is tried again, with the same bytes, until the retries are used up."""
    instance, seen = await serve(script)
    if script[requests - 1] == 200:
        assert await instance.invoke(b"body", chunked=False) == b"answer 200\nsecond line"
    else:
        with pytest.raises(InvocationError) as caught:
            await instance.invoke(b"body", chunked=False)
        assert not caught.value.caller
        assert caught.value.lines == [
            "Bad HTTP status received from algorithm: 500", "", "Message:", "answer 500", "second line",
        ]  # fmt: skip
    assert [body for body, _ in seen] == [b"body"] * requests


async def test_no_answer(serve: Serve) -> None:
    """A container that never answers is told of in the service's words."""
    instance, seen = await serve([None])
    with pytest.raises(InvocationError) as caught:
        await instance.invoke(b"body", chunked=False)
    assert (caught.value.lines, caught.value.caller) == (["Unable to get response from algorithm"], False)
    assert len(seen) == 3


@pytest.mark.fidelity(
    "batch transform",
    "A container's 4xx is the record's fault and is not retried",
    source="developer guide: batch-transform-errors",
)
async def test_a_refusal_is_final(serve: Serve) -> None:
    """A 4xx is the record's fault, and is not tried again."""
    instance, seen = await serve([415])
    with pytest.raises(InvocationError) as caught:
        await instance.invoke(b"body", chunked=False)
    assert caught.value.caller
    assert caught.value.lines[0] == "ClientError: 415"
    assert len(seen) == 1


@pytest.mark.fidelity(
    "batch transform",
    "ContentType and Accept go with each request",
    source="API reference: TransformInput, TransformOutput",
)
async def test_headers(serve: Serve) -> None:
    """The job's types are sent; a payload without a limit goes in chunks, any other with its length."""
    instance, seen = await serve([200])
    await instance.invoke(b"body", chunked=False)
    await instance.invoke(b"body", chunked=True)
    plain, chunked = (headers for _, headers in seen)
    assert (plain["Content-Type"], plain["Accept"], plain["Content-Length"]) == ("text/csv", "text/csv", "4")
    assert chunked["Transfer-Encoding"] == "chunked"


async def test_streams_begin_anew(serve: Serve) -> None:
    """A streamed object that fails is sent again from its beginning, and only the last answer is kept."""
    instance, seen = await serve([500, 200])
    answer = io.BytesIO(b"something longer than the answer will ever be")
    await instance.stream(lambda: [b"one", b"two"], answer)
    assert answer.getvalue() == b"answer 200\nsecond line"
    assert [body for body, _ in seen] == [b"onetwo", b"onetwo"]


@pytest.mark.parametrize(
    ("status", "text", "offered"),
    [(404, "", Parameters()), (200, '{"MaxPayloadInMB": 2}', Parameters(payload_mb=2)), (500, "no", Parameters())],
)
async def test_offers(serve: Any, status: int, text: str, offered: Parameters) -> None:
    """What a container offers is taken; one without the path offers nothing."""
    serve.offers[:] = [status, text]
    instance, _ = await serve([200])
    assert await instance.offered() == offered


async def test_no_json(serve: Any) -> None:
    """An offer that is not JSON is an error."""
    serve.offers[:] = [200, "{"]
    instance, _ = await serve([200])
    with pytest.raises(OfferError, match="it is not JSON"):
        await instance.offered()
