"""The second half of the nightly recheck: the heavy model's answers beside the light one's verdicts, as a report.

Shard by shard, line by line: the record, what the light model said, what the heavy one said. A line that the heavy
model answered with an error (`{"inferlane_error": ...}`), or with another number of verdicts, is counted and told,
never dropped unseen; a shard without its output, or with another number of lines, counts whole as not answered.

Written last is the JSON, which `prepare` goes by: killed before that, the report is made again, byte for byte, and the
note and the metrics go out twice rather than never. Memory: one shard's three files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from functions.batch_ports import Objects
from functions.core.document import DocumentError
from functions.core.recheck import Pair, Recheck
from functions.core.recheck_capture import Verdict, texts_of, verdicts_of
from functions.core.recheck_day import Day
from functions.core.recheck_measures import drift, share
from functions.core.recheck_report import Before, Job, Known, Report
from functions.core.recheck_run import Manifest
from functions.core.shards import ERROR
from functions.nightly_ports import Announcements, RecheckError, RecheckTelemetry, TransformWatch
from functions.nightly_settings import (
    RECHECK_AGREEMENT,
    RECHECK_COST,
    RECHECK_DRIFT,
    RECHECK_FALSE_ALARMS,
    RECHECK_KAPPA,
    RECHECK_MISSED,
    RECHECK_UNCHECKED,
    RECHECK_VERDICTS,
)
from functions.ports import Clock, Log
from functions.recheck_scope import Scope, baseline, read_report, report_keys
from functions.report_page import page

NO_OUTPUT: Final = "no output of its file"
NO_VERDICT: Final = "no verdict, or another number of them"
REFUSED: Final = "refused by the heavy model"


class Reporter:
    """Makes reports."""

    def __init__(
        self,
        scope: Scope,
        objects: Objects,
        transforms: TransformWatch,
        telemetry: RecheckTelemetry,
        announcements: Announcements | None,
        clock: Clock,
        log: Log,
        *,
        examples: int,
    ) -> None:
        """`examples`: how many texts of either kind a report shows; 0 shows none."""
        self._scope = scope
        self._objects = objects
        self._transforms = transforms
        self._telemetry = telemetry
        self._announcements = announcements
        self._clock = clock
        self._log = log
        self._examples = examples

    def report(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Answer the state machine's `date`, `run` and `job_name`. Raises `RecheckError`, `batch_ports.BatchError`."""
        wanted = self._scope.day(asked, self._clock.now())
        run, job_name = str(asked.get("run") or ""), str(asked.get("job_name") or "")
        manifest = self._manifest(wanted, run)
        job = self._job(job_name)
        made = self._made(wanted, manifest, job)
        keys = report_keys(self._scope.folders, wanted.date)
        self._objects.put(keys["html"], page(made).encode(), "text/html; charset=utf-8")
        self._tell(made, keys)
        text = json.dumps(made.to_json(), indent=1, ensure_ascii=True)
        self._objects.put(keys["json"], (text + "\n").encode(), "application/json")
        return {
            "outcome": "reported",
            "date": wanted.date,
            "model": self._scope.light_model,
            "run": run,
            "message": summary(made),
            "report": keys,
            "headline": made.headline(),
        }

    def _made(self, wanted: Day, manifest: Manifest, job: Job) -> Report:
        folders = self._scope.folders
        counts = Recheck(self._scope.passing, self._examples)
        unanswered: Counter[str] = Counter()
        for shard in manifest.shards:
            for each in self._pairs(wanted, manifest.run, shard, unanswered):
                counts.add(each)
        found = counts.findings()
        if not found.total.verdicts:
            raise RecheckError(
                f"the heavy model answered none of the {manifest.sources.verdicts} verdicts of {wanted.date}: "
                + ", ".join(f"{count} {reason}" for reason, count in sorted(unanswered.items()))
            )
        before = baseline(self._objects, self._scope, wanted, self._log)
        return Report(
            stack=self._scope.stack,
            day=wanted,
            run=manifest.run,
            light_model=self._scope.light_model,
            heavy_model=self._scope.heavy_model,
            passing=self._scope.passing,
            sources=manifest.sources,
            unanswered=dict(sorted(unanswered.items())),
            findings=found,
            job=job,
            baseline=tuple(each.before for each in before),
            light_drift=drift(found.light_scores, _summed(each.light_scores for each in before)),
            heavy_drift=drift(found.heavy_scores, _summed(each.heavy_scores for each in before)),
            light_baseline=_summed(each.light_scores for each in before),
            replaces=_replaced(read_report(self._objects, folders, wanted.date, self._log), manifest.run),
        )

    def _manifest(self, wanted: Day, run: str) -> Manifest:
        key = self._scope.folders.manifest(wanted.date, run)
        body = self._objects.get(key)
        try:
            return Manifest.from_json(json.loads(body or b""))
        except (ValueError, DocumentError):
            raise RecheckError(
                f"run {run[:40]!r} of {wanted.date} is not prepared: {key} is missing or broken"
            ) from None

    def _job(self, name: str) -> Job:
        found = self._transforms.describe(name) if name else None
        if found is None or found.status != "Completed" or found.ended is None:
            raise RecheckError(f"transform job {name[:63]!r} is not completed: {found.status if found else 'unknown'}")
        lane = self._scope.lane
        hours = None if found.began is None else (found.ended - found.began) / 3600
        price = lane.usd_per_instance_hour
        cost = None if hours is None or price is None else hours * lane.instance_count * price
        return Job(name, found.began, found.ended, str(lane.instance_type), lane.instance_count, cost)

    def _pairs(self, wanted: Day, run: str, shard: str, unanswered: Counter[str]) -> Iterator[Pair]:
        """Every text of a shard that both models judged; the others are counted."""
        folders, date = self._scope.folders, wanted.date
        places = (
            folders.records(date, run) + shard,
            folders.verdicts(date, run) + shard,
            f"{folders.answers(date, run)}{shard}.out",
        )
        found = self._objects.get_all(places)
        records, asides, answers = (_lines(found.get(place, b"")) for place in places)
        if len(records) != len(asides):
            raise RecheckError(f"run {run} of {date} has lost files: prepare the day again once they are gone")
        whole = len(answers) == len(records)
        for record, aside, answer in zip_longest(records, asides, answers if whole else (), fillvalue=b""):
            about = json.loads(aside)
            light = [Verdict(*said) for said in about["verdicts"]]
            heavy = _heavy(answer) if whole else NO_OUTPUT
            if not isinstance(heavy, str) and len(heavy) != len(light):
                heavy = NO_VERDICT
            if isinstance(heavy, str):
                unanswered[heavy] += len(light)
                continue
            texts = texts_of(json.loads(record))
            if len(texts) != len(light):
                texts = [record.decode()] * len(light)
            for number, (text, ours, theirs) in enumerate(zip(texts, light, heavy, strict=True)):
                yield Pair(
                    about["id"],
                    about["first"] + number,
                    wanted.hour(about["at"]),
                    about["route"],
                    about["lane"],
                    text,
                    ours,
                    theirs,
                )

    def _tell(self, made: Report, keys: Mapping[str, str]) -> None:
        """Metrics and the note."""
        total = made.findings.total
        self._telemetry.rechecked(self._scope.light_model, made.job.ended, figures_of(made))
        if self._announcements is not None:
            where = "\n".join(self._objects.uri(key) for key in keys.values())
            self._announcements.announce(
                f"Recheck of {made.light_model} on {made.day.date}: {total.missed} missed",
                f"{summary(made)}\n\n{where}\n",
            )


