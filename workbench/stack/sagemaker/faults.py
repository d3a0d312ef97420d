"""Faults on request: what can be broken, how it is asked for, and what is in force now. Pure.

kind       params                       effect
kill       -                            SIGKILL to every instance or container; none starts again until cleared
hang       -                            requests are accepted and not answered (the caller sees the 60 s limit); the end
                                        of the fault breaks them off, as the container's restart would
slow       ms: n | factor: f            each prediction takes n ms longer, or f times as long, and holds its worker
stress     cores: x                     a child process of each instance burns x host cores
ping       -                            health checks fail: what runs is replaced, and nothing new becomes healthy
disk       -                            the disk is full: files that model code makes or opens to write are refused with
                                        ENOSPC, a new instance or container cannot extract its model data
memory     percent: p                   that share of predictions (all, unless said) runs out of memory: the container
                                        is killed in the middle of it, as the kernel does, and started again
throttle   -                            every request gets the platform's throttle (HTTP 400, no text)
deny       -                            the caller may not: every request gets AccessDeniedException (HTTP 403)
platform   status: 429                  SageMaker itself refuses every request in its own form (403, 429, 500, 502, 503,
                                        504, 530)
reset      -                            the connection is reset once the request has been read
errors     percent: p, status: 500      that share of requests is answered by the "container" with that status

Every kind takes `seconds`: the fault then ends by itself. Without `variant` a fault holds for all variants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.stack.sagemaker.api.wire import PLATFORM_ERRORS

_PARAMS: dict[str, dict[str, tuple[float, float]]] = {
    "kill": {},
    "hang": {},
    "slow": {"ms": (0, 600_000), "factor": (1, 10_000)},
    "stress": {"cores": (0.01, 1024)},
    "ping": {},
    "disk": {},
    "memory": {"percent": (0, 100)},
    "throttle": {},
    "deny": {},
    "platform": {"status": (400, 599)},
    "reset": {},
    "errors": {"percent": (0, 100), "status": (400, 599)},
}
"""Kind -> parameter -> least and greatest value."""
KINDS = tuple(_PARAMS)
_SECONDS = (0.001, 86_400.0)


class FaultError(ValueError):
    """The request for a fault makes no sense; the message says why."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much longer a prediction takes: `factor` times its own time, and `ms` on top."""

    ms: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in force."""

    id: str
    endpoint: str
    kind: str
    variant: str | None
    params: Mapping[str, float]
    since: float

    def holds_for(self, endpoint: str, variant: str) -> bool:
        """Whether it concerns that variant."""
        return self.endpoint == endpoint and self.variant in (None, variant)

    def shown(self) -> dict[str, object]:
        """As the admin API lists it."""
        shown: dict[str, object] = {"id": self.id, "endpoint": self.endpoint, "kind": self.kind}
        return shown | {"variant": self.variant, "params": dict(self.params), "since": self.since}


@dataclass(slots=True)
class FaultTable:
    """The faults in force, in the order they came."""

    _faults: dict[str, Fault] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, request: object, now: float) -> Fault:
        """Put the fault a request describes in force. Raises `FaultError`."""
        endpoint, kind, variant, params = _parse(request)
        fault = Fault(f"fault-{next(self._ids)}", endpoint, kind, variant, params, now)
        self._faults[fault.id] = fault
        return fault

    def remove(self, fault_id: str) -> Fault | None:
        """End one fault; None if there is none of that id."""
        return self._faults.pop(fault_id, None)

    def forget(self, endpoint: str) -> None:
        """End all faults of an endpoint that goes away."""
        self._faults = {i: f for i, f in self._faults.items() if f.endpoint != endpoint}

    def all(self) -> list[Fault]:
        """Those in force."""
        return list(self._faults.values())

    def view(self, endpoint: str, variant: str) -> VariantFaults:
        """What holds for one variant, always as of now."""
        return VariantFaults(self, endpoint, variant)


@dataclass(frozen=True, slots=True)
class VariantFaults:
    """A variant's sight of the table."""

    table: FaultTable
    endpoint: str
    variant: str

    def ids(self) -> list[str]:
        """Ids of what is in force here."""
        return [f.id for f in self.table.all() if f.holds_for(self.endpoint, self.variant)]

    def _of(self, kind: str) -> list[Fault]:
        # Read on every request: most of the time the table is empty.
        faults = self.table.all()
        return [f for f in faults if f.kind == kind and f.holds_for(self.endpoint, self.variant)] if faults else []

    @property
    def held_down(self) -> bool:
        """Nothing may run (kill)."""
        return bool(self._of("kill"))

    @property
    def hangs(self) -> bool:
        """Requests are never answered."""
        return bool(self._of("hang"))

    @property
    def throttles(self) -> bool:
        """Requests are throttled."""
        return bool(self._of("throttle"))

    @property
    def fails_pings(self) -> bool:
        """Health checks fail."""
        return bool(self._of("ping"))

    @property
    def disk_full(self) -> bool:
        """Nothing can be written."""
        return bool(self._of("disk"))

    def out_of_memory(self, draw: float) -> bool:
        """Whether this prediction is killed; `draw` is uniform in [0, 100)."""
        return any(draw < fault.params.get("percent", 100.0) for fault in self._of("memory"))

    @property
    def denies(self) -> bool:
        """Callers are not authorized."""
        return bool(self._of("deny"))

    @property
    def refusal(self) -> int | None:
        """The status of the refusal with which the platform meets every request; the oldest fault's."""
        faults = self._of("platform")
        return int(faults[0].params["status"]) if faults else None

    @property
    def resets(self) -> bool:
        """Connections are reset once a request has been read."""
        return bool(self._of("reset"))

    @property
    def slowdown(self) -> Slowdown | None:
        """All slow faults together: milliseconds add up, factors multiply."""
        faults = self._of("slow")
        if not faults:
            return None
        ms = math.fsum(f.params.get("ms", 0.0) for f in faults)
        return Slowdown(ms, math.prod(f.params.get("factor", 1.0) for f in faults))

    @property
    def burnt_cores(self) -> float:
        """Host cores each instance burns (stress)."""
        return math.fsum(f.params["cores"] for f in self._of("stress"))

    def error_status(self, draw: float) -> int | None:
        """The status this request fails with, or None; `draw` is uniform in [0, 100)."""
        for fault in self._of("errors"):
            if draw < fault.params["percent"]:
                return int(fault.params.get("status", 500))
        return None


