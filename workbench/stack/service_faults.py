"""Faults of the offline cloud's other services on request: what can be broken, and what is in force now. Pure.

kind        params         effect on a call that is met
throttle    percent: p     refused as the service throttles
error       percent: p     refused with the service's own failure; it is not carried out
lost        percent: p     carried out, and answered with the service's own failure
slow        ms: n          carried out n ms later
kill        call: n        the process of the Lambda function that makes the n-th such call (first, unless said) is
                           killed before the call is carried out
kill-after  call: n        likewise, once it is carried out and before the function hears of it

`service` is s3, dynamodb, sqs or firehose. `operations` narrows it to some (PutItem, ReceiveMessage, PutObject …),
`resource` to tables, queues, streams or S3's `bucket/key` by a pattern, `function` to calls that Lambda functions of
a pattern make. `code` names the refusal, where a service has several (ProvisionedThroughputExceededException).
Every kind takes `seconds`: the fault then ends by itself; and `times`: it meets that many calls and no more (a kill:
one, unless said). Only what goes over the wire is met: what MiniStack's services do among themselves is not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from workbench.stack.calls import Call
from workbench.stack.refusals import REFUSALS, Form, Refusal

_SECONDS, _PERCENT, _COUNT = (0.001, 86_400.0), (0.0, 100.0), (1.0, 1_000_000.0)
_PARAMS: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "throttle": {"percent": _PERCENT},
    "error": {"percent": _PERCENT},
    "lost": {"percent": _PERCENT},
    "slow": {"ms": (1, 60_000)},
    "kill": {"call": _COUNT},
    "kill-after": {"call": _COUNT},
}
"""Kind -> parameter -> least and greatest value."""
KINDS: Final = tuple(_PARAMS)
KILLS: Final = ("kill", "kill-after")
SERVICES: Final = tuple(REFUSALS)
_FORMS: Final[Mapping[str, Form]] = {"throttle": "throttle", "error": "error", "lost": "error"}
_TEXTS: Final = ("resource", "function", "code")


class ServiceFaultError(ValueError):
    """The request for a fault makes no sense; the message says why."""


@dataclass(slots=True)
class ServiceFault:
    """One fault in force."""

    id: str
    service: str
    kind: str
    operations: frozenset[str]
    resource: str | None
    function: str | None
    refusal: Refusal | None
    params: Mapping[str, float]
    since: float
    seen: int = 0
    """Calls that it holds for."""
    met: int = 0
    """Calls that it met."""

    @property
    def wants_caller(self) -> bool:
        """Whether it has to be known who calls."""
        return self.function is not None or self.kind in KILLS

    def concerns(self, call: Call) -> bool:
        """Whether it holds for such calls, whoever makes them."""
        if self.service != call.service or (self.operations and call.operation not in self.operations):
            return False
        return self.resource is None or fnmatchcase(call.resource, self.resource)

    def meets(self, function: str | None, draw: float) -> bool:
        """Whether it meets a call that it concerns, made by that Lambda function or by none; a meeting counts."""
        if self.function is not None and (function is None or not fnmatchcase(function, self.function)):
            return False
        if self.kind in KILLS and function is None:
            return False
        self.seen += 1
        most = self.params.get("times", 1.0 if self.kind in KILLS else math.inf)
        if self.met >= most or self.seen < self.params.get("call", 1.0) or draw >= self.params.get("percent", 100.0):
            return False
        self.met += 1
        return True

    def over(self, now: float) -> bool:
        """Whether its time is over."""
        return now - self.since >= self.params.get("seconds", math.inf)

    def shown(self) -> dict[str, object]:
        """As the admin API lists it."""
        shown: dict[str, object] = {"id": self.id, "service": self.service, "kind": self.kind}
        shown |= {"operations": sorted(self.operations), "resource": self.resource, "function": self.function}
        shown |= {"code": self.refusal.code if self.refusal else None}
        return shown | {"params": dict(self.params), "since": self.since, "met": self.met}


@dataclass(slots=True)
class ServiceFaults:
    """The faults in force, in the order they came."""

    _faults: dict[str, ServiceFault] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, request: object, now: float) -> ServiceFault:
        """Put the fault a request describes in force. Raises `ServiceFaultError`."""
        fault = _parse(request, f"service-fault-{next(self._ids)}", now)
        self._faults[fault.id] = fault
        return fault

    def remove(self, fault_id: str) -> ServiceFault | None:
        """End one fault; None if there is none of that id."""
        return self._faults.pop(fault_id, None)

    def all(self, now: float) -> list[ServiceFault]:
        """Those in force."""
        if self._faults:  # read on every request: most of the time the table is empty
            self._faults = {name: fault for name, fault in self._faults.items() if not fault.over(now)}
        return list(self._faults.values())


def _parse(request: object, fault_id: str, now: float) -> ServiceFault:
    if not isinstance(request, Mapping):
        raise ServiceFaultError("the body is not a JSON object")
    known = ("service", "kind", "operations", *_TEXTS, "params")
    if unknown := sorted(set(request) - set(known)):
        raise ServiceFaultError(f"unknown member {unknown[0]!r}; known: {', '.join(known)}")
    service, kind = request.get("service"), request.get("kind")
    if service not in SERVICES:
        raise ServiceFaultError(f"service must be one of {', '.join(SERVICES)}; got {service!r}")
    if kind not in KINDS:
        raise ServiceFaultError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    operations = request.get("operations") or []
    if not isinstance(operations, list) or not all(isinstance(each, str) and each for each in operations):
        raise ServiceFaultError("operations must be a list of names, such as PutItem")
    texts = {name: request.get(name) for name in _TEXTS}
    for name, value in texts.items():
        if value is not None and (not isinstance(value, str) or not value):
            raise ServiceFaultError(f"{name} must be a text")
    return ServiceFault(
        fault_id,
        str(service),
        str(kind),
        frozenset(operations),
        texts["resource"],
        texts["function"],
        _refusal(str(service), str(kind), texts["code"]),
        _parse_params(str(kind), request.get("params") or {}),
        now,
    )


def _refusal(service: str, kind: str, code: str | None) -> Refusal | None:
    if kind not in _FORMS:
        if code is not None:
            raise ServiceFaultError(f"{kind} refuses nothing, so that it has no code")
        return None
    offered = REFUSALS[service][_FORMS[kind]]
    found = offered[0] if code is None else next((each for each in offered if each.code == code), None)
    if found is None:
        raise ServiceFaultError(f"{service} has for {kind}: {', '.join(each.code for each in offered)}; got {code!r}")
    return found


def _parse_params(kind: str, given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ServiceFaultError("params must be a JSON object")
    limits = {**_PARAMS[kind], "seconds": _SECONDS, "times": _COUNT}
    params: dict[str, float] = {}
    for name, value in given.items():
        if name not in limits:
            raise ServiceFaultError(f"{kind} has no parameter {name!r}; it takes {', '.join(limits)}")
        least, most = limits[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ServiceFaultError(f"{kind}: {name} must be a number from {least:g} to {most:g}; got {value!r}")
        params[name] = float(value)
    if kind == "slow" and "ms" not in params:
        raise ServiceFaultError("slow needs ms")
    return params
