"""The batch lane's tables: every number from the measurement, none typed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.bench.test_batch_bill import BILL
from workbench.bench import batch_report
from workbench.bench.batch import billed
from workbench.bench.figures import BEGIN, END, block, rewrite_batch
from workbench.bench.processes import BenchError

SEEN: dict[str, Any] = {
    "throughput": {"multi_to_default": 2.04, "multi_to_single": 1.61, "multi_to_single_cpu": 1.5, "cores_busy": 0.97},
    "why": {
        "request_ms": 100.0,
        "request_cpu_ms": 98.0,
        "lines_ms": 70.0,
        "multi_cpu_ms": 80.0,
        "single_cpu_ms": 120.0,
    },
    "service": dataclasses.asdict(BILL.service),
    "memory_mb": 250,
    "records_run": 10_000,
    **billed(BILL, 4096),
}
DOCUMENT: dict[str, Any] = {
    "python": "3.11.7",
    "at": "2026-12-01T09:00:00+00:00",
    "cores": 2,
    "sample_mb": 4096,
    "assumed": dataclasses.asdict(BILL.assumed),
    "light": SEEN,
}


def test_the_page_shows_each_lanes_bill_and_where_it_turns() -> None:
    """Compute, the whole bill item by item, and service times; an absent model has no column."""
    made = "\n".join(batch_report.full(DOCUMENT))
    assert "| MultiRecord to SingleRecord, a call a core at a time | 1.61× |" in made
    assert f"| **batch to serverless** | **{SEEN['ledger']['ratio'] * 100:.0f} %** |" in made
    sample = f"**… to the sample stack's serverless lane, 4096 MB** | **{SEEN['ledger']['sample_ratio'] * 100:.0f} %**"
    assert sample in made
    assert "| **total** |" in made
    assert "| whole bill ≤ 100 %: service time from |" in made
    assert "heavy" not in made
    assert "`provisioning_s=38`" in made


def test_what_never_turns_says_never() -> None:
    """No number stands where there is none."""
    turns = {**SEEN["turns"], "requests_per_job": {"at_35_percent": None, "at_100_percent": 1234.0}}
    made = "\n".join(batch_report.full({**DOCUMENT, "light": {**SEEN, "turns": turns}}))
    assert "| compute ≤ 35 %: requests a job | never |" in made
    assert "| compute ≤ 100 %: requests a job | 1,234 |" in made


def test_the_readme_has_both_bills_of_each_way() -> None:
    """Compute never stands without the whole bill beside it."""
    made = block({"batch": {**DOCUMENT, "heavy": SEEN}})
    assert "| compute | whole bill |" in made
    assert made.count("a data set as one job") == 2
    assert "| batch: MultiRecord to SingleRecord, one call at a time, heavy model | 2.04× | ≥ 1.50× |" in made


def test_the_page_is_rewritten_between_its_markers() -> None:
    """A page without them is left alone."""
    once = rewrite_batch(f"# Batch\n{BEGIN}\n{END}\nrest\n", DOCUMENT)
    assert once.startswith(f"# Batch\n{BEGIN}\nMeasured 2026-12-01 on 2 cores")
    assert once.endswith(f"{END}\nrest\n")
    with pytest.raises(BenchError, match="one line"):
        rewrite_batch("# Batch\n", DOCUMENT)
