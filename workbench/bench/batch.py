"""The batch lane: how many times faster records go through a job together, and what a request costs there.

For each sample model, in one run on this machine:

| figure        | how it is measured                                                                            |
|---------------|-----------------------------------------------------------------------------------------------|
| request       | one at a time to a serverless container with one thread: what serverless bills; then with two |
| lines         | the same records, many in one request to that container: what batching in the model brings    |
| start-up      | billed seconds of a job of one record                                                         |
| MultiRecord   | billed seconds, less start-up, of a job with a worker a core; in turns (A B C, C B A) with    |
| SingleRecord  | the same records and job, a call a record, as many at a time as there are cores; and          |
| by default    | one at a time, which is what SageMaker does for a job that says nothing else                  |
| the whole job | as many records as a job of the bill has, where that takes two minutes at most                |

The bills (`batch_bill.py`) are made of these, of the price book, and of assumptions that `--assume` changes. Serverless
is billed at its cheapest size that holds the model, and at the size that the sample stack gives it.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import yaml

from workbench.bench.batch_bill import TARGET, Assumptions, Bill, Prices, Service
from workbench.bench.batch_site import JSON, JSON_LINES, Container, Site, Strategy, site
from workbench.bench.processes import BenchError
from workbench.stack.layout import project_root

PAIRS: Final = 3
WHOLE_S: Final = 120
"""A whole job is run where it would take at most so long by the pairs' rate."""
SAMPLE: Final = ("Pulumi.mature.yaml", "moderation")
"""The stack file, and the model in it, that says how much memory the sample's serverless lane has."""
TEXTS: Final = "models/moderation-light/data/surge_toxicity_en.csv"
_WAYS: Final[tuple[tuple[Strategy, int | None], ...]] = (
    ("MultiRecord", None), ("SingleRecord", None), ("SingleRecord", 1),
)  # fmt: skip
"""Strategy, and calls at a time (None: as many as cores)."""
HEADROOM: Final = 1.25
"""Of serverless memory over what the model's process was seen to hold."""


class Subject(NamedTuple):
    """A model that is measured, and how much of it."""

    name: str
    archive: str
    records: int
    """Of a job of the pairs."""
    requests: int
    """One at a time."""


SUBJECTS: Final = (
    Subject("heavy", "models/moderation-heavy/build/model.tar.gz", 1200, 300),
    Subject("light", "models/moderation-light/build/model.tar.gz", 2000, 500),
)


@dataclass(frozen=True, slots=True)
class BatchBench:
    """The measurement under a set of assumptions."""

    assumed: Assumptions
    subjects: Sequence[Subject] = SUBJECTS

    def steps(self) -> int:
        """How often `measure` calls `step`."""
        return len(self.subjects) * (len(_WAYS) * PAIRS + 4)

    def measure(self, step: Callable[[], None]) -> dict[str, Any]:
        """By model: what was measured, the ledger, the whole bill, where it turns. Raises `BenchError`."""
        try:
            prices = Prices.of(_book(), self.assumed)
        except KeyError as error:
            raise BenchError(f"the price book has no {error} for {self.assumed.region}") from error
        sample_mb = _sample_mb()
        found: dict[str, Any] = {"assumed": asdict(self.assumed), "cores": 0, "sample_mb": sample_mb}
        with site() as here:
            found["cores"] = here.cores
            for subject in self.subjects:
                seen = _measured(here, subject, self.assumed.requests_per_job, step)
                found[subject.name] = {**seen.figures, **billed(Bill(seen.service, prices, self.assumed), sample_mb)}
        return found


@dataclass(frozen=True, slots=True)
class _Seen:
    service: Service
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Work:
    """A job's time without its start-up: billed, and on the cores."""

    billed_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Alone:
    """Requests to a container by themselves, and their records in one request; means of a record."""

    request_s: float
    """Each rounded up to the billed millisecond."""
    request_cpu_s: float
    line_s: float
    memory_mb: float


