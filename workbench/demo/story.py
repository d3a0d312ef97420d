"""What the demo counts, what it promises, and the words it sends."""

from __future__ import annotations

import csv
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench import traffic
from workbench.stack.layout import project_root
from workbench.stack.processes import StackError

STACK = "local"
MODEL = "moderation"
PATH = f"/v1/models/{MODEL}/invocations"
CHAT_PATH = "/realtime/chat"
"""Of the local policy's routes the one whose traffic is captured, a share of it."""


@dataclass(slots=True)
class Story:
    """What the demo counts while it runs."""

    tally: traffic.Tally = field(default_factory=traffic.Tally)
    acts: list[dict[str, Any]] = field(default_factory=list)

    def act(self, name: str, answers: list[traffic.Answer], **facts: Any) -> dict[str, Any]:
        """Close an act: count its answers, keep its facts."""
        mine = traffic.Tally(answers)
        self.tally.add(answers)
        row = {
            "act": name,
            "requests": len(answers),
            "failed": len(mine.failed),
            "lanes": mine.lanes,
            "p50_ms": round(mine.percentile_ms(50), 1),
            "p99_ms": round(mine.percentile_ms(99), 1),
            **facts,
        }
        self.acts.append(row)
        return row


def texts() -> Iterator[str]:
    """Real comments in any order but always the same, over and over: the labelled ones the sample model is made of."""
    file = project_root() / "models/moderation-light/data/surge_toxicity_en.csv"
    with file.open(encoding="utf-8", newline="") as source:
        rows = [row["text"] for row in csv.DictReader(source)]
    random.Random(0).shuffle(rows)  # the file has the toxic ones first
    return itertools.cycle(rows)


def one_text(stream: Iterator[str], priority: str | None = None, path: str = PATH) -> traffic.Call:
    """A request with the next comment."""
    return traffic.Call(path, {"text": next(stream)}, {"X-Inferlane-Priority": priority} if priority else {})


def line(row: dict[str, Any]) -> str:
    """An act for a person."""
    lanes = ", ".join(f"{lane} {number}" for lane, number in sorted(row["lanes"].items()))
    return (
        f"{row['requests']} requests, {row['failed']} failed ({lanes}), P50 {row['p50_ms']} ms, P99 {row['p99_ms']} ms"
    )


def sample(tally: traffic.Tally) -> list[dict[str, Any]]:
    """The first failed requests."""
    return [traffic.describe(answer) for answer in tally.failed[:3]]


def promise(held: bool, otherwise: str) -> None:
    """An act whose promise does not hold fails the demo. Raises `StackError`."""
    if not held:
        raise StackError(otherwise)
