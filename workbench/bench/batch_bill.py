"""What 1,000 requests cost on the serverless lane, as jobs of the batch lane, and as a data set. Pure.

Two bills. The **ledger** is compute alone: the milliseconds that serverless bills, against the seconds of a transform
job, start-up included. The **whole bill** adds what else each way is charged for: gateway, functions, queue, records,
objects, logs. Both are straight lines in the service time and in 1 / requests per job, so that where one way becomes
cheaper than another is arithmetic.

Seconds are compared core by core: a request keeps one core of this machine busy for `request_s`, a record of a job
for `record_core_s`, both measured in one run. A vCPU there is taken to be worth a core here on either side, so that
the ratio does not depend on how fast this machine is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

PER = 1000
_GB = 1e9
_HOUR_S = 3600
TARGET: Final = 0.35
"""What a batch job may cost at most of what serverless would."""
Items = Mapping[str, float]
"""USD for 1,000 requests, by what they are for."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is not measured here; each can be set with `--assume NAME=VALUE`. (?): no published figure."""

    region: str = "us-east-1"
    instance_type: str = "ml.c5.xlarge"
    vcpus: int = 4
    requests_per_job: int = 20_000
    provisioning_s: float = 30.0
    """Billed of a job before its container starts: image pull (?). Two small jobs on record were billed 21 s and 27 s
    in all (DIAGNijmegen/grand-challenge.org and awslabs/mlspace, in their tests); a large image takes minutes
    (fourTheorem/podwhisperer#9). What passes before TransformStartTime is not billed."""
    vcpu_yield: float = 1.0
    """Work that each vCPU of a fully busy instance does, in cores (?). Its vCPUs are hyperthreads: 0.65 would be two
    to a core that do 1.3 times the work of one. Serverless vCPUs are hyperthreads too, with neighbours unseen."""
    mb_per_vcpu: float = 1769.0
    """Serverless memory that brings one vCPU (?): AWS Lambda's figure; SageMaker publishes none for its serverless."""
    router_gb: float = 1.0
    """The `route` function; `jobs`, `collect` and `settle` are taken to be as large."""
    router_own_ms: float = 2.0
    """Of a synchronous request, beside the wait for the model (?)."""
    overhead_ms: float = 10.0
    """What an invocation takes beyond the model's own time (the topology's `overhead_ms`); the function waits for it,
    serverless does not bill it."""
    accept_ms: float = 15.0
    """Of a request that becomes a job: a message, then a record (?)."""
    read_ms: float = 8.0
    """Of `GET /v1/jobs/{id}`: one read (?)."""
    polls: float = 1.0
    """How often a caller asks for its job. A caller that polls asks more often; one that is notified, once."""
    log_bytes: float = 1500.0
    """Of one invocation: its receipt and the platform's own lines."""
    gather_ms: float = 1.5
    """Of `collect` and `settle` together, for one record (?)."""
    kept_days: float = 7.0
    """How long an ended job's record is kept (`job_days`)."""
    audits_per_day: float = 4.0
    record_kb: float = 0.5
    """Of a job's item: what the audit reads, and the table stores (?)."""

    def changed(self, settings: Mapping[str, str]) -> Assumptions:
        """With other values. Raises `ValueError` naming one that is unknown or of the wrong kind."""
        kinds = {each.name: type(getattr(self, each.name)) for each in dataclasses.fields(self)}
        if unknown := sorted(set(settings) - set(kinds)):
            raise ValueError(f"nothing is assumed of {', '.join(unknown)}; there are: {', '.join(kinds)}")
        values: dict[str, Any] = {}
        for name, text in settings.items():
            try:
                values[name] = kinds[name](text)
            except ValueError:
                raise ValueError(f"{name} is no {kinds[name].__name__}: {text!r}") from None
        return dataclasses.replace(self, **values)


