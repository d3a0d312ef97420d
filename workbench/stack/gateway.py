"""The offline stack's front: MiniStack as an ASGI app, with SageMaker's calls handed to our emulator.

One endpoint for everything, as LocalStack has it: any AWS client that is pointed at this port reaches every service.
What is ours is told by the protocol alone: the target header of the control planes, SageMaker's runtime paths, and our
admin paths under `/_inferlane/`. Calls of an HTTP API pass through `environments`, so that a crowd of cold starts does
not bring the host to a halt; what goes to MiniStack passes `faulty_services`, where faults of its services are met. Of
MiniStack we use here the public ASGI app (`ministack.app:app`, the form its own documentation starts) and environment
variables; `service_events`, `sdk_tasks`, `async_calls`, `batch_permissions` and `worker_folders` know the few internals
that we need.

Run as `python -m workbench.stack.gateway --port 4566 --sagemaker http://127.0.0.1:PORT`; `offline` hands it a socket
that listens already (`--fd`), so that nobody else can have its port.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import aiohttp

from workbench.stack.async_calls import retry_events
from workbench.stack.batch_permissions import permit_batches
from workbench.stack.environments import Environments
from workbench.stack.faulty_services import FaultyServices, read_body
from workbench.stack.sdk_tasks import Answer, offer_sagemaker
from workbench.stack.service_events import admit_services
from workbench.stack.worker_folders import remove_aside

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

OUR_TARGETS = (b"SageMaker.", b"AnyScaleFrontendService.")
OUR_PATHS = re.compile(
    r"^/(_inferlane/(?!services/)|endpoints/[^/]+/(invocations|async-invocations|invocations-response-stream)$)"
)
API_PATH = re.compile(r"^/_aws/execute-api/([^/]+)/")
API_HOST = re.compile(rb"^([^.]+)\.execute-api\.")
"""The two names of an HTTP API's front door."""
# Hop-by-hop fields (RFC 9110 §7.6.1), and what the sending side computes anew.
HOP_BY_HOP = {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length"}
FORWARD_TIMEOUT_S = 75.0
"""Without a byte of the answer: above the 70 s a SageMaker client is told to wait for a 60 s model."""


def is_sagemaker(scope: Scope) -> bool:
    """Whether a request belongs to the SageMaker emulator rather than to MiniStack."""
    if scope["type"] != "http":
        return False
    if OUR_PATHS.match(scope["path"]):
        return True
    target = next((value for name, value in scope["headers"] if name.lower() == b"x-amz-target"), b"")
    return target.startswith(OUR_TARGETS)


def api_of(scope: Scope) -> str | None:
    """The id of the HTTP API whose front door is called, if one is."""
    if scope["type"] != "http":
        return None
    if (by_path := API_PATH.match(scope["path"])) is not None:
        return by_path[1]
    host = next((value for name, value in scope["headers"] if name.lower() == b"host"), b"")
    by_host = API_HOST.match(host)
    return by_host[1].decode("latin-1") if by_host else None


class Gateway:
    """ASGI app that sends each request either to `inner` (MiniStack) or to the SageMaker emulator at `base_url`."""

    def __init__(self, inner: AsgiApp, base_url: str) -> None:
        self._inner = inner
        self._base_url = base_url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._environments: defaultdict[str, Environments] = defaultdict(Environments)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_sagemaker(scope):
            await self._forward(scope, receive, send)
            return
        scope = _as_over_tls(scope)
        if (api := api_of(scope)) is not None:
            async with self._environments[api].lease():
                await self._inner(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        query = scope.get("query_string", b"").decode("latin-1")
        raw_path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        url = f"{self._base_url}{raw_path}" + (f"?{query}" if query else "")
        headers = [
            (k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"] if k.lower() not in HOP_BY_HOP
        ]
        began = False
        try:
            async with self._client().request(
                scope["method"], url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if response.content_length is not None:
                    await _answer(send, response.status, list(response.raw_headers), await response.read())
                    return
                began = True
                await _relay(send, response)
        except (aiohttp.ClientError, TimeoutError) as error:
            if began:
                raise  # half of an answer: the server breaks the connection off, as it broke here
            text = f"the SageMaker emulator does not answer ({type(error).__name__}): see `inferlane status`"
            await _answer(send, 503, [(b"content-type", b"text/plain; charset=utf-8")], text.encode())

    async def control(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """One call of the emulator's control plane, for a service that makes it: Step Functions."""
        kept = {name: value for name, value in headers.items() if name.lower() in ("x-amz-target", "content-type")}
        try:
            async with self._client().post(f"{self._base_url}/", data=body, headers=kept) as response:
                return response.status, dict(response.headers), await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return 503, {}, f"the SageMaker emulator does not answer ({type(error).__name__})".encode()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=2.0, sock_read=FORWARD_TIMEOUT_S),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session

    async def close(self) -> None:
        """Drop the connections to the emulator."""
        if self._session is not None:
            await self._session.close()


def _as_over_tls(scope: Scope) -> Scope:
    """The request as AWS's edge would pass it on: this loopback port stands for `https://`, and is nobody else's.

    Policies that refuse plain HTTP (`aws:SecureTransport`) are enforced for queues; without this they would refuse all.
    """
    if scope["type"] != "http":
        return scope
    kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"x-forwarded-proto"]
    return {**scope, "headers": [*kept, (b"x-forwarded-proto", b"https")]}


async def _relay(send: Send, response: aiohttp.ClientResponse) -> None:
    """An answer whose length is not known yet: each part when it comes."""
    kept = [(name, value) for name, value in response.raw_headers if name.lower() not in HOP_BY_HOP]
    await send({"type": "http.response.start", "status": response.status, "headers": kept})
    async for part in response.content.iter_any():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    kept = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP]
    kept.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": kept})
    await send({"type": "http.response.body", "body": body})


async def _serve(fd: int, sagemaker: str) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app as ministack

    gateway = Gateway(FaultyServices(admit_services(ministack)), sagemaker)
    offer_sagemaker(gateway.control)
    retry_events()
    permit_batches()
    remove_aside()
    config = Config()
    config.bind = [f"fd://{fd}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 2
    config.loglevel = "WARNING"
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    try:
        await serve(gateway, config, shutdown_trigger=stop.wait)  # type: ignore[arg-type]
    finally:
        await gateway.close()


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m workbench.stack.gateway", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    parser.add_argument("--port", type=int, default=4566, help="port for every AWS service (default: 4566)")
    parser.add_argument("--fd", type=int, metavar="N", help="an inherited socket that listens, in place of a port")
    parser.add_argument("--sagemaker", required=True, metavar="URL", help="base URL of the SageMaker emulator")
    options = parser.parse_args()
    try:
        listener = (
            socket.create_server((options.host, options.port))
            if options.fd is None
            else socket.socket(fileno=options.fd)
        )
        host, port = listener.getsockname()[:2]
    except OSError as error:
        sys.exit(f"cannot listen on {options.host}:{options.port}: {error.strerror}")
    # MiniStack reads these when it is imported; the port goes into the URLs it hands out.
    os.environ.update(GATEWAY_PORT=str(port), BIND_HOST=host)
    asyncio.run(_serve(listener.detach(), options.sagemaker))


if __name__ == "__main__":
    main()
