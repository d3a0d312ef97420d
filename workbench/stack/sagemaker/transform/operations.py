"""The transform jobs' calls: what each request has to pass before a job begins; and the room's wiring."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.operations import Operation
from workbench.stack.sagemaker.control.quotas import Quotas, exceeded, transform_usage
from workbench.stack.sagemaker.faults import FaultTable
from workbench.stack.sagemaker.model.replica import Host
from workbench.stack.sagemaker.records import Model
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.events import Bus, Events
from workbench.stack.sagemaker.transform.faults import JobFaults
from workbench.stack.sagemaker.transform.jobs import Job, Jobs
from workbench.stack.sagemaker.transform.request import Spec
from workbench.stack.sagemaker.transform.runner import Runner
from workbench.stack.sagemaker.transform.storage import Storage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Transforms:
    """Serves the four calls."""

    catalog: Catalog
    quotas: Quotas
    jobs: Jobs
    runner: Runner
    storage: Storage
    events: Events

    @classmethod
    def open(
        cls,
        host: Host,
        catalog: Catalog,
        quotas: Quotas,
        faults: FaultTable,
        s3: S3Client,
        bus: Bus,
        job_faults: JobFaults,
        on_change: Callable[[], None] = lambda: None,
    ) -> Transforms:
        """The room, over what the server shares; nothing of an earlier run is left on disk.

        `on_change` is called at each new status of a job.
        """
        jobs, storage, events = Jobs(), Storage(s3), Events(bus, job_faults)

        def tell(job: Job) -> None:
            rows = catalog.tags.list({"ResourceArn": job.arn})["Tags"]
            events.changed(job, {row["Key"]: row["Value"] for row in rows})
            on_change()

        runner = Runner(host, storage, jobs, faults, tell, job_faults)
        runner.clean()
        return cls(catalog, quotas, jobs, runner, storage, events)

    async def shut_down(self, grace_s: float) -> None:
        """End every job's processes; the server ends."""
        await self.runner.shut_down(grace_s)

    def table(self) -> dict[str, Operation]:
        """Operation by name."""
        return {
            "CreateTransformJob": self.create,
            "DescribeTransformJob": self.describe,
            "ListTransformJobs": self.list,
            "StopTransformJob": self.stop,
        }

    async def create(self, request: Document) -> Document:
        """CreateTransformJob. Raises `AwsError`."""
        requests.check(request)
        name = request["TransformJobName"]
        self._throttle(name)
        arn = self.catalog.arn("transform-job", name)
        self.jobs.check_new(name, arn)
        model = self.catalog.model(request["ModelName"])
        spec = requests.parse(request, model.container)
        await self._check_input(spec, request, model)
        # From here on nothing waits: what is free now is free for this job.
        usage, held = transform_usage(spec.instance_type), self.jobs.instances(spec.instance_type)
        if self.runner.job_faults.refuses("limit", name, random.uniform(0, 100)):
            raise exceeded(usage, held, held, spec.instances)
        self.quotas.check(usage, held, spec.instances)
        job = self.jobs.add(spec, arn, request, time.time())
        self.catalog.tags.start(arn, request)
        self.runner.start(job)
        return {"TransformJobArn": arn}

    def describe(self, request: Document) -> Document:
        """DescribeTransformJob. Raises `AwsError`."""
        self._throttle(request["TransformJobName"])
        return self.jobs.describe(request)

    def list(self, request: Document) -> Document:
        """ListTransformJobs. Raises `AwsError`."""
        self._throttle(request.get("NameContains", ""))
        return self.jobs.list(request)

    def stop(self, request: Document) -> Document:
        """StopTransformJob. Raises `AwsError`."""
        self._throttle(request["TransformJobName"])
        self.runner.stop(self.jobs.begin_stop(request["TransformJobName"], time.time()))
        return {}

    def _throttle(self, name: str) -> None:
        if self.runner.job_faults.refuses("throttle", name, random.uniform(0, 100)):
            raise AwsError("ThrottlingException", "Rate exceeded")

    async def _check_input(self, spec: Spec, request: Document, model: Model) -> None:
        # The service looks before it accepts the job: aws/amazon-sagemaker-examples#2414 has these words.
        if await self.storage.any(spec.source):
            return
        bucket, role = spec.source.bucket, model.document.get("ExecutionRoleArn", "")
        raise invalid(
            f'No S3 objects found under S3 URL "{request["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"]}" '
            f"given in input data source. Please ensure that the bucket exists in the selected region "
            f"({self.runner.host.settings.region}), that objects exist under that S3 prefix, and that the role "
            f'"{role}" has "s3:ListBucket" permissions on bucket "{bucket}".'
        )
