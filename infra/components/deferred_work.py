"""All that a stack has because some of its work can wait: tables, queues, functions, their clock, and their alarms.

One component, so that a stack without a batch lane lacks it whole. What the router needs of it, to accept what can wait
and to hand over captures, is `deferral`, `capture` and `jobs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.components.batch_alarms import BatchAlarms, BatchAlarmsArgs
from infra.components.batch_functions import BatchFunctions, BatchFunctionsArgs
from infra.components.capture import Capture, CaptureArgs
from infra.components.data_bucket import DataBucket
from infra.components.deferral import Deferral
from infra.components.job_api import JobApi, JobApiArgs
from infra.components.job_store import JobStore, JobStoreArgs
from infra.components.lambda_function import LambdaFunction
from infra.components.nightly_recheck import NightlyRecheck, NightlyRecheckArgs
from infra.components.notices import Notices, NoticesArgs
from infra.components.policy_store import PolicyStore
from infra.components.schedules import Schedules, SchedulesArgs
from infra.components.work_queue import WorkQueue
from infra.config import StackConfig


@dataclass(frozen=True)
class DeferredWorkArgs:
    """The lanes that do the work, and what the rest of the stack shares with them."""

    config: StackConfig
    topology: pulumi.Input[str]
    """The topology document, as text."""
    endpoints: Sequence[aws.sagemaker.Endpoint]
    models: Mapping[str, aws.sagemaker.Model]
    """What transform jobs run, by our models' names."""
    policy: PolicyStore
    timezone: str
    """The policy's."""
    data: DataBucket
    key_arn: pulumi.Input[str]


class DeferredWork(pulumi.ComponentResource):
    """The batch lane's machinery, capture, and the nightly recheck."""

    deferral: Deferral
    capture: Capture | None
    jobs: LambdaFunction
    nightly: NightlyRecheck | None
    outputs: dict[str, object]
    """What the stack gives out."""
    functions: dict[str, LambdaFunction]

    def __init__(self, name: str, args: DeferredWorkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:DeferredWork", name, None, opts)
        self._args, config = args, args.config
        self._here = pulumi.ResourceOptions(parent=self)
        tags = config.tags_for("batch-functions")
        store = JobStore(
            "job-store",
            JobStoreArgs(config.stack, config.region, args.key_arn, config.protect, config.tags_for("job-store")),
            opts=self._here,
        )
        schedules = Schedules("schedules", SchedulesArgs(config.stack, config.tags_for("schedules")), opts=self._here)
        notices = self._notices()
        batch = BatchFunctions(
            "batch-functions",
            BatchFunctionsArgs(
                config=config,
                topology=args.topology,
                endpoints=args.endpoints,
                models=[model for _, model in sorted(args.models.items())],
                store=store,
                data=args.data,
                notices=notices.queue if notices else None,
                schedules=schedules,
                key_arn=args.key_arn,
                tags=tags,
            ),
            opts=self._here,
        )
        self.deferral = Deferral(store, batch.work, batch.promotions, args.data)
        self.jobs = JobApi(
            "job-api",
            JobApiArgs(config, args.topology, args.policy, store, batch.work, args.data, config.tags_for("job-api")),
            opts=self._here,
        ).jobs
        self.capture = self._capture()
        self.nightly = self._nightly(schedules)
        queues = {"work": batch.work, "promote": batch.promotions, **({"notices": notices.queue} if notices else {})}
        self._alarms(batch, queues)
        self.functions = {
            **{str(name): function for name, function in batch.functions.items()},
            "jobs": self.jobs,
            **({"notify": notices.notify} if notices else {}),
            **({"prepare": self.nightly.prepare, "report": self.nightly.report} if self.nightly else {}),
        }
        self.outputs = self._outputs(store, queues, batch)
        self.register_outputs({})

    def _notices(self) -> Notices | None:
        config = self._args.config
        if config.batch.notify is None:
            return None
        return Notices(
            "notices",
            NoticesArgs(
                stack=config.stack,
                region=config.region,
                config=config.batch.notify,
                key_arn=self._args.key_arn,
                log_level=config.router.log_level,
                log_retention_days=config.log_retention_days,
                tags=config.tags_for("notices"),
            ),
            opts=self._here,
        )

    def _capture(self) -> Capture | None:
        config = self._args.config
        if config.capture is None:
            return None
        return Capture(
            "capture",
            CaptureArgs(
                stack=config.stack,
                region=config.region,
                config=config.capture,
                timezone=self._args.timezone,
                data=self._args.data,
                key_arn=self._args.key_arn,
                log_retention_days=config.log_retention_days,
                tags=config.tags_for("capture"),
            ),
            opts=self._here,
        )

    def _nightly(self, schedules: Schedules) -> NightlyRecheck | None:
        args, config = self._args, self._args.config
        if config.nightly is None:
            return None
        return NightlyRecheck(
            "nightly",
            NightlyRecheckArgs(
                config=config,
                nightly=config.nightly,
                topology=args.topology,
                heavy=args.models[config.nightly.model],
                timezone=args.timezone,
                data=args.data,
                schedules=schedules,
                tags=config.tags_for("nightly-recheck"),
            ),
            opts=self._here,
        )

    def _alarms(self, batch: BatchFunctions, queues: Mapping[str, WorkQueue]) -> None:
        config = self._args.config
        BatchAlarms(
            "batch-alarms",
            BatchAlarmsArgs(
                stack=config.stack,
                work=batch.work,
                promotions=batch.promotions,
                dead={**{what: queue.dead for what, queue in queues.items()}, "settle": batch.unsettled},
                collect=batch.functions["collect"],
                audit=batch.functions["audit"],
                audit_s=config.batch.audit_hours * 3600,
                machine=self.nightly.machine if self.nightly else None,
                capture=config.capture,
                stream=self.capture.stream if self.capture else None,
                config=config.alarms,
                tags=config.tags_for("batch-alarms"),
            ),
            opts=self._here,
        )

    def _outputs(self, store: JobStore, queues: Mapping[str, WorkQueue], batch: BatchFunctions) -> dict[str, object]:
        args, nightly = self._args, self._args.config.nightly
        outputs: dict[str, object] = {
            "jobs_table": store.jobs.name,
            "runs_table": store.runs.name,
            "data_bucket": args.data.bucket.bucket,
            "queues": {what: queue.queue.url for what, queue in queues.items()},
            "dead_letter_queues": {
                **{what: queue.dead.url for what, queue in queues.items()},
                "settle": batch.unsettled.url,
            },
        }
        if self.capture:
            outputs["capture_stream"] = self.capture.stream.name
        if nightly and self.nightly:
            outputs["nightly"] = {
                "state_machine": self.nightly.machine.arn,
                "bucket": args.data.bucket.bucket,
                "models": [nightly.rechecks],
                "timezone": args.timezone,
            }
        return outputs


def kept_days(config: StackConfig) -> dict[str, int]:
    """How long each prefix of the data bucket is kept."""
    days = {"batch/": config.batch.retention_days}
    if config.capture:
        days |= dict.fromkeys(("capture/", "capture-errors/"), config.capture.retention_days)
    if config.capture and config.nightly:
        # What a night's report was made from is the day's captures once more.
        days |= {"nightly/runs/": config.capture.retention_days, "nightly/reports/": config.nightly.retention_days}
    return days
