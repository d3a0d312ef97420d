"""What the batch lane's functions read from their environment, and the names of what they count.

As in `settings`: a `…_environment()` that the Pulumi program calls, and the `read_…()` that reads it back. `collect`,
`settle`, `promote` and `audit` work on the same things and have one set; `jobs` and `notify` have theirs. Secrets are
not among them: a webhook's is named, and read from the parameter store when it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from functions.settings import (
    METRICS_NAMESPACE,
    PREFIX,
    TOPOLOGY_FILE,
    AcceptanceSettings,
    AccessKeys,
    SettingsError,
    read_acceptance,
    read_keys,
    read_positive,
    read_text,
    read_url,
)

Channel = Literal["topic", "webhook"]
"""How those are told who asked to be told of ended jobs."""
CHANNELS: Final[tuple[Channel, ...]] = ("topic", "webhook")

JOBS_OVERDUE: Final = "JobsOverdue"
JOBS_UNACCOUNTED: Final = "JobsUnaccounted"
RUN_UNACCOUNTED: Final = "RunUnaccounted"
STEPS_PUT_OFF: Final = "StepsPutOff"
"""What alarms watch, by {stack}; all but the last never anything but 0. `batch_ports.Count` says what each means."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The settings of `collect`, `settle`, `promote` and `audit`."""

    stack: str
    region: str
    topology_file: Path
    jobs_table: str
    """DynamoDB: hash `tenant`, range `id`, index `by_time` (hash `tenant`, range `accepted_at`), TTL `expires_at`."""
    runs_table: str
    """DynamoDB: hash `name`, sparse index `open` (hash `open`, range `name`), TTL `expires_at`."""
    work_queue: str
    promote_queue: str
    """SQS URLs."""
    data_bucket: str
    data_key: str | None = None
    """ARN of the key that transform jobs encrypt their output with; None: the bucket's default."""
    notices_queue: str | None = None
    """SQS URL; None: nobody asked to be told."""
    channels: tuple[Channel, ...] = ()
    retention_s: float = 7 * 86_400.0
    """How long an ended job's record and a settled run's stay."""
    sagemaker_runtime_url: str | None = None
    keys: AccessKeys | None = None
    """None: wherever the SDK finds them."""


@dataclass(frozen=True, slots=True)
class JobsSettings:
    """The `jobs` function's settings."""

    stack: str
    region: str
    topology_file: Path
    policy_application: str
    policy_environment: str
    policy_profile: str
    """AppConfig identifiers: the policy says whose a call is."""
    acceptance: AcceptanceSettings
    runs_table: str
    datasets: tuple[str, ...] = ()
    """S3 URIs of prefixes under which a caller's data sets may lie; `{tenant}` stands for the caller's tenant."""
    retention_s: float = 7 * 86_400.0
    link_s: int = 900
    """How long a link to a result works."""
    policy_ttl_s: float = 30.0
    appconfig_url: str | None = None
    keys: AccessKeys | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where a tenant is told, and the parameter that holds the secret which its notices are signed with."""

    url: str
    secret_parameter: str


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The `notify` function's settings."""

    stack: str
    region: str
    topic: str | None
    """ARN of the SNS topic."""
    webhooks: Mapping[str, Webhook]
    """By tenant."""


def batch_environment(
    function: Literal["collect", "settle", "promote", "audit"],
    *,
    stack: str,
    jobs_table: str,
    runs_table: str,
    work_queue: str,
    promote_queue: str,
    data_bucket: str,
    data_key: str | None = None,
    notices_queue: str | None = None,
    channels: Sequence[Channel] = (),
    retention_days: float = 7,
    log_level: str = "INFO",
) -> dict[str, str]:
    """The environment the Pulumi program gives these four; `read_batch` reads it back. Queues are URLs."""
    return written(
        function,
        log_level,
        STACK=stack,
        JOBS_TABLE=jobs_table,
        RUNS_TABLE=runs_table,
        WORK_QUEUE=work_queue,
        PROMOTE_QUEUE=promote_queue,
        DATA_BUCKET=data_bucket,
        DATA_KEY=data_key,
        NOTICES_QUEUE=notices_queue,
        CHANNELS=",".join(channels) or None,
        RETENTION_DAYS=f"{retention_days:g}",
    )


def jobs_environment(
    *,
    stack: str,
    policy_application: str,
    policy_environment: str,
    policy_profile: str,
    jobs_table: str,
    runs_table: str,
    work_queue: str,
    data_bucket: str,
    datasets: Sequence[str] = (),
    retention_days: float = 7,
    link_s: int = 900,
    policy_ttl_s: float = 30.0,
    log_level: str = "INFO",
) -> dict[str, str]:
    """The environment the Pulumi program gives the `jobs` function; `read_jobs` reads it back."""
    return written(
        "jobs",
        log_level,
        STACK=stack,
        POLICY_APPLICATION=policy_application,
        POLICY_ENVIRONMENT=policy_environment,
        POLICY_PROFILE=policy_profile,
        JOBS_TABLE=jobs_table,
        RUNS_TABLE=runs_table,
        WORK_QUEUE=work_queue,
        DATA_BUCKET=data_bucket,
        DATASETS=json.dumps(list(datasets), separators=(",", ":")),
        RETENTION_DAYS=f"{retention_days:g}",
        LINK_S=f"{link_s:d}",
        POLICY_TTL_S=f"{policy_ttl_s:g}",
    )


