"""The only wiring place: which adapter stands behind which port. Called once per process, at the first invocation.

Imports of AWS libraries are inside the functions: importing a handler costs nothing and needs no environment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING, Final

from functions.core.topology import Topology, TopologyError
from functions.settings import (
    METRICS_NAMESPACE,
    AcceptanceSettings,
    AuthorizerSettings,
    RouterSettings,
    SettingsError,
)

if TYPE_CHECKING:
    from botocore.session import Session

    from functions.aws.acceptance import DirectAcceptance
    from functions.aws.appconfig import AppConfigPolicies
    from functions.aws.cloudwatch import CloudWatchSignals
    from functions.aws.signing import Credentials
    from functions.batch_settings import JobsSettings
    from functions.capture import Capturer
    from functions.core.snapshot import Snapshot
    from functions.defer import Deferral
    from functions.jobs import Jobs
    from functions.ports import Clock, FailureMarks, FunctionLog, KeyStore, Log, SignalSource, Telemetry
    from functions.router import Router


_POLICY_S: Final = 2.0
"""Longest wait for AppConfig; the last good policy serves as well."""
_KEY_S: Final = 8.0
"""Longest wait for the row of a key: nothing else can vouch for the caller, and the gateway waits ten seconds."""
_KEY_ATTEMPTS: Final = 3
"""To read it: what passes by itself, a throttled read or a lost connection, must not be answered 500."""
_SHARED_S: Final = 0.8
"""Longest wait for what instances tell each other: DynamoDB answers in milliseconds, and the last value serves too."""
_ACCEPT_S: Final = 5.0
"""Longest wait for queue, table and bucket when whoever takes work in says nothing else."""


class SystemClock:
    """The machine's clock (see `ports.Clock`)."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.perf_counter()


@dataclass(frozen=True, slots=True)
class RouteParts:
    """What the `route` handler works with."""

    router: Router
    telemetry: Telemetry
    log: Log


@dataclass(frozen=True, slots=True)
class JobsParts:
    """What the `jobs` handler works with."""

    jobs: Jobs
    log: FunctionLog


@dataclass(frozen=True, slots=True)
class AuthorizeParts:
    """What the `authorize` handler works with."""

    keys: KeyStore
    log: Log


def route_parts(settings: RouterSettings) -> RouteParts:
    """Wire the router."""
    from aws_lambda_powertools import Logger

    from functions.aws import clients
    from functions.aws.cloudwatch import CloudWatchSignals
    from functions.aws.sagemaker_runtime import SageMakerRuntime
    from functions.aws.telemetry import EmfTelemetry
    from functions.carry import carried
    from functions.router import Router

    logger = Logger(service="route")
    logger.append_keys(stack=settings.stack)
    session = cache(clients.session)
    keys = _credentials(settings.keys, session)
    topology = read_topology(settings.topology_file)
    policies = _policies(settings, keys, logger)
    clock = SystemClock()

    def carry(fresh: Snapshot, last: Snapshot | None, now: float) -> Snapshot:
        policy = policies.policy(now)
        return carried(fresh, last, {} if policy is None else policy.signals, now)

    metrics = CloudWatchSignals(
        clients.cloudwatch(session),
        topology,
        period_s=settings.metric_period_s,
        ttl_s=settings.snapshot_ttl_s,
        log=logger,
        carry=carry,
    )
    signals, marks = _shared(settings, keys, metrics, logger)
    runtime = SageMakerRuntime(settings.region, keys, settings.sagemaker_runtime_url)
    router = Router(
        topology,
        policies,
        signals,
        runtime,
        clock,
        marks,
        deferral=_deferral(settings, keys, clock, logger),
        capturer=_capturer(settings, keys, clock, logger),
    )
    return RouteParts(router, EmfTelemetry(settings.stack, METRICS_NAMESPACE), logger)


def _policies(settings: RouterSettings | JobsSettings, keys: Credentials, log: Log) -> AppConfigPolicies:
    from functions.aws.appconfig import AppConfigPolicies
    from functions.aws.direct import Service

    return AppConfigPolicies(
        Service("appconfig", "appconfigdata", settings.region, keys, url=settings.appconfig_url, timeout_s=_POLICY_S),
        application=settings.policy_application,
        environment=settings.policy_environment,
        profile=settings.policy_profile,
        ttl_s=settings.policy_ttl_s,
        log=log,
    )


def _deferral(settings: RouterSettings, keys: Credentials, clock: Clock, log: Log) -> Callable[[], Deferral] | None:
    """How requests become jobs, loaded with the first of them; None in a stack without a batch lane."""
    where = settings.acceptance
    if where is None:
        return None

    @cache
    def load() -> Deferral:
        from functions.defer import Deferral

        return Deferral(acceptance(where, settings.region, keys), clock, _job_id, log)

    return load


