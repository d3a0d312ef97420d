"""What a function reads from its environment: names, types, defaults. It and its like alone read `os.environ`.

The Pulumi program writes the same names through `router_environment()` and its like, so a name exists once. Nothing is
read at import. What the batch lane and the nightly recheck read is in `batch_settings` and `nightly_settings`: a new
router need not import them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path


class SettingsError(ValueError):
    """A variable is missing or malformed; the message names it."""


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The execution role's keys, which Lambda puts into the environment and which last as long as it does."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(repr=False)

    def get_frozen_credentials(self) -> AccessKeys:
        """Themselves: they do not change."""
        return self


@dataclass(frozen=True, slots=True)
class AcceptanceSettings:
    """Where an accepted job goes."""

    jobs_table: str
    work_queue: str
    """URL of the SQS queue."""
    data_bucket: str
    """S3 bucket of what a message cannot carry."""
    promote_queue: str | None = None
    """Likewise, of what cannot wait for batch; None: nothing that is accepted here is urgent."""
    dynamodb_url: str | None = None
    sqs_url: str | None = None
    s3_url: str | None = None
    """Base URLs; None means the region's public endpoints."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """The `route` function's settings."""

    stack: str
    """Name of the stack, in every log line and metric."""
    policy_application: str
    policy_environment: str
    policy_profile: str
    """AppConfig identifiers of the policy document (JSON)."""
    region: str
    topology_file: Path
    """`topology.json`, shipped in the deployment package: it changes with the deploy that changes the lanes."""
    snapshot_ttl_s: float = 15.0
    """How long one reading of CloudWatch serves this instance, seconds."""
    metric_period_s: int = 60
    """Period of the lanes' utilization metrics, seconds (60 unless MetricsConfig says otherwise)."""
    policy_ttl_s: float = 30.0
    """How long a fetched policy is served before AppConfig is asked again, seconds."""
    sagemaker_runtime_url: str | None = None
    """Base URL of the SageMaker runtime; None means the region's public endpoint."""
    appconfig_url: str | None = None
    dynamodb_url: str | None = None
    """Base URLs of AppConfigData and DynamoDB, likewise."""
    keys: AccessKeys | None = None
    """None: wherever the SDK finds them."""
    snapshot_table: str | None = None
    """DynamoDB table (partition key `pk`) by which instances share snapshot and failure marks; None: each is alone."""
    acceptance: AcceptanceSettings | None = None
    """How a request that can wait is taken in; None: the stack has no batch lane."""
    capture_stream: str | None = None
    """Firehose stream that takes captured traffic; None: nothing is captured."""
    firehose_url: str | None = None
    """Base URL of Firehose; None means the region's public endpoint."""


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """The `authorize` function's settings (stacks with `auth: api_key`)."""

    keys_table: str
    """DynamoDB table: partition key `key_hash` (hex SHA-256 of the key), attributes `key_id`, optional `disabled`."""
    region: str
    dynamodb_url: str | None = None
    """Base URL of DynamoDB; None means the region's public endpoint."""
    keys: AccessKeys | None = None
    """None: wherever the SDK finds them."""


PREFIX = "INFERLANE_"
"""Of every variable that is ours."""
TOPOLOGY_FILE = "topology.json"
"""Where the topology lies inside the deployment package."""
METRICS_NAMESPACE = "Inferlane"
"""CloudWatch namespace of everything we emit."""
JOBS_ACCEPTED = "JobsAccepted"
"""Jobs that were promised an answer (202), by {stack}: one for each new record, none for one that was there already."""
JOBS_PROMOTED = "JobsPromoted"
"""Jobs that another lane is to answer, since batch would come too late, by {stack}."""
CAPTURE_FAILURES = "CaptureFailures"
"""Captured requests that could not be handed over in time, by {stack}."""


def router_environment(
    *,
    stack: str,
    policy_application: str,
    policy_environment: str,
    policy_profile: str,
    metric_period_s: int = 60,
    snapshot_ttl_s: float = 15.0,
    policy_ttl_s: float = 30.0,
    log_level: str = "INFO",
    snapshot_table: str | None = None,
    jobs_table: str | None = None,
    work_queue: str | None = None,
    promote_queue: str | None = None,
    data_bucket: str | None = None,
    capture_stream: str | None = None,
) -> dict[str, str]:
    """The environment the Pulumi program gives the `route` function; `read_router` reads it back.

    `jobs_table`, the queues (URLs) and `data_bucket` go together: a stack with a batch lane has them all.
    """
    optional = {
        f"{PREFIX}SNAPSHOT_TABLE": snapshot_table,
        f"{PREFIX}JOBS_TABLE": jobs_table,
        f"{PREFIX}WORK_QUEUE": work_queue,
        f"{PREFIX}PROMOTE_QUEUE": promote_queue,
        f"{PREFIX}DATA_BUCKET": data_bucket,
        f"{PREFIX}CAPTURE_STREAM": capture_stream,
    }
    return {
        f"{PREFIX}STACK": stack,
        f"{PREFIX}POLICY_APPLICATION": policy_application,
        f"{PREFIX}POLICY_ENVIRONMENT": policy_environment,
        f"{PREFIX}POLICY_PROFILE": policy_profile,
        f"{PREFIX}METRIC_PERIOD_S": f"{metric_period_s:d}",
        f"{PREFIX}SNAPSHOT_TTL_S": f"{snapshot_ttl_s:g}",
        f"{PREFIX}POLICY_TTL_S": f"{policy_ttl_s:g}",
        "POWERTOOLS_SERVICE_NAME": "route",
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": log_level,
        **{name: value for name, value in optional.items() if value is not None},
    }


