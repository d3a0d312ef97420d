"""A whole job: its instances, its objects dealt to them, its end. And every job that runs.

Provisioning (`transform_start_s`) comes first, then TransformStartTime, then one model process an instance; an instance
that would have no object is not started, as it would only stand idle. Each instance works on up to as many of its
objects at a time as it may have requests in flight. A failed object is put into the log and the others go on; the job
is then Failed, with the service's own reason (`ClientError` for the input's fault, `AlgorithmError` for the model's)
and the first cause from the log. Whatever happens, the processes and files of a job end with it.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from workbench.stack.sagemaker.faults import FaultTable
from workbench.stack.sagemaker.model.replica import Host, ReplicaFactory, StartError
from workbench.stack.sagemaker.records import PlannedVariant, parse_variant
from workbench.stack.sagemaker.transform import objects
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.faults import JobFaults
from workbench.stack.sagemaker.transform.instance import Instance
from workbench.stack.sagemaker.transform.jobs import Job, JobError, Jobs
from workbench.stack.sagemaker.transform.jsonpath import PathError
from workbench.stack.sagemaker.transform.objects import ManifestError, Task
from workbench.stack.sagemaker.transform.request import OfferError, Spec
from workbench.stack.sagemaker.transform.storage import Storage, StorageError
from workbench.stack.sagemaker.transform.trouble import Trouble
from workbench.stack.sagemaker.transform.work import Plan, TaskError, transform

log = logging.getLogger(__name__)
Result = TypeVar("Result")
FOLDER = "transform"
VARIANT = "transform"
"""In place of a variant's name, in the names of logs."""
INPUT_FAULT = "ClientError: See job logs for more information"
MODEL_FAULT = "AlgorithmError: See job logs for more information"
NO_PING = "AlgorithmError: Model container failed to respond to ping"


