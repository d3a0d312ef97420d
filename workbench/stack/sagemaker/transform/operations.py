"""The transform jobs' calls: what each request has to pass before a job begins."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.quotas import Quotas, transform_usage
from workbench.stack.sagemaker.records import Model
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.jobs import Jobs
from workbench.stack.sagemaker.transform.request import Spec
from workbench.stack.sagemaker.transform.runner import Runner
from workbench.stack.sagemaker.transform.storage import Storage

Operation = Callable[[Document], Document | Awaitable[Document]]


@dataclass(frozen=True, slots=True)
class Transforms:
    """Serves the four calls."""

    catalog: Catalog
    quotas: Quotas
    jobs: Jobs
    runner: Runner
    storage: Storage

    def table(self) -> dict[str, Operation]:
        """Operation by name."""
        return {
            "CreateTransformJob": self.create,
            "DescribeTransformJob": self.jobs.describe,
            "ListTransformJobs": self.jobs.list,
            "StopTransformJob": self.stop,
        }

    async def create(self, request: Document) -> Document:
        """CreateTransformJob. Raises `AwsError`."""
        requests.check(request)
        name = request["TransformJobName"]
        arn = self.catalog.arn("transform-job", name)
        self.jobs.check_new(name, arn)
        model = self.catalog.model(request["ModelName"])
        spec = requests.parse(request, model.container)
        usage = transform_usage(spec.instance_type)
        self.quotas.check(usage, self.jobs.instances(spec.instance_type), spec.instances)
        await self._check_input(spec, request, model)
        job = self.jobs.add(spec, arn, request, time.time())
        self.catalog.tags.start(arn, request)
        self.runner.start(job)
        return {"TransformJobArn": arn}

    def stop(self, request: Document) -> Document:
        """StopTransformJob. Raises `AwsError`."""
        self.runner.stop(self.jobs.begin_stop(request["TransformJobName"], time.time()))
        return {}

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
