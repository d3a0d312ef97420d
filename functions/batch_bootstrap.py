"""Wires the batch lane's functions. Called once per process, at the first invocation (see `bootstrap`)."""

from __future__ import annotations

from dataclasses import dataclass
from os import urandom
from typing import TYPE_CHECKING, Any, Final

from functions.bootstrap import SystemClock, read_topology
from functions.ports import FunctionLog
from functions.settings import METRICS_NAMESPACE, SettingsError

if TYPE_CHECKING:
    from botocore.session import Session

    from functions.audit import Auditor
    from functions.batch_ports import BatchPorts
    from functions.batch_settings import BatchSettings, NotifySettings
    from functions.collect import Collector
    from functions.notify import Notifier
    from functions.promote import Promoter
    from functions.settle import Settler

_TAGS: Final = {"project": "inferlane", "component": "batch-lane"}
"""Of every transform job, beside the stack."""


@dataclass(frozen=True, slots=True)
class CollectParts:
    """What the `collect` handler works with."""

    collector: Collector
    log: FunctionLog


@dataclass(frozen=True, slots=True)
class SettleParts:
    """What the `settle` handler works with."""

    settler: Settler
    log: FunctionLog


@dataclass(frozen=True, slots=True)
class PromoteParts:
    """What the `promote` handler works with."""

    promoter: Promoter
    log: FunctionLog


@dataclass(frozen=True, slots=True)
class AuditParts:
    """What the `audit` handler works with."""

    auditor: Auditor
    log: FunctionLog


@dataclass(frozen=True, slots=True)
class NotifyParts:
    """What the `notify` handler works with."""

    notifier: Notifier
    log: FunctionLog


def collect_parts(settings: BatchSettings) -> CollectParts:
    """Wire `collect`, which settles what no event told of."""
    from functions.collect import Collector
    from functions.settle import Settler

    log, topology = _log("collect", settings.stack), read_topology(settings.topology_file)
    ports = _ports("collect", settings, _session(settings.region), log)
    settler = Settler(ports, topology, new_id=_new_id)
    return CollectParts(Collector(ports, topology, settler, stack=settings.stack, new_id=_new_id), log)


def settle_parts(settings: BatchSettings) -> SettleParts:
    """Wire `settle`."""
    from functions.settle import Settler

    log = _log("settle", settings.stack)
    ports = _ports("settle", settings, _session(settings.region), log)
    return SettleParts(Settler(ports, read_topology(settings.topology_file), new_id=_new_id), log)


def promote_parts(settings: BatchSettings) -> PromoteParts:
    """Wire `promote`, which calls endpoints as the router does."""
    from functions.aws.sagemaker_runtime import SageMakerRuntime
    from functions.promote import Promoter

    log, session = _log("promote", settings.stack), _session(settings.region)
    keys = settings.keys or session.get_credentials()
    if keys is None:
        raise SettingsError("no AWS credentials in the environment")
    invoker = SageMakerRuntime(settings.region, keys, settings.sagemaker_runtime_url)
    ports = _ports("promote", settings, session, log)
    return PromoteParts(Promoter(ports, read_topology(settings.topology_file), invoker, new_id=_new_id), log)


def audit_parts(settings: BatchSettings) -> AuditParts:
    """Wire `audit`."""
    from functions.audit import Auditor
    from functions.aws import clients
    from functions.aws.acceptances import MetricAcceptances

    log, session = _log("audit", settings.stack), _session(settings.region)
    counted = MetricAcceptances(clients.patient(session, "cloudwatch"), settings.stack, METRICS_NAMESPACE)
    return AuditParts(Auditor(_ports("audit", settings, session, log), counted), log)


def notify_parts(settings: NotifySettings) -> NotifyParts:
    """Wire `notify`."""
    from functions.aws import clients
    from functions.aws.secrets import SsmSecrets
    from functions.aws.topic import Topic
    from functions.aws.webhooks import HttpsWebhooks
    from functions.notify import Notifier

    log, session, clock = _log("notify", settings.stack), _session(settings.region), SystemClock()
    topic = None if settings.topic is None else Topic(clients.patient(session, "sns"), settings.topic)
    secrets = SsmSecrets(clients.patient(session, "ssm"), clock.monotonic)
    return NotifyParts(Notifier(topic, settings.webhooks, HttpsWebhooks(), secrets, clock, log), log)


def _ports(function: str, settings: BatchSettings, session: Session, log: FunctionLog) -> BatchPorts:
    from functions.aws import clients
    from functions.aws.batch_telemetry import EmfCounts
    from functions.aws.job_store import DynamoJobs
    from functions.aws.notices import NoNotices, QueuedNotices
    from functions.aws.objects import S3Objects
    from functions.aws.run_store import DynamoRuns
    from functions.aws.transforms import SageMakerTransforms
    from functions.aws.work_queue import SqsQueue
    from functions.batch_ports import BatchPorts

    def client(service: str) -> Any:
        return clients.patient(session, service)

    tables, queues, clock = client("dynamodb"), client("sqs"), SystemClock()
    objects = S3Objects(client("s3"), settings.data_bucket)
    tags = {**_TAGS, "stack": settings.stack}
    told = settings.notices_queue
    return BatchPorts(
        jobs=DynamoJobs(tables, settings.jobs_table, settings.retention_s),
        runs=DynamoRuns(tables, settings.runs_table, settings.retention_s),
        objects=objects,
        work=SqsQueue(queues, settings.work_queue, objects),
        promotions=SqsQueue(queues, settings.promote_queue, objects),
        transforms=SageMakerTransforms(
            lambda: client("sagemaker"), bucket=settings.data_bucket, key=settings.data_key, tags=tags
        ),
        notices=NoNotices() if told is None else QueuedNotices(queues, told, settings.channels, log),
        telemetry=EmfCounts(settings.stack, METRICS_NAMESPACE, function, clock.now),
        clock=clock,
        log=log,
    )


def _session(region: str) -> Session:
    from functions.aws import clients

    session = clients.session()
    session.set_config_variable("region", region)
    return session


def _log(function: str, stack: str) -> FunctionLog:
    from aws_lambda_powertools import Logger

    logger = Logger(service=function)
    logger.append_keys(stack=stack)
    return logger


def _new_id() -> str:
    return urandom(8).hex()
