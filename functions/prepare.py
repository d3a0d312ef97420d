"""The first half of the nightly recheck: a day's captures become the input of a transform job with the heavy model.

The captures of the day are put in order, each request once (`capture_spool`), and written as JSON Lines shards: one
line a record, and beside it, line by line, what the light model said. Shards are small, since a file is what one
instance works on at a time and what fails as a whole. The run is named by their content (`core.recheck_run`).

Nothing captured: the outcome is `nothing`. A report of the same run over the same earlier days' reports is there:
`unchanged`. Else `prepared`, with the request for the transform job; a job of that name may exist already, and then the
recheck goes on with it.

Memory: one captured object, one part of the spool (1/256 of the day) and a few shards. Disk: the day's captures,
uncompressed, once.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from functions.batch_ports import Objects, TransformSpec
from functions.capture_spool import CaptureSpool, lines_of
from functions.core.recheck_capture import Capture, Item, Unchecked, read, stub
from functions.core.recheck_day import Day
from functions.core.recheck_report import Sources
from functions.core.recheck_run import Manifest, job_names, run_name
from functions.core.shards import JSON_LINES
from functions.nightly_ports import RecheckError, TransformJobs
from functions.ports import Clock, Log
from functions.recheck_scope import Scope, baseline, read_report, report_keys

_MIB: Final = 1024 * 1024
SHARD_BYTES: Final = 4 * _MIB
SHARD_RECORDS: Final = 1000
"""A shard is full with so many bytes or records."""
_AT_ONCE: Final = 4
"""Shards that are stored side by side."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Two files on disk that belong together, and the digest of both."""

    name: str
    records: Path
    verdicts: Path
    digest: str


