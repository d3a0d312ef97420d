"""What the emulator can be told at start: one frozen value, each field with its unit and AWS's own figure.

Figures whose AWS value is unknown or disputed (idle time of serverless containers, payload limits) are settings on
purpose; the defaults are AWS's published values wherever there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from workbench.stack.sagemaker.clock import Clock

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """All times are AWS's seconds; `clock` says which of them `time_scale` makes shorter, and by how much."""

    state_dir: Path
    """Holds `state.db` (what survives the process), `artifacts/` (extracted model archives) and `logs/` (one file a
    model process)."""
    host: str = "127.0.0.1"
    port: int = 8181
    region: str = "us-east-1"
    account: str = "000000000000"
    time_scale: float = 1.0
    """How many times faster than AWS's the emulated cloud's waits pass."""
    metric_period_s: int = 60
    """Length of a CloudWatch bin. AWS: 60."""
    metric_lag_s: float = 60.0
    """Wait after a bin's end before it is published. AWS: unpublished; observed 1-3 minutes."""
    serverless_idle_s: float = 300.0
    """Idle time after which a serverless container stops. AWS: unpublished."""
    cold_start_extra_s: float = 0.0
    """Added to the real start of each serverless container (AWS also fetches an image and a microVM)."""
    instance_start_s: float = 0.0
    """Added to the real start of each instance. AWS: 180-540 s."""
    startup_timeout_s: float = 240.0
    """Start-up health check unless the variant sets ContainerStartupHealthCheckTimeoutInSeconds. AWS: 240."""
    invocation_timeout_s: float = 60.0
    """Limit of one model call. AWS: 60."""
    stream_timeout_s: float = 480.0
    """Limit of one model call whose answer is streamed. AWS: 480."""
    async_concurrency: int = 4
    """Asynchronous requests that an instance is given at a time, unless MaxConcurrentInvocationsPerInstance says so.
    AWS: chosen by the service."""
    max_async_inline_bytes: int = 128_000
    """Of an asynchronous request that comes without InputLocation. AWS: 128,000."""
    max_async_payload_bytes: int = 1024 * MIB
    """Of an asynchronous request or answer on S3. AWS: 1 GB."""
    cold_start_timeout_s: float = 180.0
    """Limit of a serverless container's start, as a waiting request sees it. AWS: 180."""
    ping_interval_s: float = 2.0
    """Between two health checks of a running instance or container."""
    ping_timeout_s: float = 2.0
    """AWS: 2."""
    creating_s: float = 0.0
    """An endpoint is Creating at least so long. AWS: minutes."""
    updating_s: float = 0.0
    """An endpoint is Updating at least so long. AWS: minutes."""
    deleting_s: float = 0.0
    """An endpoint is Deleting at least so long. AWS: seconds to minutes."""
    consistency_lag_s: float = 0.0
    """For so long CreateEndpointConfig does not see a new model, nor CreateEndpoint a new configuration. AWS: seconds,
    now and then."""
    quota_profile: str = "generous"
    """What the account may use at first: `control/quotas.py` lists the profiles."""
    quotas: tuple[tuple[str, int], ...] = ()
    """Quotas that differ from the profile's, by name."""
    stop_grace_s: float = 10.0
    """From SIGTERM to SIGKILL. AWS: 30."""
    max_payload_bytes: int = 6 * MIB
    """Real-time request and response. AWS: 6 MiB in the API model, 25 MB in the guide."""
    max_serverless_payload_bytes: int = 4 * MIB
    """Serverless request and response. AWS: 4 MB."""
    cores_per_instance: float = 1.0
    """Host cores that stand for a whole instance: so many busy cores read as vCPUs x 100 % CPUUtilization."""
    transform_start_s: float = 0.0
    """From a transform job's creation to its instances. AWS: minutes."""
    transform_startup_timeout_s: float = 1800.0
    """To the first good /ping of a transform job's container. AWS: 30 minutes (aws/amazon-sagemaker-examples#815)."""
    transform_max_s: float = 432_000.0
    """Limit of a transform job's run. AWS: unpublished ("days"); 5 days are what training and processing jobs get."""
    transform_keeps_newlines: bool = True
    """Whether a line that is sent by itself keeps its newline. AWS: not documented; the SDK's local mode keeps it."""
    transform_range_includes_end: bool = True
    """Whether `[a:b]` of a filter includes b. AWS: the guide's example includes it, its JsonPath reference does not."""
    clock: Clock = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clock", Clock(self.time_scale))

    @property
    def publish_every_s(self) -> float:
        """Real seconds between two looks for metric bins that are due: one, or half a bin where bins are shorter."""
        return min(max(self.clock.real(self.metric_period_s) / 2, 0.2), 1.0)