@dataclass(slots=True)
class JobLog:
    """The job's data log: what the service says about objects, in its own form."""

    file: Path

    def write(self, *lines: str) -> None:
        """Append lines, each with the time and the service's name."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        with self.file.open("a") as out:
            out.writelines(f"{now}:[sagemaker logs]: {line}\n" for line in lines)


@dataclass(slots=True)
class Runner:
    """Runs jobs. `on_change(job)` is told of each new status."""

    host: Host
    storage: Storage
    jobs: Jobs
    faults: FaultTable
    on_change: Callable[[Job], None]
    job_faults: JobFaults = field(default_factory=JobFaults)
    running: dict[str, list[Instance]] = field(default_factory=dict)
    """The instances of each running job."""
    _grace_s: float = field(init=False)
    _tasks: dict[str, asyncio.Task[str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._grace_s = self.host.settings.stop_grace_s

    def clean(self) -> None:
        """Remove what a killed run left on disk."""
        shutil.rmtree(self.host.settings.state_dir / FOLDER, ignore_errors=True)

    def start(self, job: Job) -> None:
        """Begin a new job."""
        self.on_change(job)
        task = self._tasks[job.name] = asyncio.create_task(self._run(job))
        task.add_done_callback(lambda done: self._ended(job, done))

    def stop(self, job: Job) -> None:
        """Break off a job that is Stopping."""
        self.on_change(job)
        if task := self._tasks.get(job.name):
            task.cancel()

    async def shut_down(self, grace_s: float) -> None:
        """Break off everything; the server ends."""
        self._grace_s = grace_s
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job) -> str | None:
        """Do a job; returns why it failed."""
        limit_s = self.host.settings.transform_max_s
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._work(job)
        except JobError as error:
            return str(error)
        except Exception as error:
            if limit.expired():
                return f"ClientError: The job ran longer than {limit_s:g} s, the limit of a transform job"
            # A defect of ours or of the host (no more processes): the job must not stay InProgress.
            log.exception("transform job %s failed", job.name)
            return f"InternalServerError: The emulator failed: {error!r}"
        return None

    def _ended(self, job: Job, task: asyncio.Task[str | None]) -> None:
        # A callback: a task that is cancelled before it begins would not come to its own end.
        self._tasks.pop(job.name, None)
        if task.cancelled() and job.status != "Stopping":
            return  # the server ends, and the job with it
        self.jobs.finish(job, None if task.cancelled() else task.result(), time.time())
        if job.failure_reason:
            log.warning("%s is %s: %s", job.name, job.status, job.failure_reason)
        self.on_change(job)

    async def _work(self, job: Job) -> None:
        spec, settings = job.spec, self.host.settings
        folder = settings.state_dir / FOLDER / job.name
        trouble = Trouble(self.job_faults.view(job.name), lambda: self._stop_by_fault(job))
        await settings.clock.sleep(settings.transform_start_s + trouble.faults.start_s)
        trouble.before_start()
        self.jobs.start(job, time.time())
        journal = JobLog(settings.state_dir / "logs" / f"{job.name}-{VARIANT}-data.log")
        try:
            tasks = await self._tasks_of(spec)
            folder.mkdir(parents=True)
            instances = await self._instances(job, min(spec.instances, len(tasks)))
            plan = await self._plan(spec, instances, journal)
            hands = objects.dealt(tasks, len(instances))
            trouble.look()
            failures = [
                failure
                for done in await _all(
                    _Hand(plan, instance, self.storage, folder / str(number), journal, trouble).work(hand)
                    for number, (instance, hand) in enumerate(zip(instances, hands, strict=True))
                )
                for failure in done
            ]
        finally:
            await self._stop(job)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if failures:
            raise JobError(_reason(failures, len(tasks), journal))

    def _stop_by_fault(self, job: Job) -> None:
        if job.status == "InProgress":
            self.stop(self.jobs.begin_stop(job.name, time.time()))

    async def _tasks_of(self, spec: Spec) -> list[Task]:
        try:
            if spec.source_kind == "S3Prefix":
                keys = await self.storage.keys(spec.source)
                tasks = objects.tasks_of_prefix(spec.source, keys, spec.output)
            else:
                tasks = objects.tasks_of_manifest(await self.storage.read(spec.source), spec.output)
        except (StorageError, ManifestError) as error:
            raise JobError(f"ClientError: {error}") from error
        if not tasks:
            raise JobError(f"ClientError: S3 key: {spec.source.uri} matched no files on s3")
        return tasks

    async def _instances(self, job: Job, count: int) -> list[Instance]:
        self.running[job.name] = instances = []
        factory = self._factory(job.spec)

        async def start() -> None:
            instances.append(await Instance.start(job.spec, factory, self.job_faults.view(job.name)))

        try:
            await _all(start() for _ in range(count))
        except StartError as error:
            raise JobError(f"{NO_PING}. {error.unhealthy}" if error.unhealthy else f"ClientError: {error}") from error
        return instances

    def _factory(self, spec: Spec) -> ReplicaFactory:
        variant = parse_variant(
            {
                "VariantName": VARIANT,
                "ModelName": VARIANT,
                "InstanceType": spec.instance_type,
                "InitialInstanceCount": spec.instances,
                "ContainerStartupHealthCheckTimeoutInSeconds": self.host.settings.transform_startup_timeout_s,
            }
        )
        planned = PlannedVariant(variant, spec.container, spec.instances, 1.0)
        return ReplicaFactory(self.host, spec.name, planned, self.faults.view(spec.name, VARIANT), extra_s=0.0)

    async def _plan(self, spec: Spec, instances: Sequence[Instance], journal: JobLog) -> Plan:
        settings = self.host.settings
        try:
            offered = await instances[0].offered()
        except OfferError as error:
            raise JobError(f"AlgorithmError: The answer to /execution-parameters is unusable: {error}") from error
        parameters = requests.effective(spec.asked, offered)
        for instance in instances:
            instance.allow(parameters)
        journal.write(str(parameters))
        try:
            prepared = spec.filters.prepared(inclusive=settings.transform_range_includes_end) if spec.filters else None
        except PathError as error:
            journal.write(str(error))
            raise JobError(f"{INPUT_FAULT}. {journal.file.name}: {error}") from error
        return Plan(spec, parameters, prepared, settings.transform_keeps_newlines)

    async def _stop(self, job: Job) -> None:
        instances = self.running.pop(job.name, [])
        await asyncio.gather(*(i.stop(self._grace_s) for i in instances))


@dataclass(slots=True)
class _Hand:
    """One instance at work on its objects."""

    plan: Plan
    instance: Instance
    storage: Storage
    folder: Path
    journal: JobLog
    trouble: Trouble

    async def work(self, tasks: Sequence[Task]) -> list[tuple[Task, TaskError]]:
        """Take the objects through, in order; returns those that failed."""
        left = iter(enumerate(tasks))
        failures: list[tuple[Task, TaskError]] = []

        async def lane() -> None:
            for number, task in left:
                if (error := await self._one(task, self.folder / str(number))) is not None:
                    failures.append((task, error))
                self.trouble.passed()

        await _all(lane() for _ in range(min(self.instance.concurrency, len(tasks))))
        return failures

    async def _one(self, task: Task, folder: Path) -> TaskError | None:
        await asyncio.to_thread(folder.mkdir, parents=True)
        try:
            self.trouble.before(task)
            await transform(task, self.plan, self.instance, self.storage, folder)
        except TaskError as error:
            self.journal.write(*(f"{task.source}: {line}" for line in error.lines))
            return error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return None


def _reason(failures: Sequence[tuple[Task, TaskError]], objects_: int, journal: JobLog) -> str:
    ordered = sorted(failures, key=lambda f: f[0].source.key)
    task, first = ordered[0]
    fault = INPUT_FAULT if first.caller else MODEL_FAULT
    cause = " ".join(line for line in first.lines if line)
    return f"{fault}. {journal.file.name}: {len(failures)} of {objects_} objects failed, first {task.source}: {cause}"


async def _all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of coroutines that run at the same time; the first that fails ends the others."""
    tasks = [asyncio.create_task(part) for part in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
