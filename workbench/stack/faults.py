"""Inject faults into a lane of the offline stack, and take them back. Speaks to the emulator's admin paths.

An endpoint that has no such paths (another LocalStack-compatible emulator) gives a clear `StackError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import urllib3

from workbench.stack.cloud import Cloud
from workbench.stack.processes import StackError


class Faults:
    """The faults of one cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._base = f"{cloud.endpoint_url}/_inferlane"
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=2, read=10))

    def inject(self, endpoint: str, kind: str, params: Mapping[str, float] | None = None) -> Mapping[str, Any]:
        """Start a fault on an endpoint; kinds and params: `sagemaker/faults.py`. Returns it with its id."""
        body = {"endpoint": endpoint, "kind": kind, "params": dict(params or {})}
        fault: Mapping[str, Any] = self._call("POST", "/faults", body)
        return fault

    def clear(self, fault_id: str | None = None) -> int:
        """End one fault, or all. Returns how many ended."""
        before = len(self.active())
        self._call("DELETE", f"/faults/{fault_id}" if fault_id else "/faults")
        return before - len(self.active())

    def active(self) -> list[Mapping[str, Any]]:
        """The faults in force."""
        listed: list[Mapping[str, Any]] = self._call("GET", "/faults")["faults"]
        return listed

    def endpoints(self) -> list[Mapping[str, Any]]:
        """Every endpoint with its instances or containers: pid, state, in-flight, cold starts."""
        listed: list[Mapping[str, Any]] = self._call("GET", "/endpoints")["endpoints"]
        return listed

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
