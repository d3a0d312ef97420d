"""Requests on their way to the services, with faults in force."""

from __future__ import annotations

import json
from typing import Any

import psutil
import pytest

from workbench.stack.callers import Caller
from workbench.stack.faulty_services import PATH, FaultyServices

SIGNED = b"AWS4-HMAC-SHA256 Credential=test/20261201/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x"
BODY = b'{"TableName": "jobs"}'


class Killed(Caller):
    """A function's process that is only counted."""

    def kill(self) -> None:
        kills.append(self.function)


kills: list[str] = []


class Cloud:
    """A service that keeps what reaches it, behind the faults."""

    def __init__(self, function: str | None = None) -> None:
        self.reached: list[bytes] = []
        self.asked: list[int] = []
        self._function = function
        self.app = FaultyServices(self._serve, self._caller)
        kills.clear()

    def _caller(self, port: int) -> Caller | None:
        self.asked.append(port)
        return Killed(self._function, psutil.Process()) if self._function else None

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def call(self, method: str, path: str, body: bytes, headers: Any = ()) -> tuple[int, Any]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "client": ("127.0.0.1", 4711)}
        await self.app(scope | {"headers": list(headers)}, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def put(self) -> int:
        """The status of one PutItem."""
        target = (b"X-Amz-Target", b"DynamoDB_20120810.PutItem")
        status, _ = await self.call("POST", "/", BODY, [(b"Authorization", SIGNED), target])
        return status

    async def fault(self, **request: Any) -> str:
        """Put a fault of DynamoDB in force."""
        status, made = await self.call("POST", PATH, json.dumps({"service": "dynamodb"} | request).encode())
        assert status == 201, made
        return str(made["id"])


async def test_nothing_in_force() -> None:
    """Without a fault every request goes through, and nobody asks whose it is."""
    cloud = Cloud()
    assert (await cloud.put(), cloud.reached, cloud.asked) == (200, [BODY], [])


@pytest.mark.parametrize(
    ("kind", "params", "status", "reached"),
    [
        ("throttle", {}, 400, []),
        ("error", {}, 500, []),
        ("lost", {}, 500, [BODY]),
        ("slow", {"ms": 1}, 200, [BODY]),
    ],
)
async def test_what_is_answered_and_what_is_done(kind: str, params: Any, status: int, reached: list[bytes]) -> None:
    """A refused call does not reach the service, a lost one does, and a slow one is answered."""
    cloud = Cloud()
    await cloud.fault(kind=kind, params=params)
    assert (await cloud.put(), cloud.reached) == (status, reached)


@pytest.mark.parametrize(("kind", "reached"), [("kill", []), ("kill-after", [BODY])])
async def test_a_function_is_killed(kind: str, reached: list[bytes]) -> None:
    """The function that calls is killed, before its call is done or after; a call of nobody's is let through."""
    cloud = Cloud("collect")
    await cloud.fault(kind=kind, function="coll*")
    await cloud.put()
    assert (kills, cloud.reached, cloud.asked) == (["collect"], reached, [4711])
    assert await cloud.put() == 200
    nobody = Cloud()
    await nobody.fault(kind=kind)
    assert (await nobody.put(), kills) == (200, [])


async def test_the_faults_by_http() -> None:
    """Faults are listed, cleared by their id and all together; what makes no sense is refused."""
    cloud = Cloud()
    first, second = await cloud.fault(kind="throttle"), await cloud.fault(kind="error")
    _, listed = await cloud.call("GET", PATH, b"")
    assert [fault["id"] for fault in listed["faults"]] == [first, second]
    assert await cloud.call("DELETE", f"{PATH}/{first}", b"") == (200, {"cleared": [first]})
    assert (await cloud.call("DELETE", f"{PATH}/{first}", b""))[0] == 404
    assert await cloud.call("DELETE", PATH, b"") == (200, {"cleared": [second]})
    assert (await cloud.call("POST", PATH, b"no JSON"))[0] == 400
    assert (await cloud.call("POST", PATH, b"{}"))[0] == 400
    assert (await cloud.call("PUT", PATH, b"{}"))[0] == 405
    assert await cloud.put() == 200
