"""A night in memory: captures as the router writes them, the two functions, and the state machine between them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from functions.batch_ports import TransformSpec
from functions.core.capture import Body, Exchange, line_of
from functions.core.policy import Capture as Wish
from functions.core.recheck_day import day
from functions.core.recheck_run import Folders
from functions.core.topology import BatchLane
from functions.prepare import Prepare
from functions.recheck_scope import Scope
from functions.report import Reporter
from tests.unit.batch.fakes import FakeObjects, FakeTransforms
from tests.unit.batch.weather import Weather
from tests.unit.handlers.fakes import FakeClock, FakeLog

ZONE = "Asia/Shanghai"
DATE = "2026-12-01"
DAY = day(DATE, ZONE)
FOLDERS = Folders("capture/", "nightly/", "moderation")
LANE = BatchLane(
    name="batch",
    kind="batch",
    max_bytes=10**8,
    startup_s=300.0,
    usd_per_instance_hour=0.204,
    content_types=None,
    model_name="inferlane-mature-moderation-heavy-batch-0123456789",
    instance_type="ml.c5.xlarge",
    max_payload_mb=1,
)
SCOPE = Scope("mature", "moderation", "moderation-heavy", ZONE, "ok", FOLDERS, LANE)


def verdict(label: str, score: float, version: str = "v1") -> dict[str, object]:
    return {"label": label, "score": score, "threshold": 0.5, "model": "light", "version": version}


def exchange(number: int, text: str, at: float | None = None, **more: Any) -> Exchange:
    """A request about one text; the light model flags what says "bad"."""
    said = verdict("toxic", 0.9) if "bad" in text else verdict("ok", 0.1)
    about: dict[str, Any] = {
        "at": DAY.begins + number if at is None else at,
        "request_id": f"r-{number:05d}",
        "route": "/chat",
        "model": "moderation",
        "lane": "dedicated",
        "rule": "default",
        "cost_center": None,
        "input": Body(json.dumps({"text": text}).encode(), "application/json"),
        "output": Body(json.dumps(said).encode(), "application/json"),
    }
    return Exchange(**{**about, **more})


def line(number: int, text: str, at: float | None = None, **more: Any) -> bytes:
    """The exchange as a captured line."""
    return line_of(exchange(number, text, at, **more), Wish(1.0))


def heavy(record: bytes) -> bytes | None:
    """The heavy model: flags what says "worse"; "refuse" it cannot answer, at "odd" it says something else."""
    asked = json.loads(record)
    if "refuse" in str(asked):
        return b'{"inferlane_error": {"status": 400, "detail": "refused"}}'
    if "odd" in str(asked):
        return b'"odd"'
    texts = asked.get("texts", [asked.get("text")])
    said = [verdict("toxic", 0.8, "h7") if "worse" in text else verdict("ok", 0.2, "h7") for text in texts]
    return json.dumps({"results": said} if "texts" in asked else said[0]).encode()


class Transforms(FakeTransforms):
    """Transform jobs that can be asked for their request, as the state machine needs it."""

    def request(self, spec: TransformSpec) -> Mapping[str, object]:
        self.specs = {**getattr(self, "specs", {}), spec.name: spec}
        return {"TransformJobName": spec.name, "ModelName": spec.model_name}


@dataclass
class Told:
    """Metrics and notes."""

    figures: list[tuple[str, float, dict[str, float]]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def rechecked(self, model: str, at: float, figures: Mapping[str, float]) -> None:
        self.figures.append((model, at, dict(figures)))

    def announce(self, subject: str, text: str) -> None:
        self.notes.append((subject, text))


class Night:
    """A stack's data bucket and all that happens to it."""

    def __init__(self, answering: Callable[[bytes], bytes | None] = heavy, scope: Scope = SCOPE) -> None:
        self.weather = Weather()
        self.clock = FakeClock(DAY.ends + 3600)
        self.objects = FakeObjects(self.weather)
        self.transforms = Transforms(self.weather, self.clock, self.objects, answering)
        self.told = Told()
        self.log = FakeLog()
        self.scope = scope
        self.shard_records = 10
        self.examples = 5

    def capture(
        self, lines: Sequence[bytes], key: str = "date=2026-12-01/hour=08/a.gz", *, packed: bool = True
    ) -> None:
        """An object as Firehose delivers it."""
        body = b"".join(lines)
        self.objects.rows[f"capture/model=moderation/{key}"] = gzip.compress(body) if packed else body

    def prepare(self, **asked: object) -> dict[str, Any]:
        step = Prepare(
            self.scope, self.objects, self.transforms, self.clock, self.log, shard_records=self.shard_records
        )
        return _travelled(step.prepare({"date": DATE, **asked}))

    def report(self, state: Mapping[str, object]) -> dict[str, Any]:
        step = Reporter(
            self.scope,
            self.objects,
            self.transforms,
            self.told,
            self.told,
            self.clock,
            self.log,
            examples=self.examples,
        )
        return _travelled(step.report(state))

    def run(self, **asked: object) -> dict[str, Any]:
        """The state machine: its output."""
        state = self.prepare(**asked)
        if state["outcome"] != "prepared":
            return state
        self.transforms.create(self.transforms.specs[state["job_name"]])
        self.clock.advance(self.transforms.takes_s)
        self.transforms.pass_time()
        return self.report(state)

    def document(self, date: str = DATE) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.objects.rows[FOLDERS.report(date, "json")])
        return document

    def page(self, date: str = DATE) -> str:
        return self.objects.rows[FOLDERS.report(date, "html")].decode()


def _travelled(answer: Mapping[str, object]) -> dict[str, Any]:
    """As the state machine hands it on."""
    state: dict[str, Any] = json.loads(json.dumps(answer))
    return state
