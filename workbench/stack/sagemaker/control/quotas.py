"""What the account may use: service quotas under the names that Service Quotas and AWS's refusals give them. Pure.

A quota counts what all endpoints together have or are getting. Serverless concurrency is reserved when an endpoint is
created or updated, whatever is then used of it. An update reserves a dedicated variant's new instances on top of the
old ones, for both fleets run; of a serverless variant's concurrency it reserves the difference.

`generous` has AWS's documented figures, or more where those differ from account to account; `new-account` has what new
accounts have been seen to get: no GPU instances, serverless endpoints of 3 GB and ten concurrent requests in all.
Sources: aws/amazon-sagemaker-examples#307, aws-samples/aws-genai-llm-chatbot#244 (texts); the guide's
serverless-endpoints (50 endpoints, 1000 concurrent, per Region); quota L-96300102 (its name, and 10 on some accounts).
Its unit in AWS's text, and the name of the quota on the number of serverless endpoints, are not public.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.records import Capacity, Endpoint, Plan, Serverless

Profile = Literal["generous", "new-account"]
PROFILES: tuple[Profile, ...] = ("generous", "new-account")

CONCURRENCY = "Maximum total concurrency that can be allocated across all serverless endpoints"
MEMORY = "Memory size in MB per serverless endpoint"
SERVERLESS_ENDPOINTS = "Maximum number of serverless endpoints"
ENDPOINTS = "Number of endpoints"
_UNITS = {CONCURRENCY: "None", MEMORY: "MBs", SERVERLESS_ENDPOINTS: "Endpoints", ENDPOINTS: "Endpoints"}
_INSTANCES = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9]+ for (endpoint|transform job) usage")
_ACCELERATED = re.compile(r"ml\.(p|g|inf|trn|dl)\d")


class Defaults(NamedTuple):
    """A profile's figures."""

    instances: int
    accelerated: int
    """Of a type with GPUs or other accelerators."""
    named: Mapping[str, int]


_PROFILES: Mapping[Profile, Defaults] = {
    "generous": Defaults(100, 100, {CONCURRENCY: 1000, MEMORY: 6144, SERVERLESS_ENDPOINTS: 50, ENDPOINTS: 1000}),
    "new-account": Defaults(2, 0, {CONCURRENCY: 10, MEMORY: 3072, SERVERLESS_ENDPOINTS: 50, ENDPOINTS: 100}),
}


class QuotaError(ValueError):
    """A change of quotas that makes no sense; the message says why."""


def profile(name: str) -> Profile:
    """The profile of that name. Raises `QuotaError`."""
    for known in PROFILES:
        if known == name:
            return known
    raise QuotaError(f"there is no quota profile {name!r}; there are {', '.join(PROFILES)}")


def endpoint_usage(instance_type: str) -> str:
    """The quota on a type's instances behind endpoints."""
    return f"{instance_type} for endpoint usage"


def transform_usage(instance_type: str) -> str:
    """The quota on a type's instances of batch transform jobs."""
    return f"{instance_type} for transform job usage"


def exceeded(name: str, value: int, current: int, delta: int) -> AwsError:
    """The refusal of `delta` more beside `current` under a quota of `value`."""
    unit = _UNITS.get(name, "Instances")
    return AwsError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{name}' is {value} {unit}, with current utilization of {current} {unit} "
        f"and a request delta of {delta} {unit}. Please use AWS Service Quotas to request an increase for this quota. "
        "If AWS Service Quotas is not available, contact AWS support to request an increase for this quota.",
    )


@dataclass(slots=True)
class Quotas:
    """The account's quotas: a profile, and what was set since."""

    profile: Profile = "generous"
    changed: dict[str, int] = field(default_factory=dict)

    def value(self, name: str) -> int:
        """A quota's value."""
        defaults = _PROFILES[self.profile]
        if name in self.changed:
            return self.changed[name]
        if name in defaults.named:
            return defaults.named[name]
        return defaults.accelerated if _ACCELERATED.match(name) else defaults.instances

    def check(self, name: str, current: int, delta: int) -> None:
        """Raises `AwsError` when `delta` more do not fit beside `current`."""
        value = self.value(name)
        if delta > 0 and current + delta > value:
            raise exceeded(name, value, current, delta)

    def change(self, request: object) -> None:
        """Set quotas by name; null puts one back to its profile's value. Raises `QuotaError` and then changes none."""
        if not isinstance(request, Mapping):
            raise QuotaError('expected {"NAME": VALUE, ...}')
        for name, value in request.items():
            if name not in _UNITS and not _INSTANCES.fullmatch(name):
                known = ", ".join(sorted(_UNITS))
                raise QuotaError(f"there is no quota {name!r}; there are <instance type> for endpoint usage, {known}")
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise QuotaError(f"{name} must be a whole number, zero or more; got {value!r}")
        self.changed = {n: v for n, v in {**self.changed, **request}.items() if v is not None}

    def shown(self, use: Mapping[str, int]) -> dict[str, object]:
        """As the admin API lists them: the named ones, and every one that is used or was set."""
        names = sorted({*_UNITS, *self.changed, *use})
        rows = [{"name": n, "value": self.value(n), "used": use.get(n, 0), "set": n in self.changed} for n in names]
        return {"profile": self.profile, "quotas": rows}