def notify_environment(
    *, stack: str, topic: str | None, webhooks: Mapping[str, Webhook], log_level: str = "INFO"
) -> dict[str, str]:
    """The environment the Pulumi program gives the `notify` function; `read_notify` reads it back."""
    told = {tenant: {"url": hook.url, "secret_parameter": hook.secret_parameter} for tenant, hook in webhooks.items()}
    return written("notify", log_level, STACK=stack, TOPIC=topic, WEBHOOKS=json.dumps(told, separators=(",", ":")))


def read_batch(environ: Mapping[str, str] | None = None) -> BatchSettings:
    """Read the settings of `collect`, `settle`, `promote` and `audit`. Raises `SettingsError`, as all readers here."""
    env = os.environ if environ is None else environ
    return BatchSettings(
        stack=read_text(env, f"{PREFIX}STACK"),
        region=read_text(env, "AWS_REGION"),
        topology_file=topology_file(env),
        jobs_table=read_text(env, f"{PREFIX}JOBS_TABLE"),
        runs_table=read_text(env, f"{PREFIX}RUNS_TABLE"),
        work_queue=read_text(env, f"{PREFIX}WORK_QUEUE"),
        promote_queue=read_text(env, f"{PREFIX}PROMOTE_QUEUE"),
        data_bucket=read_text(env, f"{PREFIX}DATA_BUCKET"),
        data_key=env.get(f"{PREFIX}DATA_KEY") or None,
        notices_queue=env.get(f"{PREFIX}NOTICES_QUEUE") or None,
        channels=_channels(env),
        retention_s=read_positive(env, f"{PREFIX}RETENTION_DAYS", 7.0) * 86_400,
        sagemaker_runtime_url=read_url(env, "SAGEMAKER_RUNTIME"),
        keys=read_keys(env),
    )


def read_jobs(environ: Mapping[str, str] | None = None) -> JobsSettings:
    """Read the `jobs` function's settings."""
    env = os.environ if environ is None else environ
    return JobsSettings(
        stack=read_text(env, f"{PREFIX}STACK"),
        region=read_text(env, "AWS_REGION"),
        topology_file=topology_file(env),
        policy_application=read_text(env, f"{PREFIX}POLICY_APPLICATION"),
        policy_environment=read_text(env, f"{PREFIX}POLICY_ENVIRONMENT"),
        policy_profile=read_text(env, f"{PREFIX}POLICY_PROFILE"),
        acceptance=read_acceptance(env),
        runs_table=read_text(env, f"{PREFIX}RUNS_TABLE"),
        datasets=_datasets(env),
        retention_s=read_positive(env, f"{PREFIX}RETENTION_DAYS", 7.0) * 86_400,
        link_s=int(read_positive(env, f"{PREFIX}LINK_S", 900.0)),
        policy_ttl_s=read_positive(env, f"{PREFIX}POLICY_TTL_S", 30.0),
        appconfig_url=read_url(env, "APPCONFIGDATA"),
        keys=read_keys(env),
    )


def read_notify(environ: Mapping[str, str] | None = None) -> NotifySettings:
    """Read the `notify` function's settings."""
    env = os.environ if environ is None else environ
    return NotifySettings(
        stack=read_text(env, f"{PREFIX}STACK"),
        region=read_text(env, "AWS_REGION"),
        topic=env.get(f"{PREFIX}TOPIC") or None,
        webhooks=_webhooks(env),
    )


def written(function: str, log_level: str, **ours: str | None) -> dict[str, str]:
    """A function's environment: our variables, by their names without the prefix, and what its logger wants."""
    return {
        **{f"{PREFIX}{name}": value for name, value in ours.items() if value is not None},
        "POWERTOOLS_SERVICE_NAME": function,
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": log_level,
    }


def topology_file(env: Mapping[str, str]) -> Path:
    """Where the topology lies beside the code."""
    return Path(env.get("LAMBDA_TASK_ROOT", ".")) / TOPOLOGY_FILE


def _channels(env: Mapping[str, str]) -> tuple[Channel, ...]:
    name = f"{PREFIX}CHANNELS"
    asked = [part for part in env.get(name, "").split(",") if part]
    if unknown := sorted(set(asked) - set(CHANNELS)):
        raise SettingsError(f"environment variable {name} names an unknown channel: {unknown[0]!r}")
    return tuple(channel for channel in CHANNELS if channel in asked)


def _datasets(env: Mapping[str, str]) -> tuple[str, ...]:
    name = f"{PREFIX}DATASETS"
    found = _json(env, name, "[]")
    if not isinstance(found, list) or not all(isinstance(uri, str) and uri.startswith("s3://") for uri in found):
        raise SettingsError(f"environment variable {name} is not a list of S3 URIs")
    return tuple(found)


def _webhooks(env: Mapping[str, str]) -> dict[str, Webhook]:
    name = f"{PREFIX}WEBHOOKS"
    found = _json(env, name, "{}")
    webhooks: dict[str, Webhook] = {}
    for tenant, hook in found.items() if isinstance(found, dict) else [("", None)]:
        url, secret = (hook.get("url"), hook.get("secret_parameter")) if isinstance(hook, dict) else (None, None)
        if not isinstance(url, str) or not url.startswith("https://") or not isinstance(secret, str) or not secret:
            raise SettingsError(
                f"environment variable {name} must give each tenant an https url and a secret_parameter"
            )
        webhooks[tenant] = Webhook(url, secret)
    return webhooks


def _json(env: Mapping[str, str], name: str, default: str) -> object:
    try:
        found: object = json.loads(env.get(name) or default)
    except ValueError as error:
        raise SettingsError(f"environment variable {name} is not JSON") from error
    return found