def authorizer_environment(*, keys_table: str, log_level: str = "INFO") -> dict[str, str]:
    """The environment the Pulumi program gives the `authorize` function; `read_authorizer` reads it back."""
    return {
        f"{PREFIX}KEYS_TABLE": keys_table,
        "POWERTOOLS_SERVICE_NAME": "authorize",
        "POWERTOOLS_LOG_LEVEL": log_level,
    }


def read_router(environ: Mapping[str, str] | None = None) -> RouterSettings:
    """Read the `route` function's settings. Raises `SettingsError` naming the first bad variable."""
    env = os.environ if environ is None else environ
    root = env.get("LAMBDA_TASK_ROOT", ".")
    return RouterSettings(
        stack=read_text(env, f"{PREFIX}STACK"),
        policy_application=read_text(env, f"{PREFIX}POLICY_APPLICATION"),
        policy_environment=read_text(env, f"{PREFIX}POLICY_ENVIRONMENT"),
        policy_profile=read_text(env, f"{PREFIX}POLICY_PROFILE"),
        region=read_text(env, "AWS_REGION"),
        topology_file=Path(root) / TOPOLOGY_FILE,
        snapshot_ttl_s=read_positive(env, f"{PREFIX}SNAPSHOT_TTL_S", 15.0),
        metric_period_s=int(read_positive(env, f"{PREFIX}METRIC_PERIOD_S", 60.0)),
        policy_ttl_s=read_positive(env, f"{PREFIX}POLICY_TTL_S", 30.0),
        sagemaker_runtime_url=read_url(env, "SAGEMAKER_RUNTIME"),
        appconfig_url=read_url(env, "APPCONFIGDATA"),
        dynamodb_url=read_url(env, "DYNAMODB"),
        keys=read_keys(env),
        snapshot_table=env.get(f"{PREFIX}SNAPSHOT_TABLE") or None,
        acceptance=_read_deferral(env) if env.get(f"{PREFIX}JOBS_TABLE") else None,
        capture_stream=env.get(f"{PREFIX}CAPTURE_STREAM") or None,
        firehose_url=read_url(env, "FIREHOSE"),
    )


def read_authorizer(environ: Mapping[str, str] | None = None) -> AuthorizerSettings:
    """Read the `authorize` function's settings. Raises `SettingsError` naming the first bad variable."""
    env = os.environ if environ is None else environ
    return AuthorizerSettings(
        keys_table=read_text(env, f"{PREFIX}KEYS_TABLE"),
        region=read_text(env, "AWS_REGION"),
        dynamodb_url=read_url(env, "DYNAMODB"),
        keys=read_keys(env),
    )


def _read_deferral(env: Mapping[str, str]) -> AcceptanceSettings:
    """Where the router's jobs go, of which some are urgent."""
    return replace(read_acceptance(env), promote_queue=read_text(env, f"{PREFIX}PROMOTE_QUEUE"))


def read_acceptance(env: Mapping[str, str]) -> AcceptanceSettings:
    """Where accepted jobs go, none of them urgent. Raises `SettingsError`."""
    return AcceptanceSettings(
        jobs_table=read_text(env, f"{PREFIX}JOBS_TABLE"),
        work_queue=read_text(env, f"{PREFIX}WORK_QUEUE"),
        data_bucket=read_text(env, f"{PREFIX}DATA_BUCKET"),
        dynamodb_url=read_url(env, "DYNAMODB"),
        sqs_url=read_url(env, "SQS"),
        s3_url=read_url(env, "S3"),
    )


def read_url(env: Mapping[str, str], service: str) -> str | None:
    """The AWS SDKs' own variables, most specific first."""
    return env.get(f"AWS_ENDPOINT_URL_{service}") or env.get("AWS_ENDPOINT_URL") or None


def read_keys(env: Mapping[str, str]) -> AccessKeys | None:
    """The execution role's, where Lambda gave them."""
    access, secret = env.get("AWS_ACCESS_KEY_ID"), env.get("AWS_SECRET_ACCESS_KEY")
    return AccessKeys(access, secret, env.get("AWS_SESSION_TOKEN") or None) if access and secret else None


def read_text(env: Mapping[str, str], name: str) -> str:
    """A variable that must be there. Raises `SettingsError`."""
    value = env.get(name, "")
    if not value:
        raise SettingsError(f"environment variable {name} is not set")
    return value


def read_positive(env: Mapping[str, str], name: str, default: float) -> float:
    """A number above 0. Raises `SettingsError`."""
    text = env.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError as error:
        raise SettingsError(f"environment variable {name} is not a number: {text!r}") from error
    if not 0 < value < float("inf"):
        raise SettingsError(f"environment variable {name} must be positive: {text!r}")
    return value
