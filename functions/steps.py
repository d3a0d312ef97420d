"""Steps of a turn, each of which may be put off to the next: what a service refuses must not keep others waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from functions.batch_ports import BatchError, BatchPorts, Count


class Steps:
    """One turn's."""

    def __init__(self, ports: BatchPorts) -> None:
        """`ports` are the batch lane's."""
        self._ports = ports
        self.troubles = 0
        """How many steps were put off."""

    @contextmanager
    def put_off(self, step: str, model: str | None = None) -> Iterator[None]:
        """A step that ends quietly where a service refuses or fails; it is counted, and logged without any inside."""
        try:
            yield
        except BatchError as error:
            self.note(step, model, error)

    def note(self, step: str, model: str | None, error: BatchError) -> None:
        """A step was put off."""
        self.troubles += 1
        self._ports.log.warning("step put off", extra={"step": step, "model": model, "cause": str(error)})
        self._ports.telemetry.count(model, {Count.STEPS_PUT_OFF: 1})
