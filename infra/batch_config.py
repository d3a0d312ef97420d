"""What a stack file says of work that can wait: each model's batch lane, the jobs of all, the nightly recheck, capture.

Sections only; which of them a stage allows, and what they need of each other, is in `infra/config.py`. What SageMaker,
SQS and Firehose allow stands beside each value with its source.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from infra.fields import (
    ContentType,
    HttpsUrl,
    KeyArn,
    Name,
    ParameterName,
    S3Prefix,
    Section,
    TimeOfDay,
    Topic,
    between,
)

MAX_PAYLOAD_MB = 100
"""MaxPayloadInMB, and its product with MaxConcurrentTransforms (botocore sagemaker 2017-07-24)."""
QUEUE_DAYS = 14
"""How long SQS keeps a message at most (botocore sqs 2012-11-05, MessageRetentionPeriod)."""


class BatchLaneConfig(Section):
    """A model's batch lane: jobs gathered from the queue into SageMaker transform jobs."""

    instance_type: str
    instance_count: Annotated[int, between(1, 100)] = 1
    """Instances share a job by its objects (developer guide, batch-transform): a job of one object keeps one busy."""
    usd_per_instance_hour: Annotated[float, between(0.0001, 1000)] | None = None
    """For what the price book does not know; it takes the place of the book's figure."""
    max_jobs: Annotated[int, between(1, 100)] = 2
    """Transform jobs at a time. What would be one more waits, or is promoted where it cannot."""
    target_records: Annotated[int, between(1, 100_000)] = 20_000
    """A job starts when it has so many: beyond, start-up is no longer what it costs."""
    max_wait_s: Annotated[int, between(0, 86_400)] = 1800
    """A job starts at this age, however few it has gathered."""
    startup_s: Annotated[int, between(0, 3600)] = 300
    """From a transform job's creation to its first record; what is due sooner is promoted."""
    record_s: Annotated[float, between(0.00001, 3600)] = 0.05
    """How long one instance takes for one record, as a job's length is predicted."""
    strategy: Literal["MultiRecord", "SingleRecord"] = "MultiRecord"
    max_payload_mb: Annotated[int, between(1, MAX_PAYLOAD_MB)] = 6
    """What one call of the container may hold, and so the largest request that may wait."""
    max_concurrent: Annotated[int, between(1, MAX_PAYLOAD_MB)] | None = None
    """Calls that an instance's container is given at a time; it has as many workers. None: one a GPU, else one a vCPU,
    which would stand idle otherwise."""
    content_types: list[ContentType] | None = None
    """None: whatever comes. What is not JSON runs an object a record, in a job of its type."""
    image: str | None = None

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        product = self.max_payload_mb * (self.max_concurrent or 1)
        if product > MAX_PAYLOAD_MB:
            raise PydanticCustomError(
                "product",
                f"max_payload_mb {self.max_payload_mb} × max_concurrent {self.max_concurrent} is {product}, more than "
                f"{MAX_PAYLOAD_MB}: SageMaker allows no more in one container",
            )
        return self

    def concurrent(self, vcpus: int, gpus: int) -> int:
        """Calls at a time on an instance with such hardware."""
        return self.max_concurrent or min(gpus or vcpus, MAX_PAYLOAD_MB // self.max_payload_mb)


class WebhookConfig(Section):
    """Where one tenant is told that its jobs have ended."""

    url: HttpsUrl
    secret_parameter: ParameterName
    """An SSM SecureString: the key of each notice's signature."""


class NotifyConfig(Section):
    """Who is told that jobs have ended; of payloads they are told nothing."""

    topic: Topic | None = None
    webhooks: dict[str, WebhookConfig] = Field(default_factory=dict)
    """By tenant."""

    @model_validator(mode="after")
    def _tells_somebody(self) -> Self:
        if self.topic is None and not self.webhooks:
            raise PydanticCustomError("nobody", "tells nobody: add `topic` or `webhooks`, or remove `notify`")
        return self


class BatchConfig(Section):
    """What all batch lanes of a stack share: queue, records, results."""

    datasets: list[S3Prefix] = Field(default_factory=list)
    """Below these a caller may have a whole data set transformed, input and output; `{tenant}` is the caller's name."""
    dataset_keys: list[KeyArn] = Field(default_factory=list)
    """The KMS keys that those buckets are encrypted with."""
    retention_days: Annotated[
        int, between(QUEUE_DAYS + 1, 3650, f": what a message of {QUEUE_DAYS} days speaks of must still be there")
    ] = 30
    """How long payloads, inputs and results are kept."""
    job_days: Annotated[int, between(2, 3650, ": the audit counts the records of a day, up to two hours after it")] = 7
    """How long a job's record is kept after it has ended."""
    audit_hours: Annotated[int, between(1, 24, ": it counts the records of one day")] = 6
    """Between two audits, each of which reads every record."""
    collect_timeout_s: Annotated[
        int, between(60, 900, ": it begins nothing in its last 45 s, and a function runs 15 minutes at most")
    ] = 240
    """How long one turn of `collect` may take, and how long the queue hides what it was given."""
    promote_concurrency: Annotated[int, between(2, 1000)] = 10
    """Instances of `promote` at a time (botocore lambda 2015-03-31, MaximumConcurrency): what batch may ask of the
    lanes that callers wait on."""
    notify: NotifyConfig | None = None

    @model_validator(mode="after")
    def _results_outlive_records(self) -> Self:
        if self.job_days > self.retention_days:
            raise PydanticCustomError(
                "order",
                f"job_days {self.job_days} is above retention_days {self.retention_days}: a record would speak of a "
                "result that is gone",
            )
        return self


class NightlyConfig(Section):
    """The nightly recheck: a day's captured requests once more, by a heavier model."""

    model: Name
    """The heavy one; it has a batch lane."""
    rechecks: Name
    """The model whose captured answers are compared with it."""
    at: TimeOfDay = "01:00"
    """In the policy's time zone."""
    pause_s: Annotated[int, between(1, 600)] = 30
    """Between two looks at the transform job."""
    retention_days: Annotated[int, between(1, 3650)] = 365
    """How long reports are kept. What they were made from goes when captures do."""

    @model_validator(mode="after")
    def _two_models(self) -> Self:
        if self.model == self.rechecks:
            raise PydanticCustomError("same", f"{self.model} cannot recheck itself: name a heavier model as `model`")
        return self


class CaptureConfig(Section):
    """Capture of what routes opted in to: the router's lines, through Firehose, in the data bucket."""

    interval_s: Annotated[int, between(60, 900, ": what Firehose takes with dynamic partitioning")] = 300
    """How long lines are gathered before they become an object."""
    retention_days: Annotated[int, between(2, 3650, ": the night after rechecks them")] = 30
