"""The HTTP server: AWS's two front doors, our admin paths, and the wiring of everything behind them.

POST /                                     control planes, by X-Amz-Target
POST /endpoints/{name}/...                 the runtime: see `runtime/routes.py`
GET  /_inferlane/health                    {"status": "ok", "endpoints": n}; answers as soon as the port is open.
                                           "unsaved": why the latest state would not survive, where it would not
GET  /_inferlane/endpoints                 {"endpoints": [...]}: kind, state, replicas with pid, starts, faults
     /_inferlane/faults                    see `fault_paths.py`
GET, PUT /_inferlane/quotas                the account's quotas and their use; set some ({"NAME": value or null, ...})
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.invocations import operations
from workbench.stack.sagemaker.api.wire import Answer, AwsError, Protocol
from workbench.stack.sagemaker.control.alarms import CloudWatchAlarms
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.events import entry
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.control.operations import Control
from workbench.stack.sagemaker.control.quotas import Quotas, profile, transform_usage
from workbench.stack.sagemaker.control.scalable import Variants
from workbench.stack.sagemaker.fault_paths import FaultPaths
from workbench.stack.sagemaker.faults import Fault, FaultTable
from workbench.stack.sagemaker.metrics.telemetry import Telemetry
from workbench.stack.sagemaker.model.artifacts import ArtifactStore
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.replica import Host, LogNumbers
from workbench.stack.sagemaker.records import Endpoint
from workbench.stack.sagemaker.runtime import routes
from workbench.stack.sagemaker.runtime.asynchronous.accept import Accept
from workbench.stack.sagemaker.runtime.asynchronous.host import Host as Outside
from workbench.stack.sagemaker.runtime.asynchronous.serving import Serving
from workbench.stack.sagemaker.runtime.door import Door
from workbench.stack.sagemaker.runtime.invoke import Invoke
from workbench.stack.sagemaker.runtime.routes import Routes
from workbench.stack.sagemaker.runtime.stream import Stream
from workbench.stack.sagemaker.scaling.engine import Engine
from workbench.stack.sagemaker.scaling.readings import CloudWatch
from workbench.stack.sagemaker.scaling.service import AutoScaling
from workbench.stack.sagemaker.services import connect
from workbench.stack.sagemaker.settings import Settings
from workbench.stack.sagemaker.state import State, open_journal
from workbench.stack.sagemaker.transform.faults import JobFaults
from workbench.stack.sagemaker.transform.operations import Transforms

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)
SHUTDOWN_GRACE_S = 2.0
READING = ("Describe", "List")
"""How the names of the operations begin that change nothing."""


class Server:
    """The emulator. `app()` is the web application; its clean-up stops every process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._faults = FaultTable()
        catalog = Catalog(settings.region, settings.account, settings.clock.real(settings.consistency_lag_s))
        self._endpoints = Endpoints(catalog, Quotas(profile(settings.quota_profile), dict(settings.quotas)))
        self._catalog = catalog
        self._job_faults = JobFaults()
        self._fault_paths = FaultPaths(
            self._faults, self._job_faults, self._unknown, lambda endpoint: self._lifecycle.apply_faults(endpoint)
        )

    @property
    def served(self) -> dict[str, frozenset[str]]:
        """Operations by botocore's name of their service, once the application runs."""
        return self._control.known | {"sagemaker-runtime": frozenset(operations())}

    def app(self) -> web.Application:
        """The web application."""
        # Size limits are the variant's, and have AWS's own answers: see `Routes`.
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/", self._control_call)
        app.router.add_post(routes.PATH, self._invocation)
        app.router.add_get("/_inferlane/health", self._health)
        app.router.add_get("/_inferlane/endpoints", self._list_endpoints)
        self._fault_paths.serve(app)
        app.router.add_get("/_inferlane/quotas", self._list_quotas)
        app.router.add_put("/_inferlane/quotas", self._set_quotas)
        app.cleanup_ctx.append(self._run)
        return app

    async def _run(self, _: web.Application) -> AsyncIterator[None]:
        settings, folder = self._settings, self._settings.state_dir
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        journal = open_journal(settings)
        services = await asyncio.to_thread(connect, settings.region)
        artifacts = ArtifactStore(folder / "artifacts", services.s3)
        artifacts.clean()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),  # a container's cookies are its caller's business
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        host = Host(settings, session, artifacts, LogNumbers(folder / "logs"))
        alarms = CloudWatchAlarms(services.cloudwatch)
        self._lifecycle = Lifecycle(host, self._endpoints, self._faults, alarms, self._on_setup, self._on_settled)
        resources = Variants(self._endpoints, self._lifecycle)
        scaling = AutoScaling(settings, resources)
        account, quotas = self._catalog, self._endpoints.quotas
        self._transforms = Transforms.open(
            host,
            account,
            quotas,
            self._faults,
            services.s3,
            services.bus,
            self._job_faults,
            lambda: self._state.keep(),
        )
        home = {"region": settings.region, "account": settings.account}
        self._state = State(
            journal, home, self._catalog, self._endpoints, self._lifecycle, scaling, self._transforms.runner
        )
        self._endpoints.on_status = self._on_status
        self._control = Control(self._catalog, self._endpoints, scaling, self._lifecycle, self._transforms.table())
        self._protocol = Protocol(self._control.known)
        self._telemetry = Telemetry(settings, self._lifecycle, self._transforms.runner, services.cloudwatch)
        door, outcome = Door(settings, self._lifecycle), self._telemetry.outcome
        serving = Serving(settings, session, Outside(services.s3, services.topics), outcome, self._telemetry.processed)
        accept = Accept(door, serving, self._state)
        self._telemetry.backlogs = accept.backlogs
        self._routes = Routes(door, Invoke(door, outcome), Stream(door, session, outcome), accept)
        self._state.restore(settings.clock.now())
        accept.resume(self._state.unserved(settings.clock))
        loops = [
            asyncio.create_task(self._state.keep_forever()),
            asyncio.create_task(self._telemetry.sample_forever()),
            asyncio.create_task(self._telemetry.look_forever()),
            asyncio.create_task(self._telemetry.publish_forever()),
            asyncio.create_task(self._transforms.events.publish_forever()),
            asyncio.create_task(Engine(settings, scaling, CloudWatch(services.cloudwatch)).run_forever()),
        ]
        yield
        self._state.close()
        self._fault_paths.close()
        for task in loops:
            task.cancel()
        await accept.close()
        await asyncio.gather(self._transforms.shut_down(SHUTDOWN_GRACE_S), self._lifecycle.shut_down(SHUTDOWN_GRACE_S))
        await session.close()

    def _on_setup(self, endpoint: str, variant: str, seconds: float) -> None:
        self._telemetry.setup(endpoint, variant, seconds)

    def _on_status(self, endpoint: Endpoint) -> None:
        self._transforms.events.put(entry(endpoint, self._catalog.tags.of(endpoint.arn)))
        self._state.keep()

    def _on_settled(self, endpoint: Endpoint) -> None:
        self._control.settled(endpoint)

    # AWS's front doors

    async def _control_call(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            call = self._protocol.parse(request.headers.get("X-Amz-Target", ""), body)
            answer = wire.control_answer(await self._control.answer(call))
            if not call.operation.startswith(READING):
                self._state.keep()
        except AwsError as error:
            answer = wire.control_error(error)
        except Exception:
            log.exception("%s failed", request.headers.get("X-Amz-Target"))
            answer = wire.control_error(AwsError("InternalFailure", "The emulator failed; its log says why.", 500))
        return _response(answer)

    async def _invocation(self, request: web.Request) -> web.StreamResponse:
        return await self._routes.serve(request)

    # Admin paths

    async def _health(self, _: web.Request) -> web.Response:
        unsaved = {"unsaved": self._state.problem} if self._state.problem else {}
        return web.json_response({"status": "ok", "endpoints": len(self._endpoints.all()), **unsaved})

    async def _list_endpoints(self, _: web.Request) -> web.Response:
        return web.json_response({"endpoints": [self._shown(e) for e in self._endpoints.all()]})

    async def _list_quotas(self, _: web.Request) -> web.Response:
        jobs = {transform_usage(t): count for t, count in self._transforms.jobs.use().items()}
        return web.json_response(self._endpoints.quotas.shown(self._endpoints.use() | jobs))

    async def _set_quotas(self, request: web.Request) -> web.Response:
        try:
            self._endpoints.quotas.change(await request.json())
        except ValueError as error:  # no JSON, or a QuotaError
            return web.json_response({"message": str(error)}, status=400)
        self._state.keep()
        return await self._list_quotas(request)

    def _unknown(self, fault: Fault) -> str | None:
        endpoint = self._endpoints.find(fault.endpoint)
        if endpoint is None or endpoint.name != fault.endpoint:
            return f"there is no endpoint {fault.endpoint!r}"
        names = [p.variant.name for p in endpoint.plan.variants]
        if fault.variant is not None and fault.variant not in names:
            return f"endpoint {fault.endpoint!r} has no variant {fault.variant!r}; it has {', '.join(names)}"
        return None

    def _shown(self, endpoint: Endpoint) -> dict[str, object]:
        live = self._lifecycle.live.get(endpoint.name)
        serverless = any(p.variant.serverless for p in endpoint.plan.variants)
        return {
            "name": endpoint.name,
            "kind": "serverless" if serverless else "dedicated",
            "state": endpoint.status,
            "failure_reason": endpoint.failure_reason,
            "config": endpoint.plan.config.name,
            "variants": [_shown_lane(lane, endpoint) for lane in live.lanes.values()] if live else [],
            "faults": [f.id for f in self._faults.all() if f.endpoint == endpoint.name],
        }


def _shown_lane(lane: Lane, endpoint: Endpoint) -> dict[str, object]:
    name = lane.planned.variant.name
    return {
        "name": name,
        "in_flight": lane.in_flight,
        "starts": lane.starts,
        "desired": endpoint.desired.get(name),
        "replicas": [
            {
                "id": r.id,
                "pid": r.child.pid,
                "url": r.url,
                "state": r.state,
                "in_flight": r.in_flight,
                "uses": r.uses,
                "start_s": round(r.start_s, 3),
                "log": f"{endpoint.name}-{name}-{r.number}.log",
            }
            for r in lane.replicas
        ],
        "faults": lane.faults.ids(),
    }


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
