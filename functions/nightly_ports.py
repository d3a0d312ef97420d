"""What the nightly recheck needs from outside, besides the data bucket and the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from functions.batch_ports import TransformSpec, TransformStatus


class RecheckError(Exception):
    """The recheck cannot go on; the message says why and what to do, and holds nothing that was captured."""


class TransformWatch(Protocol):
    """Looks at SageMaker's transform jobs."""

    def describe(self, name: str) -> TransformStatus | None:
        """How it fares; None where there is none."""
        ...


class TransformJobs(TransformWatch, Protocol):
    """SageMaker's batch transform, as far as the state machine leaves it to us."""

    def request(self, spec: TransformSpec) -> Mapping[str, object]:
        """The CreateTransformJob request of a spec."""
        ...


class RecheckTelemetry(Protocol):
    """A recheck's figures, as metrics."""

    def rechecked(self, model: str, at: float, figures: Mapping[str, float]) -> None:
        """Metric names with values, one line of EMF by {stack, model}, stamped `at` (Unix seconds)."""
        ...


class Announcements(Protocol):
    """Tells people of a report."""

    def announce(self, subject: str, text: str) -> None:
        """Publish a note. Raises `batch_ports.BatchError`."""
        ...
