"""The offline cloud's services with their faults: an ASGI app before MiniStack's.

GET, POST, DELETE /_inferlane/services/faults     list; start one (see `service_faults.py`); clear all
DELETE /_inferlane/services/faults/{id}           clear one
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from workbench.stack.callers import Caller, Callers
from workbench.stack.calls import Call, call_of, service_of
from workbench.stack.refusals import REFUSALS, Answer, Refusal, answer
from workbench.stack.service_faults import ServiceFault, ServiceFaultError, ServiceFaults

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/_inferlane/services/faults"


class FaultyServices:
    """ASGI app that hands requests to `inner`, unless a fault in force meets them."""

    def __init__(self, inner: AsgiApp, caller: Callable[[int], Caller | None] | None = None) -> None:
        self._inner = inner
        self._caller = caller or Callers().at
        self._faults = ServiceFaults()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
        elif scope["path"] == PATH or scope["path"].startswith(f"{PATH}/"):
            await _send(send, self._administer(scope["method"], scope["path"], await read_body(receive)))
        elif faults := self._concerning(scope):
            await self._meet(scope, await read_body(receive), receive, send, faults)
        else:
            await self._inner(scope, receive, send)

    def _concerning(self, scope: Scope) -> list[ServiceFault]:
        """The faults of the service that is called."""
        if not (faults := self._faults.all(time.time())):
            return []
        service = service_of(scope["headers"], scope.get("query_string", b"").decode("latin-1"))
        return [fault for fault in faults if fault.service == service]

    async def _meet(self, scope: Scope, body: bytes, receive: Receive, send: Send, faults: list[ServiceFault]) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        call = call_of(scope["method"], scope["path"], query, scope["headers"], body)
        concerned = [fault for fault in faults if fault.concerns(call)]
        caller = None
        if any(fault.wants_caller for fault in concerned) and scope.get("client"):
            caller = await asyncio.to_thread(self._caller, scope["client"][1])
        name = caller.function if caller else None
        met = [fault for fault in concerned if fault.meets(name, random.uniform(0, 100))]
        await asyncio.sleep(sum(fault.params["ms"] for fault in met if fault.kind == "slow") / 1000)
        hard = next((fault for fault in met if fault.kind != "slow"), None)
        again = _replay(body, receive)
        if hard is None:
            await self._inner(scope, again, send)
            return
        if hard.kind in ("lost", "kill-after"):
            await self._inner(scope, again, _unheard)
        if caller is not None and hard.kind in ("kill", "kill-after"):
            caller.kill()
        await _send(send, _refused(call, hard.refusal))

    def _administer(self, method: str, path: str, body: bytes) -> Answer:
        now, fault_id = time.time(), path.removeprefix(PATH).lstrip("/")
        if method == "GET" and not fault_id:
            return _json(200, {"faults": [fault.shown() for fault in self._faults.all(now)]})
        if method == "POST" and not fault_id:
            try:
                return _json(201, self._faults.add(json.loads(body), now).shown())
            except ServiceFaultError as error:
                return _json(400, {"message": str(error)})
            except ValueError as error:
                return _json(400, {"message": f"the body is not JSON: {error}"})
        if method == "DELETE":
            ids = [fault.id for fault in self._faults.all(now) if fault_id in ("", fault.id)]
            if fault_id and not ids:
                return _json(404, {"message": f"no fault {fault_id!r} is in force"})
            return _json(200, {"cleared": [fault.id for each in ids if (fault := self._faults.remove(each))]})
        return _json(405, {"message": f"{method} is not for {path}"})


def _refused(call: Call, refusal: Refusal | None) -> Answer:
    """The service's answer; of a fault without one (a kill) its own failure, which the killed caller does not hear."""
    return answer(call.service, refusal or REFUSALS[call.service]["error"][0], call.method)


async def read_body(receive: Receive) -> bytes:
    """The whole body of a request."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever comes."""
    said: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return said.pop() if said else await receive()

    return again


async def _unheard(_: Message) -> None:
    """Where an answer goes that nobody gets."""


def _json(status: int, document: object) -> Answer:
    body = json.dumps(document).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return Answer(status, headers, body)


async def _send(send: Send, whole: Answer) -> None:
    await send({"type": "http.response.start", "status": whole.status, "headers": whole.headers})
    await send({"type": "http.response.body", "body": whole.body})
