"""Faults of transform jobs on request: what can be broken, for which jobs, and what is in force now. Pure.

kind       params                       effect
algorithm  files: p                     that share of a job's objects (all, unless said; which ones, their keys decide)
                                        fails by the model's fault and has no output; the job is Failed
client     files: p                     likewise, by the input's fault
internal   after_files: n               the service fails: Failed with its own words once n objects (0, unless said) are
                                        through; their output stays
capacity   -                            no instances are to be had: Failed without having started
stop       after_files: n               somebody stops the job: Stopping, then Stopped
slow       ms: n, factor: f, start_s: s each prediction takes n ms longer, or f times as long; instances come s AWS
                                        seconds later
errors     percent: p, status: 500      that share of predictions is answered with that status, and tried again as the
                                        service does
limit      percent: p                   CreateTransformJob finds the account's quota used up: ResourceLimitExceeded
throttle   percent: p                   the four calls of transform jobs are refused: ThrottlingException
events     duplicate: p, drop: p,       state changes reach EventBridge twice, or never, or so many seconds late, or
           delay_s: s, shuffle_s: s     spread over so many seconds, so that they overtake one another

`jobs` is a pattern of names (`inferlane-local-*`; all, unless said). Every kind takes `seconds`: the fault then ends by
itself; and `times`: it meets that many jobs (limit and throttle: that many calls, events: that many events) and no
more. A share is drawn from `draw`, which is uniform in [0, 100), except for files.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from workbench.stack.sagemaker.faults import FaultError

_PERCENT, _SECONDS, _COUNT = (0.0, 100.0), (0.001, 86_400.0), (1.0, 1_000_000.0)
_PARAMS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "algorithm": {"files": _PERCENT},
    "client": {"files": _PERCENT},
    "internal": {"after_files": (0, 1_000_000)},
    "capacity": {},
    "stop": {"after_files": (0, 1_000_000)},
    "slow": {"ms": (0, 600_000), "factor": (1, 10_000), "start_s": (0, 86_400)},
    "errors": {"percent": _PERCENT, "status": (400, 599)},
    "limit": {"percent": _PERCENT},
    "throttle": {"percent": _PERCENT},
    "events": {"duplicate": _PERCENT, "drop": _PERCENT, "delay_s": (0, 3_600), "shuffle_s": (0, 3_600)},
}
"""Kind -> parameter -> least and greatest value."""
KINDS = tuple(_PARAMS)
_BY_CALL = ("limit", "throttle", "events")
"""Kinds whose `times` counts what happened rather than jobs."""


@dataclass(slots=True)
class JobFault:
    """One fault in force."""

    id: str
    jobs: str
    kind: str
    params: Mapping[str, float]
    since: float
    met: dict[str, int] = field(default_factory=dict)
    """How often it met each job."""

    def meets(self, job: str) -> bool:
        """Whether it holds for a job, now that it is asked for; a meeting counts."""
        if not fnmatchcase(job, self.jobs):
            return False
        spent = sum(self.met.values()) if self.kind in _BY_CALL else len(self.met)
        known = job in self.met and self.kind not in _BY_CALL
        if not known and spent >= self.params.get("times", math.inf):
            return False
        self.met[job] = self.met.get(job, 0) + 1
        return True

    def shown(self) -> dict[str, object]:
        """As the admin API lists it."""
        shown: dict[str, object] = {"id": self.id, "jobs": self.jobs, "kind": self.kind}
        return shown | {"params": dict(self.params), "since": self.since, "met": sorted(self.met)}


@dataclass(slots=True)
class JobFaults:
    """The faults in force, in the order they came."""

    _faults: dict[str, JobFault] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, request: Mapping[str, object], now: float) -> JobFault:
        """Put the fault a request describes in force. Raises `FaultError`."""
        jobs, kind, params = _parse(request)
        fault = JobFault(f"job-fault-{next(self._ids)}", jobs, kind, params, now)
        self._faults[fault.id] = fault
        return fault

    def remove(self, fault_id: str) -> JobFault | None:
        """End one fault; None if there is none of that id."""
        return self._faults.pop(fault_id, None)

    def all(self) -> list[JobFault]:
        """Those in force."""
        return list(self._faults.values())

    def refuses(self, kind: str, job: str, draw: float) -> bool:
        """Whether a call that concerns the job is refused (limit, throttle)."""
        found = (f for f in self._of(kind) if draw < f.params.get("percent", 100.0))
        return any(fault.meets(job) for fault in found)

    def publications(self, job: str, draws: Iterator[float]) -> list[float]:
        """After how many seconds an event of the job is published; empty when it is lost."""
        fault = next((f for f in self._of("events") if f.meets(job)), None)
        if fault is None:
            return [0.0]
        if next(draws) < fault.params.get("drop", 0.0):
            return []
        times = 2 if next(draws) < fault.params.get("duplicate", 0.0) else 1
        delay_s, shuffle_s = fault.params.get("delay_s", 0.0), fault.params.get("shuffle_s", 0.0)
        return [delay_s + shuffle_s * next(draws) / 100 for _ in range(times)]

    def view(self, job: str) -> OneJobsFaults:
        """What holds for one job, always as of now."""
        return OneJobsFaults(self, job)

    def _of(self, kind: str) -> list[JobFault]:
        # Read on every prediction: most of the time the table is empty.
        return [fault for fault in self._faults.values() if fault.kind == kind] if self._faults else []


@dataclass(frozen=True, slots=True)
class OneJobsFaults:
    """A job's sight of the table."""

    table: JobFaults
    job: str

    def _met(self, kind: str) -> list[JobFault]:
        return [fault for fault in self.table._of(kind) if fault.meets(self.job)]

    @property
    def start_s(self) -> float:
        """How much later its instances come, in AWS seconds."""
        return math.fsum(fault.params.get("start_s", 0.0) for fault in self._met("slow"))

    @property
    def no_capacity(self) -> bool:
        """Its instances are not to be had."""
        return bool(self._met("capacity"))

    def slowdown(self) -> tuple[float, float]:
        """How many milliseconds longer, and how many times as long, a prediction takes: all slow faults together."""
        faults = self._met("slow")
        ms = math.fsum(fault.params.get("ms", 0.0) for fault in faults)
        return ms, math.prod(fault.params.get("factor", 1.0) for fault in faults)

    def error_status(self, draw: float) -> int | None:
        """The status that a prediction is answered with in the model's place."""
        for fault in self._met("errors"):
            if draw < fault.params.get("percent", 100.0):
                return int(fault.params.get("status", 500))
        return None

    def file_fault(self, key: str) -> str | None:
        """Whose fault an object fails by, if it does: `algorithm` or `client`. An object's lot does not change."""
        for kind in ("algorithm", "client"):
            for fault in self._met(kind):
                if _lot(fault.id, key) < fault.params.get("files", 100.0):
                    return kind
        return None

    def breaks_off(self, files: int) -> str | None:
        """What ends the job once so many of its objects are through: `internal` or `stop`."""
        for kind in ("internal", "stop"):
            if any(files >= fault.params.get("after_files", 0.0) for fault in self._met(kind)):
                return kind
        return None


