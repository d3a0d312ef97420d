"""A model that costs nothing, on loopback: what is measured in front of it is the front's own time.

`python -m workbench.bench.backend` prints two ports and serves until its standard input closes: one answers at once, to
compare whole calls; one after `DELAY_S`, so that what a front does around its wait can be told from the wait. One
blocking thread a connection, the cheapest thing that answers HTTP:

| call                                            | answer                                                         |
|-------------------------------------------------|----------------------------------------------------------------|
| POST /endpoints/{name}/invocations              | the completion, in the SageMaker runtime's wire form, at once  |
| POST …/chat/completions, POST /predict/…        | the same completion, for the routers that speak to plain HTTP  |
| AppConfigData's two calls                       | the policy document once, then "unchanged"                     |
| CloudWatch's GetMetricData                      | an hour of points for every series that is asked for           |
| DynamoDB's GetItem, PutItem, UpdateItem         | a table without conditions: every lease is granted             |
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from workbench.bench import scene

RULES: Final = 20
DELAY_S: Final = 0.002
_POLL_S: Final = 30
_TYPES: Final = {200: "OK", 201: "Created", 404: "Not Found"}


class _Answer(NamedTuple):
    body: bytes
    headers: Mapping[str, str]
    status: int = 200


_MODEL: Final = _Answer(
    scene.ANSWER.encode(),
    {
        "content-type": "application/json",
        "x-amzn-requestid": "00000000-0000-4000-8000-000000000000",
        "x-amzn-invoked-production-variant": "AllTraffic",
    },
)

_ITEMS: Final[dict[str, dict[str, Any]]] = {}
"""The table, while this process lives."""


def serve(listener: socket.socket, delay_s: float) -> None:
    """Answer every connection in a thread of its own, for ever."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_converse, args=(connection, delay_s), daemon=True).start()


def _converse(connection: socket.socket, delay_s: float) -> None:
    with connection, connection.makefile("rb") as stream:
        while line := stream.readline():
            method, target, _ = line.decode("latin-1").split(" ", 2)
            headers = _headers(stream)
            body = stream.read(int(headers.get("content-length", 0)))
            if delay_s:
                time.sleep(delay_s)
            try:
                connection.sendall(_wire(_answer(method, target, headers, body)))
            except ConnectionError:
                return


def _headers(stream: BinaryIO) -> dict[str, str]:
    found: dict[str, str] = {}
    while (line := stream.readline().decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    return found


def _answer(method: str, target: str, headers: Mapping[str, str], body: bytes) -> _Answer:
    path = target.partition("?")[0]
    if method == "POST" and path.endswith(("/invocations", "/chat/completions", "/predict")):
        return _MODEL
    if path == "/configurationsessions":
        return _json({"InitialConfigurationToken": "first"}, status=201)
    if path == "/configuration":
        first = target.endswith("=first")
        content = json.dumps(scene.policy(RULES)).encode() if first else b""
        poll = {"Next-Poll-Configuration-Token": "next", "Next-Poll-Interval-In-Seconds": str(_POLL_S)}
        return _Answer(content, {"content-type": "application/json", **poll})
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    if operation == "GetMetricData":
        return _json({"MetricDataResults": _series(json.loads(body)["MetricDataQueries"])})
    if operation in ("GetItem", "PutItem", "UpdateItem"):
        return _json(_table(operation, json.loads(body)))
    return _json({"message": "not served here"}, status=404)


def _table(operation: str, asked: dict[str, Any]) -> dict[str, Any]:
    if operation == "PutItem":
        _ITEMS[asked["Item"]["pk"]["S"]] = asked["Item"]
        return {}
    if operation == "UpdateItem":
        return {"Attributes": {"epoch": {"N": str(int(time.time() * 1000))}}}
    item = _ITEMS.get(asked["Key"]["pk"]["S"])
    return {} if item is None else {"Item": item}


def _series(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Newest first, in SageMaker's units: CPU summed over cores, latency in microseconds."""
    stamps = scene.minutes(time.time())[::-1]
    cores = scene.topology()["models"][scene.MODEL]["lanes"]["dedicated"]["vcpus"]
    units = {"CPUUtilization": cores, "GPUUtilization": 1.0, "MemoryUtilization": 1.0}
    points = {"ModelLatency": 20_000.0, "Invocations": 600.0, "InvocationsPerInstance": 600.0}
    quiet = {"ConcurrentRequestsPerModel": 1.0, "ServerlessConcurrentExecutionsUtilization": 0.05}
    results = []
    for query in queries:
        name = query["MetricStat"]["Metric"]["MetricName"]
        if name in units:
            values = [scene.cpu_percent(i) * units[name] for i in reversed(range(len(stamps)))]
        else:
            values = [(points | quiet).get(name, 0.0)] * len(stamps)
        results.append({"Id": query["Id"], "StatusCode": "Complete", "Timestamps": stamps, "Values": values})
    return results


def _json(document: object, status: int = 200) -> _Answer:
    return _Answer(json.dumps(document).encode(), {"content-type": "application/json"}, status)


def _wire(answer: _Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {_TYPES[answer.status]}", f"content-length: {len(answer.body)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + answer.body


def main() -> None:
    """Serve on two free ports until standard input closes."""
    for delay_s in (0.0, DELAY_S):
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=(listener, delay_s), daemon=True).start()
        sys.stdout.write(f"{listener.getsockname()[1]} ")
    sys.stdout.write("\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