class Prepare:
    """Gathers a day."""

    def __init__(
        self,
        scope: Scope,
        objects: Objects,
        transforms: TransformJobs,
        clock: Clock,
        log: Log,
        *,
        shard_bytes: int = SHARD_BYTES,
        shard_records: int = SHARD_RECORDS,
    ) -> None:
        """Works in the stack's data bucket and a temporary folder."""
        self._scope = scope
        self._objects = objects
        self._transforms = transforms
        self._clock = clock
        self._log = log
        self._shard_bytes = shard_bytes
        self._shard_records = shard_records

    def prepare(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Answer the state machine (see the module). Raises `RecheckError`, `batch_ports.BatchError`."""
        wanted = self._scope.day(asked, self._clock.now())
        with tempfile.TemporaryDirectory(prefix="recheck-") as folder:
            sources, shards = self._gather(wanted, Path(folder))
            about = {"date": wanted.date, "model": self._scope.light_model}
            if sources.unreadable:
                self._log.warning("captured lines that cannot be read", extra={**about, "lines": sources.unreadable})
            if not shards:
                return {"outcome": "nothing", **about, "message": _nothing(self._scope, wanted, sources)}
            run = run_name(str(self._scope.lane.model_name), [shard.digest for shard in shards])
            if (known := self._reported(wanted, run)) is not None:
                return {"outcome": "unchanged", **about, **known}
            self._store(wanted, run, sources, shards)
        name = self._job_name(wanted, run)
        message = f"{sources.checked} of {sources.requests} requests, {sources.records} records for {name}"
        return {
            "outcome": "prepared",
            **about,
            "message": message,
            "run": run,
            "job_name": name,
            "transform": dict(self._transforms.request(self._spec(wanted, run, name))),
        }

    def _gather(self, wanted: Day, folder: Path) -> tuple[Sources, list[Shard]]:
        """The day's captures as shards on disk."""
        spooled = folder / "spool"
        spooled.mkdir()
        spool = CaptureSpool(spooled)
        objects = lines = unreadable = elsewhere = 0
        for partition in wanted.partitions:
            for key in sorted(self._objects.sizes(self._scope.folders.captured(partition))):
                body = self._objects.get(key)
                if body is None:  # expired since it was listed
                    continue
                objects += 1
                for line in lines_of(body):
                    lines += 1
                    whose = stub(line)
                    if whose is None:
                        unreadable += 1
                    elif wanted.holds(whose.at):
                        spool.add(whose, line)
                    else:
                        elsewhere += 1
        counts: Counter[str] = Counter()
        shards = list(self._shards(spool, folder, counts))
        sources = Sources(
            objects=objects,
            lines=lines,
            unreadable=unreadable,
            elsewhere=elsewhere,
            duplicates=spool.duplicates,
            requests=counts["requests"],
            unchecked={reason: counts[reason] for reason in Unchecked if counts[reason]},
            records=counts["records"],
            verdicts=counts["verdicts"],
        )
        return sources, shards

    def _shards(self, spool: CaptureSpool, folder: Path, counts: Counter[str]) -> Iterator[Shard]:
        largest = self._scope.lane.max_payload_mb * _MIB
        writer: _ShardWriter | None = None
        number = 0
        for line in spool.requests():
            counts["requests"] += 1
            found = read(line, largest)
            if isinstance(found, Unchecked):
                counts[found] += 1
                continue
            if writer is None:
                writer = _ShardWriter(folder, f"{number:05d}.jsonl")
                number += 1
            writer.add(found)
            counts["records"] += len(found.items)
            counts["verdicts"] += sum(len(item.verdicts) for item in found.items)
            if writer.size >= self._shard_bytes or writer.records >= self._shard_records:
                yield writer.close()
                writer = None
        if writer is not None:
            yield writer.close()

    def _reported(self, wanted: Day, run: str) -> dict[str, object] | None:
        """The report of this run, if it compares with what it would be compared with today."""
        known = read_report(self._objects, self._scope.folders, wanted.date, self._log)
        if known is None or known.before.run != run:
            return None
        if known.baseline != tuple(each.before for each in baseline(self._objects, self._scope, wanted, self._log)):
            return None
        return {
            "message": f"the report of {wanted.date} is up to date: {known.before.requests} requests, run {run}",
            "run": run,
            "report": report_keys(self._scope.folders, wanted.date),
            "headline": dict(known.headline),
        }

    def _store(self, wanted: Day, run: str, sources: Sources, shards: list[Shard]) -> None:
        """Write the run's files, its manifest last."""
        folders = self._scope.folders
        if self._objects.get(folders.manifest(wanted.date, run)) is not None:
            return
        records, verdicts = folders.records(wanted.date, run), folders.verdicts(wanted.date, run)
        for first in range(0, len(shards), _AT_ONCE):
            some = shards[first : first + _AT_ONCE]
            files = {records + shard.name: shard.records.read_bytes() for shard in some}
            files |= {verdicts + shard.name: shard.verdicts.read_bytes() for shard in some}
            self._objects.put_all(files, JSON_LINES)
        manifest = Manifest(run, sources, tuple(shard.name for shard in shards))
        text = json.dumps(manifest.to_json(), separators=(",", ":"))
        self._objects.put(folders.manifest(wanted.date, run), text.encode(), "application/json")

    def _job_name(self, wanted: Day, run: str) -> str:
        """The first name whose job is not spent: new, at work, or done with its output still there."""
        answers = self._scope.folders.answers(wanted.date, run)
        reason = None
        for name in job_names(self._scope.stack, wanted.date, run):
            found = self._transforms.describe(name)
            if found is None or found.status in ("InProgress", "Stopping"):
                return name
            if found.status == "Completed" and self._objects.sizes(answers):
                return name
            reason = found.failure_reason or found.status
        raise RecheckError(f"no transform job of run {run} of {wanted.date} succeeded; the last one: {reason}")

    def _spec(self, wanted: Day, run: str, name: str) -> TransformSpec:
        folders, lane = self._scope.folders, self._scope.lane
        return TransformSpec(
            name=name,
            model_name=str(lane.model_name),
            input=self._objects.uri(folders.records(wanted.date, run)),
            output=self._objects.uri(folders.answers(wanted.date, run).rstrip("/")),
            content_type=JSON_LINES,
            accept=JSON_LINES,
            lines=True,
            strategy=lane.strategy,
            instance_type=str(lane.instance_type),
            instance_count=lane.instance_count,
            max_payload_mb=lane.max_payload_mb,
            max_concurrent=lane.max_concurrent,
        )


class _ShardWriter:
    """A shard's two files."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._paths = folder / name, folder / f"light-{name}"
        self._files = self._paths[0].open("wb"), self._paths[1].open("wb")
        self._digest = hashlib.sha256()
        self.size = self.records = 0

    def add(self, capture: Capture) -> None:
        first = 0
        for item in capture.items:
            self._write(0, item.line)
            self._write(1, _aside(capture, item, first))
            first += len(item.verdicts)
            self.size += len(item.line) + 1
            self.records += 1

    def close(self) -> Shard:
        for file in self._files:
            file.close()
        return Shard(self._name, *self._paths, self._digest.hexdigest())

    def _write(self, which: int, line: bytes) -> None:
        self._files[which].write(line + b"\n")
        self._digest.update(line + b"\n")


def _aside(capture: Capture, item: Item, first: int) -> bytes:
    """What the light model said of one record, and where; `first`: which text of its request it begins with."""
    about = {"id": capture.request_id, "first": first, "at": capture.at, "route": capture.route, "lane": capture.lane}
    verdicts = [[said.label, said.score, said.version] for said in item.verdicts]
    return json.dumps({**about, "verdicts": verdicts}, separators=(",", ":")).encode()


def _nothing(scope: Scope, wanted: Day, sources: Sources) -> str:
    """Why there is nothing to recheck."""
    day = f"{wanted.date} ({wanted.zone})"
    if not sources.requests:
        return (
            f"nothing of model {scope.light_model} was captured on {day}: no route of it has `capture` in the policy, "
            "nobody called, or the captures have expired"
        )
    reasons = ", ".join(f"{count} {reason}" for reason, count in sources.unchecked.items())
    return f"none of the {sources.requests} requests that were captured on {day} can be rechecked: {reasons}"
