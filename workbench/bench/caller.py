"""One contender in a process of its own: calls it when told to, times every call, answers with the times.

`python -m workbench.bench.caller KIND URL LOG`, then a number of calls on standard input and a line of JSON back:
`wall` (ns) is the whole call, `wait` (ns) the part of it spent reading from a socket, which is the wait for the model.
What a handler writes to standard output (its receipts and metrics) goes to the file LOG.

| kind     | what a call is                                                                              |
|----------|---------------------------------------------------------------------------------------------|
| router   | `functions.handlers.route.handler` with a gateway event, wired by its environment           |
| boto3    | a handler that does nothing but `invoke_endpoint` with the event's body and types           |
| http     | a POST of the same payload to URL on a kept-open connection                                  |
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TextIO

from workbench.bench import scene

_TIME_LEFT_MS: Final = 30_000


class LambdaContext:
    """The part of Lambda's context that a handler may read."""

    aws_request_id = "00000000-0000-4000-8000-000000000000"
    function_name = "route"

    def get_remaining_time_in_millis(self) -> int:
        """A fresh invocation's time."""
        return _TIME_LEFT_MS


class _Wait:
    """Sums the time that reads from sockets take, whichever HTTP client makes them."""

    def __init__(self) -> None:
        self.ns = 0
        # The standard library's own seam: every client ends in one of these two.
        socket.socket.recv = self._timed(socket.socket.recv)  # type: ignore[method-assign]
        socket.socket.recv_into = self._timed(socket.socket.recv_into)  # type: ignore[method-assign]

    def _timed(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter_ns()
            try:
                return read(*arguments)
            finally:
                self.ns += time.perf_counter_ns() - began

        return timed


def _router(_: str) -> Callable[[], Any]:
    from functions.handlers.route import handler

    event, context = scene.event(), LambdaContext()
    return lambda: handler(event, context)


def _boto3(_: str) -> Callable[[], Any]:
    import boto3

    client = boto3.client("sagemaker-runtime")

    def handler(event: dict[str, Any], _: object) -> dict[str, Any]:
        answer = client.invoke_endpoint(
            EndpointName=scene.ENDPOINT,
            ContentType=event["headers"]["content-type"],
            Accept=event["headers"]["accept"],
            Body=event["body"].encode(),
        )
        headers = {"content-type": answer["ContentType"]}
        return {"statusCode": 200, "headers": headers, "body": answer["Body"].read().decode()}

    event = scene.event()
    return lambda: handler(event, None)


def _http(url: str) -> Callable[[], Any]:
    import urllib3

    pool = urllib3.PoolManager(retries=False, timeout=30)
    body = scene.PAYLOAD.encode()
    types = {"content-type": "application/json", "accept": "application/json"}
    headers = {**types, "authorization": f"Bearer {scene.BEARER}"}

    def call() -> dict[str, Any]:
        answer = pool.request("POST", url, body=body, headers=headers)
        return {"statusCode": answer.status, "body": answer.data.decode()}

    return call


def _checked(call: Callable[[], Any]) -> None:
    """A contender that answers wrongly must not win by it."""
    answer = call()
    if answer["statusCode"] != 200 or _said(answer["body"]) != _said(scene.ANSWER):
        raise SystemExit(f"it answered {answer['statusCode']}: {str(answer['body'])[:500]}")


def _said(completion: str) -> object:
    return json.loads(completion)["choices"][0]["message"]["content"]


def _serve(call: Callable[[], Any], results: TextIO) -> None:
    wait = _Wait()
    for line in sys.stdin:
        _checked(call)
        walls: list[int] = []
        waits: list[int] = []
        for _ in range(int(line)):
            wait.ns = 0
            began = time.perf_counter_ns()
            call()
            walls.append(time.perf_counter_ns() - began)
            waits.append(wait.ns)
        results.write(json.dumps({"wall": walls, "wait": waits}) + "\n")
        results.flush()


def main() -> None:
    """Serve one contender until standard input closes."""
    kind, url, log = sys.argv[1:4]
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    make = {"router": _router, "boto3": _boto3, "http": _http}[kind]
    _serve(make(url), results)


if __name__ == "__main__":
    main()
