"""What a function reads from its environment: names, types, defaults. The only reader of `os.environ`.

The Pulumi program writes the same names through `environment()`, so a name exists once. Nothing is read at import.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
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


_PREFIX = "INFERLANE_"
TOPOLOGY_FILE = "topology.json"
"""Where the topology lies inside the deployment package."""
METRICS_NAMESPACE = "Inferlane"
"""CloudWatch namespace of everything we emit."""


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
) -> dict[str, str]:
    """The environment the Pulumi program gives the `route` function; `read_router` reads it back."""
    shared = {} if snapshot_table is None else {f"{_PREFIX}SNAPSHOT_TABLE": snapshot_table}
    return {
        f"{_PREFIX}STACK": stack,
        f"{_PREFIX}POLICY_APPLICATION": policy_application,
        f"{_PREFIX}POLICY_ENVIRONMENT": policy_environment,
        f"{_PREFIX}POLICY_PROFILE": policy_profile,
        f"{_PREFIX}METRIC_PERIOD_S": f"{metric_period_s:d}",
        f"{_PREFIX}SNAPSHOT_TTL_S": f"{snapshot_ttl_s:g}",
        f"{_PREFIX}POLICY_TTL_S": f"{policy_ttl_s:g}",
        "POWERTOOLS_SERVICE_NAME": "route",
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": log_level,
        **shared,
    }


def authorizer_environment(*, keys_table: str, log_level: str = "INFO") -> dict[str, str]:
    """The environment the Pulumi program gives the `authorize` function; `read_authorizer` reads it back."""
    return {
        f"{_PREFIX}KEYS_TABLE": keys_table,
        "POWERTOOLS_SERVICE_NAME": "authorize",
        "POWERTOOLS_LOG_LEVEL": log_level,
    }


def read_router(environ: Mapping[str, str] | None = None) -> RouterSettings:
    """Read the `route` function's settings. Raises `SettingsError` naming the first bad variable."""
    env = os.environ if environ is None else environ
    root = env.get("LAMBDA_TASK_ROOT", ".")
    return RouterSettings(
        stack=_text(env, f"{_PREFIX}STACK"),
        policy_application=_text(env, f"{_PREFIX}POLICY_APPLICATION"),
        policy_environment=_text(env, f"{_PREFIX}POLICY_ENVIRONMENT"),
        policy_profile=_text(env, f"{_PREFIX}POLICY_PROFILE"),
        region=_text(env, "AWS_REGION"),
        topology_file=Path(root) / TOPOLOGY_FILE,
        snapshot_ttl_s=_positive(env, f"{_PREFIX}SNAPSHOT_TTL_S", 15.0),
        metric_period_s=int(_positive(env, f"{_PREFIX}METRIC_PERIOD_S", 60.0)),
        policy_ttl_s=_positive(env, f"{_PREFIX}POLICY_TTL_S", 30.0),
        sagemaker_runtime_url=_url(env, "SAGEMAKER_RUNTIME"),
        appconfig_url=_url(env, "APPCONFIGDATA"),
        dynamodb_url=_url(env, "DYNAMODB"),
        keys=_keys(env),
        snapshot_table=env.get(f"{_PREFIX}SNAPSHOT_TABLE") or None,
    )


def read_authorizer(environ: Mapping[str, str] | None = None) -> AuthorizerSettings:
    """Read the `authorize` function's settings. Raises `SettingsError` naming the first bad variable."""
    env = os.environ if environ is None else environ
    return AuthorizerSettings(
        keys_table=_text(env, f"{_PREFIX}KEYS_TABLE"),
        region=_text(env, "AWS_REGION"),
        dynamodb_url=_url(env, "DYNAMODB"),
        keys=_keys(env),
    )


def _url(env: Mapping[str, str], service: str) -> str | None:
    """The AWS SDKs' own variables, most specific first."""
    return env.get(f"AWS_ENDPOINT_URL_{service}") or env.get("AWS_ENDPOINT_URL") or None


def _keys(env: Mapping[str, str]) -> AccessKeys | None:
    access, secret = env.get("AWS_ACCESS_KEY_ID"), env.get("AWS_SECRET_ACCESS_KEY")
    return AccessKeys(access, secret, env.get("AWS_SESSION_TOKEN") or None) if access and secret else None


def _text(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    if not value:
        raise SettingsError(f"environment variable {name} is not set")
    return value


def _positive(env: Mapping[str, str], name: str, default: float) -> float:
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