def _capturer(settings: RouterSettings, keys: Credentials, clock: Clock, log: Log) -> Callable[[], Capturer] | None:
    """How traffic is kept, loaded with the first request that is to be; None in a stack that keeps none."""
    stream = settings.capture_stream
    if stream is None:
        return None

    @cache
    def load() -> Capturer:
        from functions.aws.direct import Service
        from functions.aws.firehose import FirehoseSink
        from functions.capture import LONGEST_S, Capturer

        url = settings.firehose_url
        service = Service("firehose", "firehose", settings.region, keys, url=url, timeout_s=LONGEST_S)
        return Capturer(FirehoseSink(service, stream), clock, log)

    return load


def _job_id() -> str:
    return urandom(16).hex()


def jobs_parts(settings: JobsSettings) -> JobsParts:
    """Wire the tenants' view of their jobs."""
    from aws_lambda_powertools import Logger

    from functions.aws import clients
    from functions.aws.batch_telemetry import EmfCounts
    from functions.aws.job_store import DynamoJobs
    from functions.aws.objects import S3Objects
    from functions.aws.run_store import DynamoRuns
    from functions.jobs import Jobs, Shelf

    logger = Logger(service="jobs")
    logger.append_keys(stack=settings.stack)
    session = clients.session()
    keys = _credentials(settings.keys, lambda: session)
    clock = SystemClock()
    where = settings.acceptance
    tables = clients.prompt(session, "dynamodb")
    shelf = Shelf(
        DynamoJobs(tables, where.jobs_table, settings.retention_s),
        DynamoRuns(tables, settings.runs_table, settings.retention_s),
        S3Objects(clients.prompt(session, "s3"), where.data_bucket),
    )
    jobs = Jobs(
        read_topology(settings.topology_file),
        _policies(settings, keys, logger),
        shelf,
        acceptance(where, settings.region, keys),
        clock,
        _job_id,
        EmfCounts(settings.stack, METRICS_NAMESPACE, "jobs", clock.now),
        logger,
        datasets=settings.datasets,
        link_s=settings.link_s,
    )
    return JobsParts(jobs, logger)


def _shared(
    settings: RouterSettings, keys: Credentials, metrics: CloudWatchSignals, log: Log
) -> tuple[SignalSource, FailureMarks | None]:
    """Where snapshot and failure marks come from: shared through a table where there is one, else each for itself."""
    if settings.snapshot_table is None:
        return metrics, None
    from functions.aws.direct import Dynamo, Service
    from functions.aws.failure_marks import SharedMarks
    from functions.aws.snapshot_store import SharedSignals

    items = Dynamo(
        Service("dynamodb", "dynamodb", settings.region, keys, url=settings.dynamodb_url, timeout_s=_SHARED_S)
    )
    table, owner = settings.snapshot_table, urandom(8).hex()
    return (
        SharedSignals(items, table, metrics.read, owner=owner, ttl_s=settings.snapshot_ttl_s, log=log),
        SharedMarks(items, table, owner=owner, log=log),
    )


def acceptance(settings: AcceptanceSettings, region: str, keys: Credentials) -> DirectAcceptance:
    """How work that may wait is taken in. Nothing is connected yet."""
    from functions.aws.acceptance import DirectAcceptance
    from functions.aws.direct import Service

    def service(name: str, host: str, url: str | None) -> Service:
        return Service(name, host, region, keys, url=url, timeout_s=_ACCEPT_S)

    bucket, s3_url = settings.data_bucket, settings.s3_url
    return DirectAcceptance(
        service("dynamodb", "dynamodb", settings.dynamodb_url),
        settings.jobs_table,
        service("sqs", "sqs", settings.sqs_url),
        settings.work_queue,
        settings.promote_queue,
        service("s3", f"{bucket}.s3" if s3_url is None else "s3", s3_url),
        objects_path="" if s3_url is None else f"/{bucket}",
    )


def authorize_parts(settings: AuthorizerSettings) -> AuthorizeParts:
    """Wire the authorizer."""
    from aws_lambda_powertools import Logger

    from functions.aws import clients
    from functions.aws.direct import Dynamo, Service
    from functions.aws.keys import DynamoKeys

    keys = _credentials(settings.keys, clients.session)
    table = Service(
        "dynamodb",
        "dynamodb",
        settings.region,
        keys,
        url=settings.dynamodb_url,
        timeout_s=_KEY_S,
        attempts=_KEY_ATTEMPTS,
    )
    return AuthorizeParts(DynamoKeys(Dynamo(table), settings.keys_table), Logger(service="authorize"))


def _credentials(given: Credentials | None, session: Callable[[], Session]) -> Credentials:
    """The execution role's, which Lambda gives in the environment; else wherever the SDK finds them."""
    found: Credentials | None = given or session().get_credentials()
    if found is None:
        raise SettingsError("no AWS credentials in the environment")
    return found


def read_topology(file: Path) -> Topology:
    """The topology shipped beside the code. Raises `SettingsError` naming the file, or `TopologyError`."""
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise SettingsError(f"the topology {file.name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise TopologyError((), f"{file.name} is not JSON: {error}") from error
    return Topology.from_json(document)
