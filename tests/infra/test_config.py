"""Stack configuration: what is accepted, and the one line each bad value becomes."""

from __future__ import annotations

from typing import Any

import pytest

from infra import config
from infra.config import ConfigError
from tests.infra.conftest import config_values


def parsed(changes: dict[str, object], *, stack: str = "growth", file: str = "growth") -> config.StackConfig:
    """The config of a stack file with some values changed."""
    return config.parse(stack, "us-east-1", config_values(file, changes))


def refused(changes: dict[str, object], *, stack: str = "growth", file: str = "growth") -> tuple[str, ...]:
    """The lines with which such a config is refused."""
    with pytest.raises(ConfigError) as error:
        parsed(changes, stack=stack, file=file)
    return error.value.lines


@pytest.mark.parametrize("stack", ["local", "growth", "prototype", "mature"])
def test_the_stack_files_are_valid(stack: str) -> None:
    """Each stack file parses."""
    assert parsed({}, stack=stack, file=stack).stack == stack


def test_what_is_left_out_has_a_default() -> None:
    """A stack file needs stage, auth, policy and models; the rest has the documented defaults."""
    values = {
        key: value for key, value in config_values("growth").items() if key in {"stage", "auth", "policy", "models"}
    }
    stack = config.parse("growth", "us-east-1", values)

    assert (stack.router.memory_mb, stack.router.timeout_s, stack.router.snapshot_ttl_s) == (512, 30, 15)
    assert (stack.log_retention_days, stack.protect, stack.priced_as) == (30, True, "us-east-1")


BAD = {
    "models.moderation.serverless.memory_mb": (
        1500,
        "1500 is not one of 1024, 2048, 3072, 4096, 5120, 6144",
    ),
    "models.moderation.serverless.max_concurrency": (201, "201 is not between 1 and 200"),
    "models.moderation.dedicated.min_instances": (
        0,
        "0 is not between 1 and 100: scale to zero needs inference components",
    ),
    "models.moderation.dedicated.max_queue_ms": (-1, "-1 is not between 0 and 60000"),
    "models.moderation.dedicated.max_instances": ("four", "'four' is not a whole number"),
    "models.moderation.package": ("/etc", "'/etc' is not a path inside the project, such as models/moderation-light"),
    "router.timeout_s": (60, "60 is not between 1 and 30: an HTTP API ends every call at 30 s"),
    "router.log_level": ("loud", "'loud' is not one of 'DEBUG', 'INFO', 'WARNING', 'ERROR'"),
    "router.metric_period_s": (15, "15 is not one of 10, 30, 60, 120, 180, 240, 300"),
    "log_retention_days": (31, "31 is not one of 1, 3, 5, 7, 14, 30, 60,"),
    "alarms.errors_percent": (0, "0 is not between 1 and 100"),
    "alarms.p99_ms": (30_000, "30000 is not between 1 and 29000: a synchronous request ends at 29 s"),
    "alarms.topic": ("on-call", "'on-call' is not the ARN of an SNS topic such as arn:aws:sns:us-east-1:123456789012:"),
    "stage": ("ripe", "'ripe' is not one of 'prototype', 'growth', 'mature'"),
    "auth": ("none", "'none' is not one of 'iam', 'api_key', 'jwt'"),
    "protect": ("no", "'no' is not true or false"),
    "policy": (7, "7 is not text"),
    "models": ([], "[] is not a mapping"),
    "prices_region": ("mars", "'mars' is not an AWS region such as us-east-1"),
    "loge_retention_days": (
        30,
        "is not a known key; known here: alarms, auth, batch, capture, jwt, log_retention_days, models, nightly,",
    ),
    "router.memory": (512, "is not a known key; known here: log_level, memory_mb,"),
    "models.moderation.serverles": ({}, "is not a known key; known here: batch, dedicated, package, serverless"),
    "models.moderation.serverless.memory": (1024, "is not a known key; known here: image, max_concurrency, memory_mb"),
}


@pytest.mark.parametrize("path", BAD)
def test_a_bad_value_is_one_line(path: str) -> None:
    """The line names the key's path, the value and what is allowed, and nothing else is reported."""
    value, cause = BAD[path]

    (line,) = refused({path: value})

    assert line.startswith(f"inferlane:{path}: {cause}")
    assert "\n" not in line


