"""What a second costs: the dated price book (`pricebook.json`, every figure with its source) as typed values.

Prices are on-demand USD. A figure the book does not have is an error that names it, never a guess: nothing routes on a
made-up price.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FILE = Path(__file__).with_name("pricebook.json")


class PriceError(LookupError):
    """The book has no such figure; the message names region, figure and what it does have."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Row):
    """Where figures come from; `as_of` is as exact as the source is, None where it bears no date."""

    what: str
    as_of: str | None


class Price(_Row):
    """One figure, USD."""

    usd: float = Field(gt=0)
    source: str


class InstanceType(_Row):
    """The hardware of an instance type, for utilization that CloudWatch sums over cores and GPUs."""

    vcpus: int = Field(ge=1)
    gpus: int = Field(ge=0)


class RegionPrices(_Row):
    """One region's figures."""

    hosting_per_hour: dict[str, Price]
    transform_per_hour: dict[str, Price] = Field(default_factory=dict)
    """Batch transform; few are on record, and a stack file may say what the book does not know."""
    serverless_per_s: dict[int, Price]
    """By memory in MB; per second of inference, billed by the millisecond."""
    services: dict[str, Price]
    """Everything around the model: function, gateway, tables, logs, metrics."""


class PriceBook(_Row):
    """The whole book."""

    schema_: str = Field(alias="schema", pattern=r"^inferlane/prices/v1$")
    currency: str = Field(pattern=r"^USD$")
    compiled: str
    sources: dict[str, Source]
    instance_types: dict[str, InstanceType]
    regions: dict[str, RegionPrices]

    @model_validator(mode="after")
    def _every_figure_has_its_source(self) -> PriceBook:
        for region, prices in self.regions.items():
            for group in (
                *(prices.hosting_per_hour, prices.transform_per_hour),
                *(prices.serverless_per_s, prices.services),
            ):
                for figure, price in group.items():
                    if price.source not in self.sources:
                        raise ValueError(f"{region}: {figure} names an unknown source {price.source!r}")
        return self

    def hardware(self, instance_type: str) -> InstanceType:
        """vCPUs and GPUs of an instance type. Raises `PriceError`."""
        try:
            return self.instance_types[instance_type]
        except KeyError:
            raise PriceError(f"{instance_type!r} is not one of {', '.join(sorted(self.instance_types))}") from None

    def processor(self, instance_type: str) -> Literal["cpu", "gpu"]:
        """Which build of a container image an instance type runs. Raises `PriceError`."""
        return "gpu" if self.hardware(instance_type).gpus else "cpu"

    def region(self, region: str) -> RegionPrices:
        """All figures of a region. Raises `PriceError`."""
        try:
            return self.regions[region]
        except KeyError:
            known = ", ".join(sorted(self.regions))
            raise PriceError(f"no prices are known for region {region}, only for {known}") from None

    def hosting_per_hour(self, region: str, instance_type: str) -> float:
        """USD per instance-hour of a real-time endpoint. Raises `PriceError`."""
        prices = self.region(region).hosting_per_hour
        try:
            return prices[instance_type].usd
        except KeyError:
            raise PriceError(f"no hosting price is known for {instance_type} in {region}") from None

    def transform_per_hour(self, region: str, instance_type: str) -> float:
        """USD per instance-hour of a transform job. Raises `PriceError`."""
        prices = self.region(region).transform_per_hour
        try:
            return prices[instance_type].usd
        except KeyError:
            raise PriceError(f"no batch transform price is known for {instance_type} in {region}") from None

    def serverless_per_s(self, region: str, memory_mb: int) -> float:
        """USD per second of serverless inference at a memory size. Raises `PriceError`."""
        prices = self.region(region).serverless_per_s
        try:
            return prices[memory_mb].usd
        except KeyError:
            raise PriceError(f"no serverless price is known for {memory_mb} MB in {region}") from None


@cache
def load(path: Path = FILE) -> PriceBook:
    """Read and validate the book."""
    return PriceBook.model_validate_json(path.read_bytes())
