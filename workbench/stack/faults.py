"""Inject faults into the offline stack, and take them back: lanes, transform jobs, services, Lambda functions.

Speaks to the admin paths of the emulator (`sagemaker/faults.py`: endpoints; `sagemaker/transform/faults.py`: jobs) and
of the gateway (`service_faults.py`: S3, DynamoDB, SQS, Firehose, and the functions that call them). An endpoint that
has no such paths (another LocalStack-compatible emulator) gives a clear `StackError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import urllib3

from workbench.stack.cloud import Cloud
from workbench.stack.processes import StackError

LANES, SERVICES = "/faults", "/services/faults"


class Faults:
    """The faults of one cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._base = f"{cloud.endpoint_url}/_inferlane"
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=2, read=10))

    def inject(self, endpoint: str, kind: str, params: Mapping[str, float] | None = None) -> Mapping[str, Any]:
        """Start a fault on an endpoint; kinds and params: `sagemaker/faults.py`. Returns it with its id."""
        return self._start(LANES, {"endpoint": endpoint, "kind": kind, "params": dict(params or {})})

    def on_jobs(self, jobs: str, kind: str, **params: float) -> Mapping[str, Any]:
        """Start a fault on transform jobs by a pattern of names; kinds and params: `sagemaker/transform/faults.py`."""
        return self._start(LANES, {"jobs": jobs, "kind": kind, "params": params})

    def on_service(
        self,
        service: str,
        kind: str,
        *,
        operations: Sequence[str] = (),
        resource: str | None = None,
        function: str | None = None,
        code: str | None = None,
        **params: float,
    ) -> Mapping[str, Any]:
        """Start a fault on calls of a service; kinds, narrowings and params: `service_faults.py`."""
        body: dict[str, Any] = {"service": service, "kind": kind, "operations": list(operations), "params": params}
        texts = {"resource": resource, "function": function, "code": code}
        return self._start(SERVICES, body | {name: value for name, value in texts.items() if value is not None})

    def kill_function(
        self,
        function: str,
        at: str,
        *,
        call: int = 1,
        when: Literal["before", "after"] = "before",
        resource: str | None = None,
        times: int = 1,
    ) -> Mapping[str, Any]:
        """Kill a function's process at its n-th call `at` (`dynamodb:UpdateItem`), before or after that is done."""
        service, _, operation = at.partition(":")
        return self.on_service(
            service,
            "kill" if when == "before" else "kill-after",
            operations=[operation] if operation else [],
            resource=resource,
            function=function,
            call=call,
            times=times,
        )

    def quota(self, name: str, value: int | None) -> None:
        """Set a quota of the account (`ml.c5.xlarge for transform job usage`); None puts it back."""
        self._call("PUT", "/quotas", {name: value})

    def clear(self, fault_id: str | None = None) -> int:
        """End one fault, or all. Returns how many ended."""
        before = len(self.active())
        if fault_id is None:
            self._call("DELETE", LANES)
            self._call("DELETE", SERVICES)
        else:
            self._call("DELETE", f"{SERVICES if fault_id.startswith('service-') else LANES}/{fault_id}")
        return before - len(self.active())

    def active(self) -> list[Mapping[str, Any]]:
        """The faults in force."""
        return [*self._call("GET", LANES)["faults"], *self._call("GET", SERVICES)["faults"]]

    def endpoints(self) -> list[Mapping[str, Any]]:
        """Every endpoint with its instances or containers: pid, state, in-flight, cold starts."""
        listed: list[Mapping[str, Any]] = self._call("GET", "/endpoints")["endpoints"]
        return listed

    def _start(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        fault: Mapping[str, Any] = self._call("POST", path, body)
        return fault

    def _call(self, method: str, path: str, body: object = None) -> Any:
        try:
            response = self._http.request(method, self._base + path, json=body)
        except urllib3.exceptions.HTTPError as error:
            raise StackError(f"the emulated cloud at {self._base} does not answer: see `inferlane status`") from error
        if response.status == 404 and method == "GET":
            raise StackError(f"{self._base} has no fault injection: it is not an inferlane stack")
        if response.status >= 400:
            raise StackError(f"the emulator refused: {response.data.decode(errors='replace')[:300]}")
        return response.json() if response.data else {}


def target(fault: Mapping[str, Any]) -> str:
    """What a fault is on, for people."""
    if "jobs" in fault:
        return f"transform jobs {fault['jobs']}"
    if "service" not in fault:
        return str(fault["endpoint"])
    narrowed = [*fault["operations"], *(str(fault[name]) for name in ("resource", "function") if fault[name])]
    return " ".join([str(fault["service"]), *narrowed])