def usage(endpoints: Iterable[Endpoint]) -> dict[str, int]:
    """What endpoints have reserved, by quota. A Failed one holds nothing but its name."""
    total: dict[str, int] = {}
    for endpoint in endpoints:
        serverless = any(p.variant.serverless for p in endpoint.plan.variants)
        _add(total, {ENDPOINTS: 1, SERVERLESS_ENDPOINTS: int(serverless)})
        if endpoint.status != "Failed":
            _add(total, _held(endpoint))
    return total


def check_create(quotas: Quotas, plan: Plan, use: Mapping[str, int]) -> None:
    """CreateEndpoint. Raises `AwsError`."""
    wanted = needs(plan)
    serverless = any(p.variant.serverless for p in plan.variants)
    _check(quotas, use, {ENDPOINTS: 1, SERVERLESS_ENDPOINTS: int(serverless), **wanted})
    _check_memory(quotas, plan)


def check_update(quotas: Quotas, endpoint: Endpoint, plan: Plan, use: Mapping[str, int]) -> None:
    """UpdateEndpoint. Raises `AwsError`."""
    wanted = needs(plan)
    wanted[CONCURRENCY] = wanted.get(CONCURRENCY, 0) - _concurrency(endpoint.sizes)
    _check(quotas, use, wanted)
    _check_memory(quotas, plan)


def check_capacity(quotas: Quotas, endpoint: Endpoint, wanted: Capacity, use: Mapping[str, int]) -> None:
    """New counts or sizes of an endpoint's variants. Raises `AwsError`."""
    more: dict[str, int] = {CONCURRENCY: _concurrency(wanted.sizes) - _concurrency(endpoint.sizes)}
    for name, type_ in _types(endpoint.plan).items():
        _add(more, {endpoint_usage(type_): wanted.counts[name] - endpoint.desired[name]})
    _check(quotas, use, more)


def needs(plan: Plan) -> dict[str, int]:
    """What a plan reserves by itself, by quota."""
    total: dict[str, int] = {}
    for planned in plan.variants:
        variant = planned.variant
        if variant.serverless:
            _add(total, {CONCURRENCY: variant.serverless.max_concurrency})
        elif variant.instance_type:
            _add(total, {endpoint_usage(variant.instance_type): planned.count})
    return total


def _held(endpoint: Endpoint) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, type_ in _types(endpoint.plan).items():
        before = endpoint.previous.counts.get(name, 0) if endpoint.previous else 0
        _add(total, {endpoint_usage(type_): max(endpoint.desired.get(name, 0), before)})
    _add(total, {CONCURRENCY: _concurrency(endpoint.sizes)})
    if endpoint.pending is not None:
        more = needs(endpoint.pending)
        # One serverless fleet takes the other's place in the account's concurrency.
        more[CONCURRENCY] = max(more.get(CONCURRENCY, 0) - total[CONCURRENCY], 0)
        _add(total, more)
    return total


def _types(plan: Plan) -> dict[str, str]:
    return {p.variant.name: p.variant.instance_type for p in plan.variants if p.variant.instance_type}


def _concurrency(sizes: Mapping[str, Serverless]) -> int:
    return sum(size.max_concurrency for size in sizes.values())


def _check(quotas: Quotas, use: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    for name, delta in wanted.items():
        quotas.check(name, use.get(name, 0), delta)


def _check_memory(quotas: Quotas, plan: Plan) -> None:
    for planned in plan.variants:
        if planned.variant.serverless:
            quotas.check(MEMORY, 0, planned.variant.serverless.memory_mb)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