def _parse(request: object) -> tuple[str, str, str | None, dict[str, float]]:
    if not isinstance(request, dict):
        raise FaultError("the body is not a JSON object")
    if unknown := sorted(set(request) - {"endpoint", "kind", "variant", "params"}):
        raise FaultError(f"unknown member {unknown[0]!r}; known: endpoint, kind, variant, params")
    endpoint, kind, variant = request.get("endpoint"), request.get("kind"), request.get("variant")
    if not isinstance(endpoint, str) or not endpoint:
        raise FaultError("endpoint must name an endpoint")
    if not isinstance(kind, str) or kind not in _PARAMS:
        raise FaultError(f"kind must be one of {', '.join(_PARAMS)}; got {kind!r}")
    if variant is not None and not isinstance(variant, str):
        raise FaultError("variant must be a variant's name")
    return endpoint, kind, variant, _parse_params(kind, request.get("params") or {})


def _parse_params(kind: str, params: Any) -> dict[str, float]:
    if not isinstance(params, dict):
        raise FaultError("params must be a JSON object")
    limits = _PARAMS[kind] | {"seconds": _SECONDS}
    for name, value in params.items():
        if name not in limits:
            raise FaultError(f"{kind} has no parameter {name!r}; it takes {', '.join(limits)}")
        least, most = limits[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise FaultError(f"{kind}: {name} must be a number from {least:g} to {most:g}; got {value!r}")
    if kind == "slow" and not params.keys() & {"ms", "factor"}:
        raise FaultError("slow needs ms or factor")
    for needed in {"stress": ("cores",), "errors": ("percent",), "platform": ("status",)}.get(kind, ()):
        if needed not in params:
            raise FaultError(f"{kind} needs {needed}")
    if kind == "platform" and params["status"] not in PLATFORM_ERRORS:
        known = ", ".join(map(str, PLATFORM_ERRORS))
        raise FaultError(f"platform: status must be one of {known} (400: use throttle); got {params['status']!r}")
    return {name: float(value) for name, value in params.items()}