def _measured(here: Site, subject: Subject, whole: int, step: Callable[[], None]) -> _Seen:
    archive = project_root() / subject.archive
    if not archive.is_file():
        raise BenchError(f"{subject.archive} is not there: run `make models`")
    here.add(subject.name, archive)
    records = _records(subject.records)
    one = _alone(here, f"{subject.name}-1", records[: subject.requests])
    step()
    two = _alone(here, f"{subject.name}-2", records[: subject.requests])
    step()
    starts = [here.transform(subject.name, records[:1], "MultiRecord") for _ in range(PAIRS)]
    start = _Work(
        *(statistics.median(each) for each in zip(*((job.billed_s, job.cpu_s) for job in starts), strict=True))
    )
    step()
    multi, single, by_default = _in_turns(here, subject.name, records, start, step)
    record_s, ran = statistics.median(work.billed_s for work in multi) / len(records), len(records)
    if record_s * whole <= WHOLE_S:
        billed_s = here.transform(subject.name, _records(whole), "MultiRecord").billed_s - start.billed_s
        record_s, ran = billed_s / whole, whole
    step()
    service = Service(
        request_s=one.request_s,
        two_core_gain=max(1.0, one.request_s / two.request_s),
        record_core_s=record_s * here.cores,
        startup_s=start.billed_s,
        least_mb=_serverless_size(one.memory_mb),
        request_bytes=statistics.mean(map(len, records)),
        answer_bytes=len(starts[0].answers[0]),
    )
    figures = {
        "throughput": _throughput(multi, single, by_default, len(records), here.cores),
        "why": {
            "request_ms": round(one.request_s * 1e3, 2),
            "request_cpu_ms": round(one.request_cpu_s * 1e3, 2),
            "lines_ms": round(one.line_s * 1e3, 2),
            "lines_to_requests": round(one.request_s / one.line_s, 3),
            "multi_cpu_ms": round(statistics.median(work.cpu_s for work in multi) / len(records) * 1e3, 2),
            "single_cpu_ms": round(statistics.median(work.cpu_s for work in single) / len(records) * 1e3, 2),
        },
        "service": {name: round(value, 6) for name, value in asdict(service).items()},
        "memory_mb": round(one.memory_mb),
        "records_run": ran,
    }
    return _Seen(service, figures)


def _throughput(
    multi: Sequence[_Work], single: Sequence[_Work], by_default: Sequence[_Work], records: int, cores: int
) -> dict[str, Any]:
    """Records a second by each way, and MultiRecord's to the others', by the clock and by what the cores did.

    The two kinds of ratio differ where the machine had other things to do, or where a way leaves cores idle.
    """

    def ratios(others: Sequence[_Work]) -> list[float]:
        return [one.billed_s / many.billed_s for many, one in zip(multi, others, strict=True)]

    of_cpu = [one.cpu_s / many.cpu_s for many, one in zip(multi, single, strict=True)]
    return {
        "multi_to_default": round(statistics.median(ratios(by_default)), 3),
        "multi_to_single": round(statistics.median(ratios(single)), 3),
        "of_pairs": [round(ratio, 3) for ratio in ratios(single)],
        "multi_to_single_cpu": round(statistics.median(of_cpu), 3),
        "multi_records_per_s": round(records / statistics.median(work.billed_s for work in multi), 1),
        "single_records_per_s": round(records / statistics.median(work.billed_s for work in single), 1),
        "default_records_per_s": round(records / statistics.median(work.billed_s for work in by_default), 1),
        "cores_busy": round(statistics.median(work.cpu_s / work.billed_s for work in (*multi, *single)) / cores, 3),
    }


def _alone(here: Site, model: str, records: Sequence[bytes]) -> _Alone:
    with here.serverless(model) as container:
        used_s = container.cpu_s()
        times = [_billed_s(container, record) for record in records]
        used_s = container.cpu_s() - used_s
        memory_mb = container.memory_mb()
        body = b"".join(record + b"\n" for record in records)
        lines_s = statistics.median(container.seconds(body, JSON_LINES) for _ in range(PAIRS))
    count = len(records)
    return _Alone(statistics.mean(times), used_s / count, lines_s / count, memory_mb)


def _billed_s(container: Container, record: bytes) -> float:
    return math.ceil(container.seconds(record, JSON) * 1e3) / 1e3


def _in_turns(
    here: Site, model: str, records: Sequence[bytes], start: _Work, step: Callable[[], None]
) -> tuple[list[_Work], ...]:
    """The jobs of each of the ways, in their order, without their start-up."""
    found: tuple[list[_Work], ...] = tuple([] for _ in _WAYS)
    for turn in range(PAIRS):
        for way in range(len(_WAYS)) if turn % 2 == 0 else reversed(range(len(_WAYS))):
            strategy, at_once = _WAYS[way]
            job = here.transform(model, records, strategy, at_once)
            found[way].append(_Work(job.billed_s - start.billed_s, job.cpu_s - start.cpu_s))
            step()
    return found


