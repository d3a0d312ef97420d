"""Wires the nightly recheck's two functions. Called once per process, at the first invocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from functions.bootstrap import SystemClock, read_topology
from functions.core.recheck_run import Folders
from functions.core.topology import BatchLane, Topology
from functions.recheck_scope import Scope
from functions.settings import METRICS_NAMESPACE, SettingsError

if TYPE_CHECKING:
    from functions.nightly_settings import NightlySettings
    from functions.ports import Log
    from functions.prepare import Prepare
    from functions.report import Reporter

_COMPONENT: Final = "nightly"


@dataclass(frozen=True, slots=True)
class PrepareParts:
    """What the `prepare` handler works with."""

    prepare: Prepare
    log: Log


@dataclass(frozen=True, slots=True)
class ReportParts:
    """What the `report` handler works with."""

    reporter: Reporter
    log: Log


def prepare_parts(settings: NightlySettings) -> PrepareParts:
    """Wire `prepare`."""
    from aws_lambda_powertools import Logger

    from functions.aws import clients
    from functions.aws.objects import S3Objects
    from functions.aws.transforms import SageMakerTransforms
    from functions.prepare import Prepare

    log = Logger(service="prepare")
    log.append_keys(stack=settings.stack)
    session = clients.session()
    objects = S3Objects(clients.patient(session, "s3"), settings.data_bucket)
    tags = {
        "project": "inferlane",
        "stack": settings.stack,
        "component": _COMPONENT,
        "model": settings.heavy_model,
    }
    transforms = SageMakerTransforms(
        lambda: clients.patient(session, "sagemaker"), bucket=settings.data_bucket, key=settings.data_key, tags=tags
    )
    return PrepareParts(Prepare(scope_of(settings), objects, transforms, SystemClock(), log), log)


def report_parts(settings: NightlySettings) -> ReportParts:
    """Wire `report`."""
    from aws_lambda_powertools import Logger

    from functions.aws import clients
    from functions.aws.objects import S3Objects
    from functions.aws.recheck_telemetry import EmfRecheck
    from functions.aws.topic import Topic
    from functions.aws.transforms import SageMakerTransforms
    from functions.report import Reporter

    log = Logger(service="report")
    log.append_keys(stack=settings.stack)
    session = clients.session()
    reporter = Reporter(
        scope_of(settings),
        S3Objects(clients.patient(session, "s3"), settings.data_bucket),
        SageMakerTransforms(
            lambda: clients.patient(session, "sagemaker"), bucket=settings.data_bucket, key=settings.data_key, tags={}
        ),
        EmfRecheck(settings.stack, METRICS_NAMESPACE),
        None if settings.topic is None else Topic(clients.patient(session, "sns"), settings.topic),
        SystemClock(),
        log,
        examples=settings.examples,
    )
    return ReportParts(reporter, log)


def scope_of(settings: NightlySettings) -> Scope:
    """Which recheck it is. Raises `SettingsError` when the topology has no batch lane to run it on."""
    topology: Topology = read_topology(settings.topology_file)
    lane = topology.models.get(settings.heavy_model, {}).get("batch")
    if not isinstance(lane, BatchLane) or lane.model_name is None or lane.instance_type is None:
        raise SettingsError(f"the topology has no batch lane of model {settings.heavy_model!r} that can be started")
    return Scope(
        stack=settings.stack,
        light_model=settings.light_model,
        heavy_model=settings.heavy_model,
        zone=settings.time_zone,
        passing=settings.passing,
        folders=Folders(settings.capture_prefix, settings.nightly_prefix, settings.light_model),
        lane=lane,
    )
