"""The runtime's operations over HTTP: bodies in, answers and streams out, connections reset where a fault says so.

POST /endpoints/{name}/invocations                  InvokeEndpoint
POST /endpoints/{name}/async-invocations            InvokeEndpointAsync
POST /endpoints/{name}/invocations-response-stream  InvokeEndpointWithResponseStream
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Mapping

from aiohttp import web

from workbench.stack.sagemaker.api import eventstream, wire
from workbench.stack.sagemaker.api.invocations import ASYNC, STREAM, SYNC
from workbench.stack.sagemaker.api.wire import Answer, AwsError
from workbench.stack.sagemaker.runtime.asynchronous.accept import Accept
from workbench.stack.sagemaker.runtime.door import Door, ResetError
from workbench.stack.sagemaker.runtime.invoke import Invoke
from workbench.stack.sagemaker.runtime.stream import CallerGoneError, Stream

log = logging.getLogger(__name__)
PATH = "/endpoints/{name}/{operation:invocations|async-invocations|invocations-response-stream}"
_OPERATIONS = {"invocations": SYNC, "async-invocations": ASYNC, "invocations-response-stream": STREAM}


class Routes:
    """Serves `PATH`."""

    def __init__(self, door: Door, invoke: Invoke, stream: Stream, accept: Accept) -> None:
        self._door = door
        self._invoke = invoke
        self._stream = stream
        self._accept = accept

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One invocation of any kind."""
        endpoint, operation = request.match_info["name"], _OPERATIONS[request.match_info["operation"]]
        id_ = wire.request_id()
        limit = self._door.largest_body(endpoint, operation)
        if (request.content_length or 0) > limit or len(body := await request.read()) > limit:
            return _response(self._door.too_large(endpoint, operation, id_))
        try:
            match operation:
                case _ if operation == SYNC:
                    return _response(await self._invoke.answer(endpoint, request.headers, body, id_))
                case _ if operation == ASYNC:
                    return _response(self._accept.answer(endpoint, request.headers, body, id_))
                case _:
                    return await self._streamed(request, endpoint, body, id_)
        except ResetError:
            return _reset(request)

    async def _streamed(self, request: web.Request, endpoint: str, body: bytes, id_: str) -> web.StreamResponse:
        caller = _Caller(request)
        try:
            refusal = await self._stream.answer(endpoint, request.headers, body, id_, caller)
            if refusal is not None:
                return _response(refusal)
            return await caller.end()
        except CallerGoneError:
            return caller.response
        except ResetError:
            raise
        except Exception:
            log.exception("a response stream of %s failed", endpoint)
            if not caller.response.prepared:
                error = AwsError("InternalFailure", "The emulator failed; its log says why.", 500)
                return _response(wire.runtime_error(error, id_))
            await caller.send(eventstream.internal_stream_failure("The emulator failed; its log says why."))
            return await caller.end()


class _Caller:
    """Whoever asked for a stream."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse()

    async def begin(self, headers: Mapping[str, str]) -> None:
        """See `stream.Caller`."""
        self.response.headers.update(headers)
        self.response.enable_chunked_encoding()
        try:
            await self.response.prepare(self._request)
        except ConnectionError as error:
            raise CallerGoneError from error

    async def send(self, message: bytes) -> None:
        """See `stream.Caller`."""
        try:
            await self.response.write(message)
        except ConnectionError as error:
            raise CallerGoneError from error

    async def end(self) -> web.StreamResponse:
        """The stream is complete."""
        try:
            await self.response.write_eof()
        except ConnectionError as error:
            raise CallerGoneError from error
        return self.response


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def _reset(request: web.Request) -> web.Response:
    """Reset the request's connection; the response that the framework wants goes nowhere."""
    transport = request.transport
    if transport is not None:
        sock = transport.get_extra_info("socket")
        # A zero linger makes the kernel send RST instead of an orderly FIN.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()