def figures_of(made: Report) -> dict[str, float]:
    """A report's metrics; those that are not defined are left out."""
    total, sources = made.findings.total, made.sources
    shares = {
        RECHECK_AGREEMENT: total.agreement,
        RECHECK_KAPPA: made.findings.kappa,
        RECHECK_MISSED: total.missed_of_flagged,
        RECHECK_FALSE_ALARMS: total.alarmed_of_flagged,
        RECHECK_UNCHECKED: share(sources.requests - sources.checked, sources.requests),
    }
    figures = {
        RECHECK_VERDICTS: float(total.verdicts),
        RECHECK_DRIFT: made.light_drift.psi,
        RECHECK_COST: made.job.cost_usd,
        **{name: None if each is None else each.value for name, each in shares.items()},
    }
    return {name: value for name, value in figures.items() if value is not None}


def summary(made: Report) -> str:
    """A report in a line."""
    total = made.findings.total
    agreement = total.agreement
    text = (
        f"{made.day.date}: {total.verdicts} verdicts of {made.light_model} rechecked by {made.heavy_model}, "
        f"{'no' if agreement is None else f'{agreement.value:.1%}'} agreement, {total.missed} missed, "
        f"{total.alarmed} false alarms"
    )
    if made.light_drift.level in ("look", "shift"):
        text += f"; scores moved (PSI {made.light_drift.psi:.2f})"
    if made.replaces:
        text += f"; replaces run {made.replaces[-1].run}"
    return text if made.complete else f"{text}; the day was not over"


def _heavy(answer: bytes) -> Sequence[Verdict] | str:
    """The verdicts of a line of output, or why there are none."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return NO_VERDICT
    if isinstance(value, Mapping) and ERROR in value:
        return REFUSED
    return verdicts_of(value)


def _lines(body: bytes) -> list[bytes]:
    return [line for line in body.split(b"\n") if line.strip()]


def _summed(histograms: Iterator[Mapping[int, int]]) -> dict[int, int]:
    total: Counter[int] = Counter()
    for each in histograms:
        total.update(each)
    return dict(sorted(total.items()))


def _replaced(known: Known | None, run: str) -> tuple[Before, ...]:
    """The reports that this run's takes the place of."""
    if known is None:
        return ()
    return known.replaces if known.before.run == run else (*known.replaces, known.before)
