"""Which requests the gateway takes for SageMaker, and how it passes them on."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.stack.gateway import Gateway, Message, api_of, is_sagemaker


def scope(method: str, path: str, headers: dict[str, str] | None = None, query: bytes = b"") -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
    }


@pytest.mark.parametrize(
    ("path", "headers", "ours"),
    [
        ("/", {"X-Amz-Target": "SageMaker.CreateModel"}, True),
        ("/", {"X-Amz-Target": "AnyScaleFrontendService.RegisterScalableTarget"}, True),
        ("/endpoints/e/invocations", {}, True),
        ("/endpoints/e/invocations-response-stream", {}, True),
        ("/_inferlane/faults", {}, True),
        ("/", {"X-Amz-Target": "DynamoDB_20120810.GetItem"}, False),
        ("/endpoints/e", {}, False),
        ("/bucket/endpoints/e/invocations", {}, False),
        ("/_aws/execute-api/a/$default/v1/models/m/invocations", {}, False),
        ("/_localstack/health", {}, False),
    ],
)
def test_takes_only_sagemakers_calls(path: str, headers: dict[str, str], ours: bool) -> None:
    """A request goes to the emulator exactly when its target or path is SageMaker's or ours."""
    assert is_sagemaker(scope("POST", path, headers)) is ours


@pytest.mark.parametrize(
    ("path", "host", "api"),
    [
        ("/_aws/execute-api/64799bb4/$default/v1/lanes", "127.0.0.1:4566", "64799bb4"),
        ("/v1/lanes", "64799bb4.execute-api.localhost:4566", "64799bb4"),
        ("/_localstack/health", "127.0.0.1:4566", None),
        ("/", "sqs.us-east-1.localhost:4566", None),
    ],
)
def test_knows_the_front_door_of_an_api(path: str, host: str, api: str | None) -> None:
    """By path or by host; every other service's calls are told apart."""
    assert api_of(scope("POST", path, {"Host": host})) == api


def test_leaves_other_protocols_alone() -> None:
    """Websockets and lifespan events are MiniStack's, whatever their path."""
    assert not is_sagemaker({"type": "websocket", "path": "/_inferlane/faults", "headers": []})
    assert api_of({"type": "websocket", "path": "/_aws/execute-api/a/$default", "headers": []}) is None


class Exchange:
    """One ASGI request: what was received, what was sent."""

    def __init__(self, body: bytes = b"") -> None:
        self._messages: list[Message] = [
            {"type": "http.request", "body": body[:3], "more_body": True},
            {"type": "http.request", "body": body[3:], "more_body": False},
        ]
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return self._messages.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def no_inner(_scope: Any, _receive: Any, _send: Any) -> None:
    raise AssertionError("this request belongs to the emulator")


async def test_passes_bytes_and_headers_both_ways() -> None:
    """Body bytes, query, content types and SageMaker's own headers arrive untouched; hop-by-hop fields do not."""
    seen: dict[str, Any] = {}

    async def emulator(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen.update(body=await request.read(), headers=headers, path=request.raw_path)
        return web.Response(status=424, body=b"\x00\xff", headers={"x-amzn-ErrorType": "ModelError"})

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", emulator)
    async with TestServer(application) as server:
        gateway = Gateway(no_inner, str(server.make_url("")))
        exchange = Exchange(b"\x01\x02\x03\x04")
        headers = {"Content-Type": "image/png", "X-Amzn-SageMaker-Inference-Id": "i-1", "Connection": "keep-alive"}
        await gateway(scope("POST", "/endpoints/e/invocations", headers, b"a=1"), exchange.receive, exchange.send)
        await gateway.close()

    assert seen["body"] == b"\x01\x02\x03\x04"
    assert seen["path"] == "/endpoints/e/invocations?a=1"
    assert seen["headers"]["content-type"] == "image/png"
    assert seen["headers"]["x-amzn-sagemaker-inference-id"] == "i-1"
    start, body = exchange.sent
    assert start["status"] == 424
    assert (b"x-amzn-ErrorType", b"ModelError") in start["headers"]
    assert body["body"] == b"\x00\xff"


async def test_streams_what_comes_in_parts() -> None:
    """Parts of an answer without a length are passed on one by one; one that breaks off is broken off."""

    async def emulator(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"X-Amzn-SageMaker-Content-Type": "text/x"})
        await response.prepare(request)
        for part in (b"one", b"two"):
            await response.write(part)
            await asyncio.sleep(0.02)
        if request.query_string == "break" and request.transport:
            request.transport.abort()
        return response

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", emulator)
    async with TestServer(application) as server:
        gateway = Gateway(no_inner, str(server.make_url("")))
        exchange, broken = Exchange(), Exchange()
        path = "/endpoints/e/invocations-response-stream"
        await gateway(scope("POST", path), exchange.receive, exchange.send)
        with pytest.raises(aiohttp.ClientError):
            await gateway(scope("POST", path, query=b"break"), broken.receive, broken.send)
        await gateway.close()
    start, *parts = exchange.sent
    assert (b"X-Amzn-SageMaker-Content-Type", b"text/x") in start["headers"]
    assert [(p["body"], p.get("more_body", False)) for p in parts] == [(b"one", True), (b"two", True), (b"", False)]
    assert [m["body"] for m in broken.sent[1:]] == [b"one", b"two"]


async def test_answers_503_when_the_emulator_is_dead() -> None:
    """A dead emulator is told as 503 at once; the caller never hangs."""
    gateway = Gateway(no_inner, "http://127.0.0.1:9")
    exchange = Exchange()
    await gateway(scope("GET", "/_inferlane/faults"), exchange.receive, exchange.send)
    await gateway.close()
    assert exchange.sent[0]["status"] == 503
    assert b"does not answer" in exchange.sent[1]["body"]


async def test_a_crowd_before_an_api_starts_environments_one_after_the_other() -> None:
    """All are served, but far fewer are with the function at a time than came; other calls do not wait for them."""
    now, most = 0, 0

    async def slow(_scope: Any, _receive: Any, send: Any) -> None:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.05)
        now -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gateway = Gateway(slow, "http://127.0.0.1:9")
    crowd = [Exchange() for _ in range(60)]
    door = scope("GET", "/_aws/execute-api/a/$default/healthz")
    await asyncio.gather(*(gateway(door, each.receive, each.send) for each in crowd))
    await gateway.close()
    assert all(each.sent[0]["status"] == 200 for each in crowd)
    assert most < 30
