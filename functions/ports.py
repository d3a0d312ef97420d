"""What the router needs from outside, as Protocols. Adapters live in `aws/`; every one has a fake under `tests/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from functions.core.outcome import Outcome
from functions.core.policy import Policy
from functions.core.receipt import Receipt
from functions.core.snapshot import Snapshot
from functions.core.topology import SyncLane

if TYPE_CHECKING:  # only who defers work needs them
    from functions.core.job import Job, JobKey, Work

LaneKey = tuple[str, str]
"""(model, lane)."""


class Clock(Protocol):
    """Time of day and a stopwatch."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, from any origin."""
        ...


class Invoker(Protocol):
    """Runs one attempt on one lane."""

    def invoke(
        self,
        lane: SyncLane,
        body: bytes,
        content_type: str | None,
        accept: str | None,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> Outcome:
        """The attempt's outcome within about `timeout_s`. Never raises for what the lane does, never repeats."""
        ...


class SignalSource(Protocol):
    """What the lanes' metrics say."""

    def snapshot(self, now: float) -> Snapshot:
        """The newest reading, perhaps an old one. Never raises: what cannot be read is unknown."""
        ...


class FailureMarks(Protocol):
    """Which lanes other instances found broken. Neither method raises: without marks each instance learns alone."""

    def marks(self, now: float, *, urgent: bool) -> Mapping[LaneKey, Sequence[float]]:
        """When each other instance last opened a lane's breaker (Unix seconds), as of some seconds ago.

        `urgent`: a lane fails here, so that it matters what the others know; else an older reading will do.
        """
        ...

    def publish(self, opened: Mapping[LaneKey, float], now: float) -> None:
        """Tell the others which lanes were opened here, and when."""
        ...


class Race(Protocol):
    """Runs attempts side by side."""

    def start(self, run: Callable[[], Outcome]) -> int:
        """Begin, and number it: 0, 1, …"""
        ...

    def first(self, timeout_s: float) -> tuple[int, Outcome] | None:
        """The next one that ends, with its outcome; None when none does in time. Raises what it raised."""
        ...


class PolicySource(Protocol):
    """The policy in force."""

    def policy(self, now: float, patience_s: float = 0.0) -> Policy | None:
        """The last good policy; None when there never was one, and the first did not come within `patience_s`."""
        ...


class Telemetry(Protocol):
    """Where receipts go."""

    def record(self, receipt: Receipt) -> None:
        """Write the receipt and its metrics."""
        ...


class Acceptance(Protocol):
    """Takes work that may wait, so that it cannot be lost. Both methods raise `batch_ports.BatchError`."""

    def find(self, key: JobKey, timeout_s: float) -> Job | None:
        """The record under this key, read consistently, within about `timeout_s`."""
        ...

    def accept(self, work: Work, job: Job, timeout_s: float) -> Job | None:
        """First the work to the queue (a body too large for a message to S3 before that), then the record.

        The queue is the collector's, or promotion's where that answers for `job`.

        None: `job` is recorded. Else the record that existed under its key, left as it is. An error: nothing is
        promised; the work may lie in the queue, where without a record it comes to nothing, and when the last answer
        was lost there may be a record. All within about `timeout_s`.
        """
        ...


class CaptureSink(Protocol):
    """Where captured requests and answers go."""

    def put(self, record: bytes, timeout_s: float) -> None:
        """Hand over one record, a line of JSON, within about `timeout_s`. Raises when it was not taken."""
        ...


class Log(Protocol):
    """The part of a logger that is used here; Powertools' and the standard library's both fit."""

    def warning(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        """Something is amiss and was coped with."""
        ...

    def error(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        """Something is wrong and needs a person."""
        ...


class FunctionLog(Log, Protocol):
    """A `Log` that also takes what is well."""

    def info(self, msg: str, /, *, extra: Mapping[str, object] | None = None) -> None:
        """Something was done."""
        ...


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A caller's API key, known by its hash only."""

    key_id: str
    disabled: bool


class KeyStore(Protocol):
    """API keys by hash."""

    def find(self, key_hash: str) -> KeyRecord | None:
        """The key whose hex SHA-256 this is, or None."""
        ...