def _lot(fault: str, key: str) -> float:
    """Uniform in [0, 100), the same for the same fault and key."""
    return int.from_bytes(hashlib.sha256(f"{fault} {key}".encode()).digest()[:8]) / 2**64 * 100


def _parse(request: Mapping[str, object]) -> tuple[str, str, dict[str, float]]:
    if unknown := sorted(set(request) - {"jobs", "kind", "params"}):
        raise FaultError(f"unknown member {unknown[0]!r}; known: jobs, kind, params")
    jobs, kind, given = request.get("jobs"), request.get("kind"), request.get("params") or {}
    if not isinstance(jobs, str) or not jobs:
        raise FaultError("jobs must be a pattern of job names, such as inferlane-local-*")
    if not isinstance(kind, str) or kind not in _PARAMS:
        raise FaultError(f"kind must be one of {', '.join(_PARAMS)}; got {kind!r}")
    if not isinstance(given, Mapping):
        raise FaultError("params must be a JSON object")
    limits = {**_PARAMS[kind], "seconds": _SECONDS, "times": _COUNT}
    params: dict[str, float] = {}
    for name, value in given.items():
        if name not in limits:
            raise FaultError(f"{kind} has no parameter {name!r}; it takes {', '.join(limits)}")
        least, most = limits[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise FaultError(f"{kind}: {name} must be a number from {least:g} to {most:g}; got {value!r}")
        params[name] = float(value)
    if kind in ("slow", "events") and not params.keys() & _PARAMS[kind].keys():
        raise FaultError(f"{kind} needs one of {', '.join(_PARAMS[kind])}")
    return jobs, kind, params
