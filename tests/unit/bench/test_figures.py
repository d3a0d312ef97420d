"""The README's block of figures: made from measurements, put between its markers, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.bench.figures import BEGIN, END, block, read, rewrite
from workbench.bench.processes import BenchError

ABOUT = {"python": "3.11.7", "at": "2026-11-30T13:00:00+00:00"}
FIGURES: dict[str, dict[str, Any]] = {
    "package": {**ABOUT, "zip_bytes": 639_041},
    "router": {
        **ABOUT,
        "at": "2026-12-01T09:00:00+00:00",
        "p50_ratio": 0.61,
        "p99_ratio": 1.1,
        "own_ms": {"p50": 0.3, "p99": 0.9},
        "over_http_ms": {"litellm_proxy": {"p50": 11.48, "p99": 20.554}},
        "versions": ["litellm==1"],
    },
}


def test_every_budget_has_a_row_with_both_numbers() -> None:
    """Measured beside budget, in the figure's own unit; one that is broken says so."""
    made = block(FIGURES)
    assert "| the Lambda package | 639,041 B | ≤ 1,500,000 B |" in made
    assert "| warm handler to a bare boto3 handler, P50 | 0.61× | ≤ 0.75× |" in made
    assert "| warm handler to a bare boto3 handler, P99 | 1.10× **over** | ≤ 1.00× |" in made
    assert "Measured 2026-11-30 to 2026-12-01 with Python 3.11.7:" in made


def test_the_other_routers_stand_below_where_they_were_measured() -> None:
    """With their versions; without them there is no second table."""
    assert "| LiteLLM's proxy | 11.48 ms | 20.55 ms |" in block(FIGURES)
    assert "litellm==1" in block(FIGURES)
    assert "over HTTP" not in block({"package": FIGURES["package"]})


def test_only_what_stands_between_the_markers_changes() -> None:
    """The old block goes, the rest of the text stays; a second time changes nothing more."""
    text = f"# title\n\n{BEGIN}\nold figures\n{END}\n\nmore\n"
    once = rewrite(text, FIGURES)
    assert once.startswith(f"# title\n\n{BEGIN}\nMeasured ")
    assert once.endswith(f"\n{END}\n\nmore\n")
    assert "old figures" not in once
    assert rewrite(once, FIGURES) == once


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"])
def test_a_text_without_its_markers_is_left_alone(text: str) -> None:
    """A missing, doubled or turned marker is an error that shows both."""
    with pytest.raises(BenchError, match="one line"):
        rewrite(text, FIGURES)


def test_a_measurement_that_was_not_made_is_named(tmp_path: Path) -> None:
    """No figure is left out in silence."""
    (tmp_path / "decide.json").write_text(json.dumps(ABOUT))
    with pytest.raises(BenchError, match=r"router was not measured yet: run `python -m workbench\.bench router`"):
        read(tmp_path)