@dataclass(frozen=True, slots=True)
class Operations:
    """What the batch lane does for each job beside computing, as a test counts it over the functions themselves.

    A record of under 1 KB costs one unit a write, and one a read."""

    writes: float = 4.0
    """DynamoDB: the record, its entry in the index by time, the claim, the end."""
    reads: float = 1.0
    """DynamoDB: `collect` looks at the record before it gathers it."""
    queue_requests: float = 1.2
    """SQS: one sent by itself, received and deleted by ten."""
    part_records: float = 500.0
    """Records that are gathered into one part of a run at most, and share its objects."""
    part_puts: float = 3.0
    """S3, for a part: its input and its index, and the transform job's output."""
    part_gets: float = 3.0
    """S3, for a part: the transform job reads the input, `settle` the index and the output."""


@dataclass(frozen=True, slots=True)
class Prices:
    """USD, of one region."""

    instance_hour: float
    serverless_per_s: Mapping[int, float]
    """By memory in MB."""
    services: Mapping[str, float]

    @classmethod
    def of(cls, book: Mapping[str, Any], assumed: Assumptions) -> Prices:
        """From the price book. Raises `KeyError` for a region, type or service that it lacks."""
        region = book["regions"][assumed.region]
        return cls(
            region["hosting_per_hour"][assumed.instance_type]["usd"],
            {int(size): price["usd"] for size, price in region["serverless_per_s"].items()},
            {name: price["usd"] for name, price in region["services"].items()},
        )


@dataclass(frozen=True, slots=True)
class Service:
    """How a model was seen to work."""

    request_s: float
    """One request by itself, on one core: what serverless bills."""
    two_core_gain: float
    """How much faster it is with two cores for one request; 1: not at all."""
    record_core_s: float
    """A record of a MultiRecord job, on one core."""
    startup_s: float
    """Of a job: its container's start and the model's load."""
    least_mb: int
    """The smallest serverless memory that holds the model."""
    request_bytes: float
    answer_bytes: float

    def scaled(self, factor: float) -> Service:
        """The same with so many times the work a record."""
        return dataclasses.replace(self, request_s=self.request_s * factor, record_core_s=self.record_core_s * factor)


