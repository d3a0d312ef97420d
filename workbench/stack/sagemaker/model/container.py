"""A model process: the container contract over HTTP on a loopback port of its own choice.

`python -m workbench.stack.sagemaker.model.container --model-dir D` prints `port N` as its first line, then serves
`GET /ping` (503 until the model is loaded, then 200), `POST /invocations` and `GET /execution-parameters` (404 unless
the program defines it). `SAGEMAKER_MODEL_SERVER_WORKERS` predictions run at a time (default 1); more wait their turn.
With `INFERLANE_MAX_QUEUE_MS` set, what would wait longer is answered 503 with `x-inferlane-busy: 1` (`admission.py`).
An answer in parts is sent chunked, each part when the model has made it; when the model fails or the process ends
before the last one, the connection breaks. If the model cannot be loaded the process ends with status 1 and the
exception is the last line of its log. It ends by itself when its standard input reports end of file.

Headers that only the emulator can set carry faults: `X-Inferlane-Slow: factor;ms` makes one prediction slower while it
holds its worker, `X-Inferlane-Disk` fills the disk (`disk.py`) for as long as requests come with it, and with
`X-Inferlane-Memory` the process is killed in the middle of the prediction.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from workbench.stack.sagemaker.model import admission, disk
from workbench.stack.sagemaker.model.child import end_with_parent
from workbench.stack.sagemaker.model.toolkit import ContractError, Handler, Reply

SLOW_HEADER = "X-Inferlane-Slow"
DISK_HEADER = "X-Inferlane-Disk"
MEMORY_HEADER = "X-Inferlane-Memory"
BUSY_HEADER = "x-inferlane-busy"
HOST = "127.0.0.1"
LARGEST_BODY = 1 << 30
DRAIN_S = 25.0
"""What a terminating process gives the requests it has; SIGKILL comes 30 s after SIGTERM on AWS."""


class Server:
    """The HTTP side. Answers from the event loop; model code runs in worker threads."""

    def __init__(self, model_dir: Path, environment: Mapping[str, str]) -> None:
        self._model_dir = model_dir
        self._environment = environment
        workers = _workers(environment)
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        self._queue = admission.Queue(workers, _queue_limit_s(environment))
        self._turns = asyncio.Semaphore(workers)
        self._handler: Handler | None = None
        self.stopping = asyncio.Event()
        self.failed = False

    def app(self) -> web.Application:
        """The routes of the contract."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_get("/ping", self._ping)
        app.router.add_post("/invocations", self._invoke)
        app.router.add_get("/execution-parameters", self._execution_parameters)
        return app

    async def load(self) -> None:
        """Load the model; on failure print why and stop serving."""
        try:
            loop = asyncio.get_running_loop()
            self._handler = await loop.run_in_executor(
                self._workers, lambda: Handler(self._model_dir, self._environment)
            )
        except ContractError as error:
            print(error, file=sys.stderr)
        except BaseException:  # also a SystemExit of model code: the log must end with the cause
            traceback.print_exc()
        if self._handler is None:
            self.failed = True
            self.stopping.set()

    async def _ping(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._handler else 503)

    async def _invoke(self, request: web.Request) -> web.StreamResponse:
        if self._handler is None:
            return web.Response(status=503, text="the model is still loading")
        body = await request.read()
        if not self._queue.admits(time.monotonic()):
            return web.Response(status=503, text="the queue is full", headers={BUSY_HEADER: "1"})
        loop = asyncio.get_running_loop()
        async with self._turn():
            reply = await loop.run_in_executor(self._workers, _predict, self._handler, body, dict(request.headers))
            sent = {**reply.headers, "Content-Type": reply.content_type}
            if isinstance(reply.body, bytes):
                return web.Response(status=reply.status, body=reply.body, headers=sent)
            return await self._stream(request, web.StreamResponse(headers=sent), reply.body)

    async def _stream(
        self, request: web.Request, response: web.StreamResponse, parts: Iterator[bytes]
    ) -> web.StreamResponse:
        """Send parts as the model makes them; the worker is the model's until the last."""
        loop = asyncio.get_running_loop()
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            while (part := await loop.run_in_executor(self._workers, next, parts, None)) is not None:
                if part:
                    await response.write(part)
            await response.write_eof()
        except ConnectionError:
            print("the caller has gone away from a stream", file=sys.stderr)
        except Exception:  # whatever model code raises in the middle of its answer
            traceback.print_exc()
            if request.transport is not None:
                request.transport.abort()
        return response

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A worker of one's own, when there is one."""
        self._queue.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._queue.waiting -= 1
        number = self._queue.begin(time.monotonic())
        try:
            yield
        finally:
            self._queue.end(number, time.monotonic())
            self._turns.release()

    async def _execution_parameters(self, _: web.Request) -> web.Response:
        parameters = self._handler.execution_parameters() if self._handler else None
        return web.Response(status=404) if parameters is None else web.json_response(parameters)


def _predict(handler: Handler, body: bytes, headers: dict[str, str]) -> Reply:
    slow = headers.pop(SLOW_HEADER, None)
    disk.fill(headers.pop(DISK_HEADER, None) is not None)
    if headers.pop(MEMORY_HEADER, None):
        os.kill(os.getpid(), signal.SIGKILL)
    started = time.perf_counter()
    reply = handler.answer(body, headers)
    if slow:
        factor, ms = map(float, slow.split(";"))
        time.sleep((time.perf_counter() - started) * (factor - 1.0) + ms / 1e3)
    return reply


def _workers(environment: Mapping[str, str]) -> int:
    text = environment.get("SAGEMAKER_MODEL_SERVER_WORKERS") or "1"
    if not text.isdigit() or int(text) < 1:
        raise SystemExit(f"SAGEMAKER_MODEL_SERVER_WORKERS must be a positive whole number; got {text!r}")
    return int(text)


def _queue_limit_s(environment: Mapping[str, str]) -> float:
    try:
        return admission.limit_s(environment)
    except ValueError as error:
        raise SystemExit(str(error)) from error


async def serve(model_dir: Path) -> int:
    """Serve until SIGTERM or a failed load; returns the exit status."""
    server = Server(model_dir, os.environ)
    listener = socket.create_server((HOST, 0))
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=DRAIN_S)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    print(f"port {listener.getsockname()[1]}", flush=True)
    # From here on what model code prints belongs in the log, with its errors.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stopping.set)
    loading = asyncio.create_task(server.load())
    await server.stopping.wait()
    await runner.cleanup()
    loading.cancel()
    return 1 if server.failed else 0


def main() -> None:
    """Parse, serve, end."""
    parser = argparse.ArgumentParser(prog="python -m workbench.stack.sagemaker.model.container", description=__doc__)
    parser.add_argument("--model-dir", type=Path, required=True, help="extracted archive (AWS: /opt/ml/model)")
    options = parser.parse_args()
    end_with_parent()
    status = asyncio.run(serve(options.model_dir))
    sys.stderr.flush()
    # Not sys.exit: a prediction that never ends must not keep the process.
    os._exit(status)


if __name__ == "__main__":
    main()
