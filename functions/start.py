"""Starts runs: closes one, and makes its transform job. Both may be done again, by whoever comes next."""

from __future__ import annotations

from functions.batch_ports import BatchPorts, Count, TransformSpec
from functions.core.run import Run, RunState, input_prefix, output_prefix
from functions.core.shards import job_types, lined
from functions.core.topology import BatchLane


class Starter:
    """Starts runs through the ports."""

    def __init__(self, ports: BatchPorts) -> None:
        """`ports` are the batch lane's."""
        self._ports = ports

    def close(self, run: Run) -> bool:
        """Let a gathering run take no more parts; False when it is not gathering."""
        return self._ports.runs.move(run.name, RunState.GATHERING, RunState.STARTING, at=self._ports.clock.now())

    def begin(self, run: Run, lane: BatchLane) -> None:
        """Make a starting run's transform job. Raises `BusyError` at the account's quota."""
        self._ports.transforms.create(self._spec(run, lane))
        if self._ports.runs.move(run.name, RunState.STARTING, RunState.RUNNING, at=self._ports.clock.now()):
            self._ports.telemetry.count(run.group.model, {Count.RUNS_STARTED: 1})

    def _spec(self, run: Run, lane: BatchLane) -> TransformSpec:
        if lane.model_name is None or lane.instance_type is None:
            raise ValueError(f"lane {lane.name!r} of {run.group.model!r} cannot run a transform job")
        lines = lined(run.group)
        content_type, accept = job_types(run.group)
        objects = self._ports.objects
        return TransformSpec(
            name=run.name,
            model_name=lane.model_name,
            input=run.input or objects.uri(input_prefix(run.name)),
            output=run.output or objects.uri(output_prefix(run.name)).rstrip("/"),
            content_type=content_type,
            accept=accept,
            lines=lines,
            strategy=lane.strategy if lines else "SingleRecord",
            instance_type=lane.instance_type,
            instance_count=lane.instance_count,
            max_payload_mb=lane.max_payload_mb,
            max_concurrent=lane.max_concurrent,
        )