@dataclass(frozen=True, slots=True)
class Bill:
    """One model's costs under one set of prices and assumptions."""

    service: Service
    prices: Prices
    assumed: Assumptions
    operations: Operations = Operations()

    # Compute

    def serverless_s(self, memory_mb: int) -> float:
        """Billed for one request at a memory size: slower below one vCPU, faster above as far as two cores help."""
        vcpus = memory_mb / self.assumed.mb_per_vcpu
        speed = vcpus if vcpus < 1 else 1 + (min(vcpus, 2.0) - 1) * (self.service.two_core_gain - 1)
        return self.service.request_s / speed

    def serverless(self, memory_mb: int) -> float:
        """USD for 1,000 requests, compute alone."""
        return PER * self.serverless_s(memory_mb) * self.prices.serverless_per_s[memory_mb]

    @property
    def cheapest_mb(self) -> int:
        """The memory size at which serverless costs least, of those that hold the model."""
        sizes = [size for size in self.prices.serverless_per_s if size >= self.service.least_mb]
        return min(sizes, key=self.serverless)

    def job_s(self, requests: float) -> float:
        """Billed for one transform job on one instance."""
        work_s = requests * self.service.record_core_s / (self.assumed.vcpus * self.assumed.vcpu_yield)
        return self.assumed.provisioning_s + self.service.startup_s + work_s

    def batch(self, requests: float | None = None) -> float:
        """USD for 1,000 records of a job of so many, compute alone."""
        count = requests or self.assumed.requests_per_job
        return PER / count * self.job_s(count) * self.prices.instance_hour / _HOUR_S

    # All of it

    def whole_serverless(self, memory_mb: int) -> Items:
        """A synchronous request: gateway, function that waits, endpoint."""
        waits_ms = self.serverless_s(memory_mb) * 1e3 + self.assumed.overhead_ms + self.assumed.router_own_ms
        data = (self.service.request_bytes + self.service.answer_bytes) / _GB
        return {
            "compute": self.serverless(memory_mb),
            "endpoint data": PER * data * self.prices.services["sagemaker_serverless_data_per_gb"],
            "gateway": self._gateway(1),
            "functions": self._functions(1, waits_ms),
            "logs": self._logs(1),
        }

    def whole_batch(self, requests: float | None = None) -> Items:
        """A request that becomes a job of its own, and its result fetched."""
        count, polls = requests or self.assumed.requests_per_job, self.assumed.polls
        services, does = self.prices.services, self.operations
        parts = max(1.0, count / does.part_records) * PER / count
        busy_ms = self.assumed.accept_ms + polls * self.assumed.read_ms + self.assumed.gather_ms
        return {
            "compute": self.batch(count),
            "gateway": self._gateway(1 + polls),
            "functions": self._functions(1 + polls, busy_ms),
            "logs": self._logs(1 + polls),
            "queue": PER * does.queue_requests * services["sqs_per_request"],
            "records": PER * does.writes * services["dynamodb_per_write_unit"]
            + PER * (does.reads + polls) * services["dynamodb_per_read_unit"],
            "audit and storage": PER * self._kept(),
            "objects": parts * (does.part_puts * services["s3_per_put"] + does.part_gets * services["s3_per_get"]),
        }

    def whole_dataset(self, requests: float | None = None) -> Items:
        """A record of a data set that is one job: everything but compute is paid once for all of them."""
        count = requests or self.assumed.requests_per_job
        one = {name: usd / count for name, usd in self.whole_batch(count).items() if name != "compute"}
        return {"compute": self.batch(count), "everything else, once": sum(one.values())}

    def _kept(self) -> float:
        """USD for one record while it is kept: stored, and read by every audit's scan, half a unit for 4 KB."""
        units = self.assumed.kept_days * self.assumed.audits_per_day * self.assumed.record_kb / 4 / 2
        gb_months = self.assumed.record_kb / 1e6 * self.assumed.kept_days / 30
        services = self.prices.services
        return units * services["dynamodb_per_read_unit"] + gb_months * services["dynamodb_per_gb_month"]

    def _gateway(self, calls: float) -> float:
        return PER * calls * self.prices.services["http_api_per_request"]

    def _functions(self, calls: float, busy_ms: float) -> float:
        gb_s = busy_ms / 1e3 * self.assumed.router_gb
        services = self.prices.services
        return PER * (calls * services["lambda_per_request"] + gb_s * services["lambda_arm64_per_gb_s"])

    def _logs(self, calls: float) -> float:
        return PER * calls * self.assumed.log_bytes / _GB * self.prices.services["logs_ingest_per_gb"]

    def around_ms(self, memory_mb: int) -> float:
        """What a job pays for its message, record and objects, as milliseconds of serverless at a memory size."""
        items = self.whole_batch()
        usd = sum(items[name] for name in ("queue", "records", "audit and storage", "objects"))
        return usd / PER / self.prices.serverless_per_s[memory_mb] * 1e3

    # Where it turns

    def service_time_ms(self, share: float, memory_mb: int, *, whole: bool) -> float | None:
        """From which service time on a job costs at most `share` of serverless; None: never."""

        def surplus(factor: float) -> float:
            bill = dataclasses.replace(self, service=self.service.scaled(factor))
            if whole:
                return share * sum(bill.whole_serverless(memory_mb).values()) - sum(bill.whole_batch().values())
            return share * bill.serverless(memory_mb) - bill.batch()

        factor = _turn(surplus)
        return None if factor is None else factor * self.service.request_s * 1e3

    def requests_per_job(self, share: float, memory_mb: int) -> float | None:
        """From how many requests a job on compute is at most `share` of serverless; None: never."""
        inverse = _turn(lambda part: self.batch(1 / part) - share * self.serverless(memory_mb), first=1e-9, second=1e-3)
        return None if inverse is None else 1 / inverse


def _turn(line: Callable[[float], float], first: float = 0.0, second: float = 1.0) -> float | None:
    """Where a straight line that rises is zero; None where it does not rise, or is above zero before `first`."""
    at_first, at_second = line(first), line(second)
    slope = (at_second - at_first) / (second - first)
    return None if slope <= 0 or at_first > 0 else first - at_first / slope
