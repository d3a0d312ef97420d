"""What the figures must hold: limits on single figures, ratios wherever a machine's speed would matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on the figure at `path` of the measurement `bench`."""

    bench: str
    path: str
    what: str
    limit: float
    unit: str = ""
    least: bool = False
    """The figure must reach the limit; otherwise it must stay within it."""

    def verdict(self, figures: Mapping[str, Any]) -> Verdict:
        """Whether these figures hold it. Raises KeyError when the figure is not among them."""
        value: Any = figures
        for key in self.path.split("."):
            value = value[key]
        held = value >= self.limit if self.least else value <= self.limit
        return Verdict(self, float(value), held)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A budget and what was measured."""

    budget: Budget
    value: float
    held: bool

    def sentence(self) -> str:
        """The figure beside its limit."""
        bound = "at least" if self.budget.least else "at most"
        return f"{self.budget.what}: {self.value:,g} {self.budget.unit}, {bound} {self.budget.limit:,g}"

    def to_json(self) -> dict[str, object]:
        """The form in `build/bench/*.json`."""
        bound = "at_least" if self.budget.least else "at_most"
        return {"figure": self.budget.path, "value": self.value, bound: self.budget.limit, "held": self.held}


BUDGETS: Final = (
    Budget("decide", "decisions_per_s_20_rules", "decisions with 20 rules, one core", 100_000, "/s", least=True),
    Budget("decide", "ratio_40_to_20_rules", "decision time, 40 rules to 20: linear at most", 2.0, "×"),
    Budget("decide", "worked_out_ratio_40_to_20_rules", "the same, every decision worked out anew", 2.0, "×"),
    Budget("router", "p50_ratio", "warm handler to a bare boto3 handler, P50", 0.75, "×"),
    Budget("router", "p99_ratio", "warm handler to a bare boto3 handler, P99", 1.0, "×"),
    Budget("router", "own_ms.p50", "the router's own time, P50", 0.35, "ms"),
    Budget("router", "own_ms.p99", "the router's own time, P99", 0.95, "ms"),
    Budget("cold_import", "ratio", "cold import to `import boto3` and one client", 0.8, "×"),
    Budget("package", "zip_bytes", "the Lambda package", 1_500_000, "B"),
    Budget("sagemaker", "alone.added_ms_p50", "what the SageMaker emulator adds, one client, P50", 2.0, "ms"),
    Budget("sagemaker", "crowd.added_ms_p50", "the same, 20 clients", 2.0, "ms"),
    Budget("sagemaker", "saturated.added_ms_p50", "the same, 20 clients that wait for one core", 2.0, "ms"),
    Budget(
        "batch",
        "heavy.throughput.multi_to_default",
        "batch: MultiRecord to SingleRecord, one call at a time, heavy model",
        1.5,
        "×",
        least=True,
    ),
    Budget(
        "batch", "light.ledger.sample_ratio", "batch to the sample serverless lane, compute of a request", 0.35, "×"
    ),
)


def verdicts(bench: str, figures: Mapping[str, Any]) -> list[Verdict]:
    """Every budget on this measurement, judged."""
    return [budget.verdict(figures) for budget in BUDGETS if budget.bench == bench]