def billed(bill: Bill, sample_mb: int) -> dict[str, Any]:
    """The ledger, the whole bill and where they turn, in USD for 1,000 requests.

    `sample_mb` is the serverless memory that the sample stack has.
    """
    size = bill.cheapest_mb
    synchronous, job, dataset = bill.whole_serverless(size), bill.whole_batch(), bill.whole_dataset()
    return {
        "memory_mb_billed": size,
        "ledger": {
            "serverless_usd": _round(bill.serverless(size)),
            "batch_usd": _round(bill.batch()),
            "ratio": _round(bill.batch() / bill.serverless(size)),
            "sample_ratio": _round(bill.batch() / bill.serverless(sample_mb)),
            "job_s": round(bill.job_s(bill.assumed.requests_per_job), 1),
            "ratio_by_memory_mb": {
                str(each): _round(bill.batch() / bill.serverless(each))
                for each in sorted(bill.prices.serverless_per_s)
                if each >= bill.service.least_mb
            },
        },
        "whole": {
            name: {**{item: _round(usd) for item, usd in items.items()}, "total": _round(sum(items.values()))}
            for name, items in (("serverless", synchronous), ("batch", job), ("dataset", dataset))
        },
        "around_ms": _round(bill.around_ms(size)),
        "whole_ratio": _round(sum(job.values()) / sum(synchronous.values())),
        "dataset_ratio": _round(sum(dataset.values()) / sum(synchronous.values())),
        "turns": {
            "requests_per_job": {
                "at_35_percent": _maybe(bill.requests_per_job(TARGET, size)),
                "at_100_percent": _maybe(bill.requests_per_job(1.0, size)),
            },
            "service_ms_ledger": _turns(bill, size, whole=False),
            "service_ms_whole": _turns(bill, size, whole=True),
        },
        "if": _if(bill),
    }


def _turns(bill: Bill, size: int, *, whole: bool) -> dict[str, float | None]:
    return {
        f"at_{round(share * 100)}_percent": _maybe(bill.service_time_ms(share, size, whole=whole))
        for share in (TARGET, 1.0)
    }


def _if(bill: Bill) -> dict[str, float]:
    """The ledger's ratio under other assumptions than those of the run."""
    others: tuple[tuple[str, Mapping[str, str]], ...] = (
        ("provisioning_120_s", {"provisioning_s": "120"}),
        ("provisioning_300_s", {"provisioning_s": "300"}),
        ("vcpu_yield_0.65", {"vcpu_yield": "0.65"}),
        ("one_vcpu_at_1024_mb", {"mb_per_vcpu": "1024"}),
    )
    found = {}
    for name, settings in others:
        other = Bill(bill.service, bill.prices, bill.assumed.changed(settings), bill.operations)
        found[name] = _round(other.batch() / other.serverless(other.cheapest_mb))
    return found


def _sample_mb() -> int:
    name, model = SAMPLE
    stack = yaml.safe_load((project_root() / name).read_text(encoding="utf-8"))
    return int(stack["config"]["inferlane:models"][model]["serverless"]["memory_mb"])


def _serverless_size(memory_mb: float) -> int:
    return next(size for size in (1024, 2048, 3072, 4096, 5120, 6144) if size >= memory_mb * HEADROOM)


def _records(count: int) -> list[bytes]:
    """Records of the light model's texts, over and over."""
    with (project_root() / TEXTS).open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    bodies = [json.dumps({"text": text}, ensure_ascii=False).encode() for text in texts]
    return list(itertools.islice(itertools.cycle(bodies), count))


def _book() -> Mapping[str, Any]:
    """The price book as it reads itself, in a process of its own: nothing in the workbench imports `infra`."""
    code = "from infra.pricebook import load; print(load().model_dump_json(by_alias=True))"
    listed = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], cwd=project_root(), check=True, capture_output=True, text=True
    )
    book: Mapping[str, Any] = json.loads(listed.stdout)
    return book


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def _maybe(value: float | None) -> float | None:
    return None if value is None else _round(value)