@pytest.mark.parametrize("path", ["stage", "auth", "policy", "models", "models.moderation.serverless.memory_mb"])
def test_a_missing_value_is_named(path: str) -> None:
    """A required key that is absent is reported by its path."""
    assert refused({path: None}) == (f"inferlane:{path}: is missing",)


def test_all_bad_values_are_reported_together() -> None:
    """Two mistakes are two lines, so one run shows both."""
    assert len(refused({"router.timeout_s": 0, "models.moderation.serverless.memory_mb": 1})) == 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"stage": "prototype"},
            "inferlane: models.moderation.dedicated is not allowed in stage prototype (serverless only): "
            "remove it or set stage: growth",
        ),
        (
            {"models.moderation.dedicated": None},
            "inferlane: stage growth needs a dedicated lane on at least one model: add one or set stage: prototype",
        ),
        (
            {"models.moderation.dedicated.min_instances": 7},
            "inferlane:models.moderation.dedicated: min_instances 7 is above max_instances 6",
        ),
        (
            {"models.moderation.dedicated": None, "models.moderation.serverless": None},
            "inferlane:models.moderation: has no lane: add `serverless`, `dedicated` or `batch`",
        ),
        ({"auth": "jwt"}, "inferlane: auth: jwt needs the section jwt: add {issuer: …, audience: […]}"),
        (
            {"jwt": {"issuer": "https://login.example.com", "audience": ["a"]}},
            "inferlane: jwt is not used with auth: iam: remove it or set auth: jwt",
        ),
        ({"models": {}}, "inferlane: models is empty: name at least one model"),
        ({"tags": {"stack": "x"}}, "inferlane: tags.stack is reserved: choose another key"),
        (
            {"tags": {f"t{i}": "x" for i in range(7)}},
            "inferlane: tags has 7 entries, more than 6: an S3 object carries 10, 4 are ours",
        ),
    ],
)
def test_values_that_do_not_go_together(changes: dict[str, object], line: str) -> None:
    """Rules over several keys name the keys and the way out."""
    assert refused(changes) == (line,)


@pytest.mark.parametrize("name", ["Growth", "a_b", "-a", "a-", ""])
def test_names_become_resource_names(name: str) -> None:
    """Stack and model names are lower-case letters, digits and inner hyphens."""
    model: Any = config_values("growth")["models"]["moderation"]

    (line,) = refused({}, stack=name)
    assert line.startswith(f"stack name: {name!r} is not a name")
    (line,) = refused({"models": {name: model}})
    assert f"{name!r} is not a name" in line


def test_the_region_is_needed() -> None:
    """Without aws:region there is no stack."""
    with pytest.raises(ConfigError, match="aws:region: is missing"):
        config.parse("growth", None, config_values("growth"))


ISSUER_RULE = "is not an issuer such as https://login.example.com/tenant (plain http on loopback only)"


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        ("issuer", "http://login.example.com", f"'http://login.example.com' {ISSUER_RULE}"),
        ("issuer", "login.example.com", f"'login.example.com' {ISSUER_RULE}"),
        ("issuer", "https://login.example.com/?a=b", f"'https://login.example.com/?a=b' {ISSUER_RULE}"),
        ("audience", [], "[] is not a list of 1 to 50 audiences: without one, any token would do"),
        ("audience", [""], "[''] is not a list of 1 to 50 audiences: without one, any token would do"),
        ("audience", "inferlane", "'inferlane' is not a list"),
        ("scopes", ["x"], "is not a known key; known here: audience, issuer"),
    ],
)
def test_a_bad_issuer_or_audience_is_one_line(key: str, value: object, cause: str) -> None:
    """What would leave the door open, or closed to everybody, is refused before the deploy."""
    (line,) = refused({"auth": "jwt", "jwt": {"issuer": "https://login.example.com", "audience": ["a"], key: value}})

    assert line == f"inferlane:jwt.{key}: {cause}"


@pytest.mark.parametrize("issuer", ["https://a.example.com", "https://a.example.com/t/", "http://127.0.0.1:8080"])
def test_an_issuer_is_kept_to_the_letter(issuer: str) -> None:
    """The gateway compares `iss` with it literally, so not even a trailing slash is touched."""
    stack = parsed({"auth": "jwt", "jwt": {"issuer": issuer, "audience": ["a"]}})

    assert stack.jwt is not None
    assert stack.jwt.issuer == issuer
