"""The admin paths of faults: those of endpoints and those of transform jobs, in one list.

GET, POST, DELETE /_inferlane/faults       list; start one ({"endpoint", "kind", "variant"?, "params"?}, or {"jobs",
                                           "kind", "params"?}); clear all
DELETE /_inferlane/faults/{id}             clear one
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from workbench.stack.sagemaker.faults import Fault, FaultError, FaultTable
from workbench.stack.sagemaker.transform.faults import JobFault, JobFaults

PATH = "/_inferlane/faults"


@dataclass(slots=True)
class FaultPaths:
    """Starts and ends faults. `apply(endpoint)` makes its processes as the faults in force want them."""

    endpoints: FaultTable
    jobs: JobFaults
    unknown: Callable[[Fault], str | None]
    """What is wrong with a fault that names something which is not there."""
    apply: Callable[[str], Awaitable[None]]
    _expiries: set[asyncio.Task[None]] = field(default_factory=set)

    def serve(self, app: web.Application) -> None:
        """Add the paths."""
        app.router.add_get(PATH, self._list)
        app.router.add_post(PATH, self._add)
        app.router.add_delete(PATH, self._clear)
        app.router.add_delete(f"{PATH}/{{id}}", self._clear_one)

    def close(self) -> None:
        """The server ends."""
        for task in self._expiries:
            task.cancel()

    def _all(self) -> list[Fault | JobFault]:
        return [*self.endpoints.all(), *self.jobs.all()]

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"faults": [fault.shown() for fault in self._all()]})

    async def _add(self, request: web.Request) -> web.Response:
        try:
            body = await _json(request)
            fault: Fault | JobFault
            if isinstance(body, dict) and "jobs" in body:
                fault = self.jobs.add(body, time.time())
            else:
                fault = self.endpoints.add(body, time.time())
        except FaultError as error:
            return web.json_response({"message": str(error)}, status=400)
        if isinstance(fault, Fault):
            if problem := self.unknown(fault):
                self.endpoints.remove(fault.id)
                return web.json_response({"message": problem}, status=404)
            await self.apply(fault.endpoint)
        if "seconds" in fault.params:
            task = asyncio.create_task(self._expire(fault))
            self._expiries.add(task)
            task.add_done_callback(self._expiries.discard)
        return web.json_response(fault.shown(), status=201)

    async def _clear(self, _: web.Request) -> web.Response:
        cleared = self._all()
        await asyncio.gather(*(self._end(fault) for fault in cleared))
        return web.json_response({"cleared": [fault.id for fault in cleared]})

    async def _clear_one(self, request: web.Request) -> web.Response:
        fault = next((each for each in self._all() if each.id == request.match_info["id"]), None)
        if fault is None:
            return web.json_response({"message": f"no fault {request.match_info['id']!r} is in force"}, status=404)
        await self._end(fault)
        return web.json_response({"cleared": [fault.id]})

    async def _end(self, fault: Fault | JobFault) -> None:
        if isinstance(fault, JobFault):
            self.jobs.remove(fault.id)
            return
        self.endpoints.remove(fault.id)
        await self.apply(fault.endpoint)

    async def _expire(self, fault: Fault | JobFault) -> None:
        await asyncio.sleep(fault.params["seconds"])
        await self._end(fault)


async def _json(request: web.Request) -> object:
    try:
        body: object = await request.json()
    except ValueError as error:
        raise FaultError(f"the body is not JSON: {error}") from error
    return body
