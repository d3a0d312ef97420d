"""Settings of the batch lane and the recheck: what the program writes is what the functions read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from functions.batch_ports import Count
from functions.batch_settings import (
    JOBS_OVERDUE,
    JOBS_UNACCOUNTED,
    RUN_UNACCOUNTED,
    NotifySettings,
    Webhook,
    batch_environment,
    jobs_environment,
    notify_environment,
    read_batch,
    read_jobs,
    read_notify,
)
from functions.nightly_settings import nightly_environment, read_nightly
from functions.settings import (
    JOBS_ACCEPTED,
    JOBS_PROMOTED,
    AcceptanceSettings,
    SettingsError,
    read_router,
    router_environment,
)

LAMBDAS = {"AWS_REGION": "us-east-1", "LAMBDA_TASK_ROOT": "/var/task"}
QUEUES: dict[str, Any] = {"work_queue": "https://sqs/work", "data_bucket": "bucket", "jobs_table": "jobs"}
POLICY: dict[str, Any] = {"policy_application": "app", "policy_environment": "env", "policy_profile": "policy"}
HOOKS = {"acme": Webhook("https://acme.example/hook", "/inferlane/acme")}
Reader = Callable[[Mapping[str, str]], object]


def batch(**more: Any) -> dict[str, str]:
    written = batch_environment(
        "collect", stack="s", runs_table="runs", promote_queue="https://sqs/promote", **QUEUES, **more
    )
    return LAMBDAS | written


def jobs(**more: Any) -> dict[str, str]:
    return LAMBDAS | jobs_environment(stack="s", runs_table="runs", **POLICY, **QUEUES, **more)


def notify(webhooks: Mapping[str, Webhook] = HOOKS) -> dict[str, str]:
    return LAMBDAS | notify_environment(stack="s", topic="arn:topic", webhooks=webhooks)


def test_collect_and_its_like_read_what_was_written() -> None:
    """Every setting, and the defaults of those that were left out."""
    found = read_batch(
        batch(
            data_key="arn:key",
            notices_queue="https://sqs/notices",
            channels=("webhook", "topic"),
            retention_days=3,
        )
    )
    assert (found.stack, found.region, found.topology_file) == ("s", "us-east-1", Path("/var/task/topology.json"))
    assert (found.jobs_table, found.runs_table, found.data_bucket) == ("jobs", "runs", "bucket")
    assert (found.work_queue, found.promote_queue) == ("https://sqs/work", "https://sqs/promote")
    assert (found.data_key, found.notices_queue, found.channels) == (
        "arn:key",
        "https://sqs/notices",
        ("topic", "webhook"),
    )
    assert found.retention_s == 3 * 86_400
    plain = read_batch(batch())
    assert (plain.data_key, plain.notices_queue, plain.channels, plain.keys) == (None, None, (), None)
    assert plain.retention_s == 7 * 86_400


def test_jobs_reads_what_was_written() -> None:
    """Every setting."""
    found = read_jobs(jobs(datasets=("s3://b/{tenant}/",), retention_days=1, link_s=60, policy_ttl_s=20))
    assert (found.policy_application, found.policy_environment, found.policy_profile) == ("app", "env", "policy")
    assert found.acceptance == AcceptanceSettings("jobs", "https://sqs/work", "bucket")
    assert found.runs_table == "runs"
    assert found.datasets == ("s3://b/{tenant}/",)
    assert (found.retention_s, found.link_s, found.policy_ttl_s) == (86_400, 60, 20)


def test_notify_reads_what_was_written() -> None:
    """Topic and webhooks; either may be missing."""
    assert read_notify(notify()) == NotifySettings("s", "us-east-1", "arn:topic", HOOKS)
    written = LAMBDAS | notify_environment(stack="s", topic=None, webhooks={})
    assert read_notify(written) == NotifySettings("s", "us-east-1", None, {})


def test_the_recheck_reads_what_was_written() -> None:
    """Every setting."""
    written = nightly_environment(
        "prepare",
        stack="s",
        data_bucket="bucket",
        light_model="light",
        heavy_model="heavy",
        time_zone="Asia/Shanghai",
        data_key="arn:key",
        topic="arn:topic",
    )
    found = read_nightly(LAMBDAS | written)
    assert (found.light_model, found.heavy_model, found.time_zone) == ("light", "heavy", "Asia/Shanghai")
    assert (found.data_bucket, found.data_key, found.topic) == ("bucket", "arn:key", "arn:topic")
    assert (found.capture_prefix, found.nightly_prefix) == ("capture/", "nightly/")


def test_the_router_takes_jobs_in_where_there_is_a_batch_lane() -> None:
    """Table, queues and bucket, or none of them; endpoints as the SDKs name them."""
    written = LAMBDAS | router_environment(stack="s", **POLICY)
    assert read_router(written).acceptance is None
    written = LAMBDAS | router_environment(
        stack="s", capture_stream="stream", promote_queue="https://sqs/promote", **POLICY, **QUEUES
    )
    found = read_router(written | {"AWS_ENDPOINT_URL": "http://x", "AWS_ENDPOINT_URL_S3": "http://s3"})
    assert found.acceptance == AcceptanceSettings(
        "jobs", "https://sqs/work", "bucket", "https://sqs/promote", "http://x", "http://x", "http://s3"
    )
    assert (found.capture_stream, found.firehose_url) == ("stream", "http://x")
    for name in ("INFERLANE_WORK_QUEUE", "INFERLANE_PROMOTE_QUEUE"):
        with pytest.raises(SettingsError, match=f"{name} is not set"):
            read_router(written | {name: ""})


def test_alarms_watch_what_is_counted() -> None:
    """The program's names are the functions'."""
    assert (JOBS_OVERDUE, JOBS_UNACCOUNTED, RUN_UNACCOUNTED, JOBS_ACCEPTED, JOBS_PROMOTED) == (
        Count.JOBS_OVERDUE,
        Count.JOBS_UNACCOUNTED,
        Count.RUN_UNACCOUNTED,
        Count.JOBS_ACCEPTED,
        Count.JOBS_PROMOTED,
    )


@pytest.mark.parametrize(
    ("read", "environment", "change", "named"),
    [
        (read_batch, batch(), {"INFERLANE_RUNS_TABLE": ""}, "INFERLANE_RUNS_TABLE is not set"),
        (read_batch, batch(), {"INFERLANE_RETENTION_DAYS": "-1"}, "INFERLANE_RETENTION_DAYS must be positive"),
        (
            read_batch,
            batch(),
            {"INFERLANE_CHANNELS": "pigeon"},
            "INFERLANE_CHANNELS names an unknown channel: 'pigeon'",
        ),
        (read_jobs, jobs(), {"INFERLANE_DATASETS": '["/etc"]'}, "INFERLANE_DATASETS is not a list of S3 URIs"),
        (read_jobs, jobs(), {"INFERLANE_DATASETS": "["}, "INFERLANE_DATASETS is not JSON"),
        (
            read_notify,
            notify({"a": Webhook("http://x", "p")}),
            {},
            "INFERLANE_WEBHOOKS must give each tenant an https url",
        ),
        (read_notify, notify({"a": Webhook("https://x", "")}), {}, "INFERLANE_WEBHOOKS must give each tenant"),
        (read_notify, notify(), {"INFERLANE_WEBHOOKS": "[]"}, "INFERLANE_WEBHOOKS must give each tenant"),
    ],
)
def test_a_wrong_environment_names_the_variable(
    read: Reader, environment: dict[str, str], change: dict[str, str], named: str
) -> None:
    """Missing, malformed, unsafe."""
    with pytest.raises(SettingsError, match=named):
        read(environment | change)
