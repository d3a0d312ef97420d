"""Configuration of work that can wait: what is accepted, and the one line each bad value becomes."""

from __future__ import annotations

from pathlib import Path

import botocore.model
import botocore.session
import pytest

from infra import config, pricebook, stack
from infra.batch_config import BatchLaneConfig
from tests.infra.conftest import config_values
from tests.infra.test_config import parsed, refused

PRICES = pricebook.load()
LANE = "models.moderation.batch"

BAD: dict[str, tuple[object, str]] = {
    f"{LANE}.max_jobs": (0, "0 is not between 1 and 100"),
    f"{LANE}.target_records": (100_001, "100001 is not between 1 and 100000"),
    f"{LANE}.usd_per_instance_hour": (0, "0 is not between 0.0001 and 1000"),
    f"{LANE}.record_s": ("fast", "'fast' is not a number"),
    f"{LANE}.strategy": ("Multi", "'Multi' is not one of 'MultiRecord', 'SingleRecord'"),
    f"{LANE}.content_types": (["json"], "'json' is not a content type such as application/json or image/*"),
    f"{LANE}.spot": (True, "is not a known key; known here: content_types, image, instance_count,"),
    "batch.retention_days": (
        14,
        "14 is not between 15 and 3650: what a message of 14 days speaks of must still be there",
    ),
    "batch.collect_timeout_s": (
        901,
        "901 is not between 60 and 900: it begins nothing in its last 45 s, and a function runs 15 minutes at most",
    ),
    "batch.job_days": (
        1,
        "1 is not between 2 and 3650: the audit counts the records of a day, up to two hours after it",
    ),
    "batch.audit_hours": (25, "25 is not between 1 and 24: it counts the records of one day"),
    "batch.promote_concurrency": (1, "1 is not between 2 and 1000"),
    "batch.datasets": (["s3://reviews/in"], "'s3://reviews/in' is not an S3 prefix such as s3://bucket/data/{tenant}/"),
    "batch.dataset_keys": (["alias/reviews"], "'alias/reviews' is not the ARN of a KMS key such as arn:aws:kms:"),
    "batch.notify": ({"mail": "x"}, "is not a known key; known here: topic, webhooks"),
    "nightly.at": ("1:00", "'1:00' is not a time of day in quotes such as \"01:00\""),
    "nightly.hour": (1, "is not a known key; known here: at, model, pause_s, rechecks, retention_days"),
    "capture.interval_s": (59, "59 is not between 60 and 900: what Firehose takes with dynamic partitioning"),
    "capture.retention_days": (1, "1 is not between 2 and 3650: the night after rechecks them"),
}


@pytest.mark.parametrize("path", BAD)
def test_a_bad_value_is_one_line(path: str) -> None:
    """The line names the key's path, the value and what is allowed, and nothing else is reported."""
    value, cause = BAD[path]

    (line,) = refused({path: value}, file="mature")

    assert line.startswith("inferlane:")
    assert cause in line
    assert path.split(".")[-1] in line or "known here" in line


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        ("url", "http://hooks.example.com", "'http://hooks.example.com' is not an https URL such as https://"),
        ("url", "https://hooks.example.com/#a", "is not an https URL such as https://"),
        ("secret_parameter", "acme", "'acme' is not the name of an SSM parameter such as /inferlane/webhooks/acme"),
    ],
)
def test_a_webhook_is_a_tls_address_and_a_named_secret(key: str, value: str, cause: str) -> None:
    """A plain address would show who has jobs, and a secret in the stack file would be none."""
    hook = {"url": "https://hooks.example.com", "secret_parameter": "/a", key: value}

    (line,) = refused({"batch.notify": {"webhooks": {"acme": hook}}}, file="mature")

    assert line.startswith(f"inferlane:batch.notify.webhooks.acme.{key}: ")
    assert cause in line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"stage": "growth"},
            "inferlane: models.moderation.batch is not allowed in stage growth: remove it or set stage: mature",
        ),
        (
            {"stage": "growth", LANE: None, "models.moderation-heavy": None},
            "inferlane: batch is not allowed in stage growth: remove it or set stage: mature",
        ),
        (
            {LANE: None, "models.moderation-heavy": None, "nightly": None},
            "inferlane: stage mature needs a batch lane on at least one model: add one or set stage: growth",
        ),
        (
            {"nightly.model": "moderation-huge"},
            "inferlane: nightly.model: moderation-huge has no batch lane: add models.moderation-huge.batch",
        ),
        (
            {"nightly.rechecks": "chat"},
            "inferlane: nightly.rechecks: chat is not one of moderation, moderation-heavy",
        ),
        ({"capture": None}, "inferlane: nightly rechecks what was captured: add the section capture"),
        (
            {"nightly.rechecks": "moderation-heavy"},
            "inferlane:nightly: moderation-heavy cannot recheck itself: name a heavier model as `model`",
        ),
        (
            {"batch.job_days": 31},
            "inferlane:batch: job_days 31 is above retention_days 30: a record would speak of a result that is gone",
        ),
        (
            {"batch.notify": {}},
            "inferlane:batch.notify: tells nobody: add `topic` or `webhooks`, or remove `notify`",
        ),
        (
            {f"{LANE}.max_payload_mb": 30, f"{LANE}.max_concurrent": 4},
            "inferlane:models.moderation.batch: max_payload_mb 30 × max_concurrent 4 is 120, more than 100: SageMaker "
            "allows no more in one container",
        ),
    ],
)
def test_values_that_do_not_go_together(changes: dict[str, object], line: str) -> None:
    """Rules over several keys name the keys and the way out."""
    assert refused(changes, file="mature") == (line,)


def test_a_model_may_have_nothing_but_a_batch_lane() -> None:
    """The heavy model waits for work; nobody waits for it."""
    heavy = parsed({}, file="mature").models["moderation-heavy"]

    assert (heavy.dedicated, heavy.serverless) == (None, None)
    assert heavy.batch


@pytest.mark.parametrize(
    ("vcpus", "gpus", "lane", "concurrent"),
    [
        (4, 0, {}, 4),
        (96, 0, {}, 16),
        (48, 4, {}, 4),
        (4, 0, {"max_concurrent": 2}, 2),
        (8, 0, {"max_payload_mb": 50}, 2),
        (8, 0, {"max_payload_mb": 100}, 1),
    ],
)
def test_an_instance_is_kept_busy(vcpus: int, gpus: int, lane: dict[str, int], concurrent: int) -> None:
    """One call a GPU, else one a vCPU, as far as their payloads fit together, unless the stack file says how many."""
    configured = BatchLaneConfig.model_validate({"instance_type": "ml.c5.xlarge", **lane})

    assert configured.concurrent(vcpus, gpus) == concurrent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project folder with the files a mature stack needs."""
    for name in (
        "policies/mature.yaml",
        *(f"models/moderation-{which}/build/model.tar.gz" for which in ("light", "heavy")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def checked(changes: dict[str, object], root: Path, name: str = "mature") -> list[str]:
    """What stands in the way of a mature stack with some values changed."""
    return stack.check(config.parse(name, "us-east-1", config_values("mature", changes)), PRICES, root)


def test_nothing_stands_in_the_way(root: Path) -> None:
    """With policy, artifacts, prices and images at hand there is nothing to report."""
    assert checked({}, root) == []


def test_a_price_that_nobody_recorded_is_asked_for(root: Path) -> None:
    """The book does not guess what a transform job costs: without a figure the stack file must have one."""
    assert checked({f"{LANE}.usd_per_instance_hour": None}, root) == [
        f"inferlane:{LANE}.usd_per_instance_hour: no batch transform price is known for ml.c5.xlarge in us-east-1: set "
        "it to what AWS charges you"
    ]
    assert checked({f"{LANE}.usd_per_instance_hour": None, f"{LANE}.instance_type": "ml.g5.xlarge"}, root) == []


def test_some_instances_run_no_transform_jobs(root: Path) -> None:
    """An instance type that hosts models only is refused before SageMaker does."""
    (line,) = checked({f"{LANE}.instance_type": "ml.c5.large"}, root)

    assert line == (
        "inferlane:models.moderation.batch.instance_type: ml.c5.large runs no transform jobs: choose another, such as "
        "ml.c5.xlarge"
    )


def test_which_instances_run_transform_jobs_is_sagemakers_word() -> None:
    """Of the price book's types exactly those are refused that TransformInstanceType lacks."""
    shape = botocore.session.get_session().get_service_model("sagemaker").shape_for("TransformInstanceType")
    assert isinstance(shape, botocore.model.StringShape)
    allowed = set(shape.enum)

    assert set(stack.HOSTING_ONLY) == set(PRICES.instance_types) - allowed
    assert set(PRICES.region("us-east-1").transform_per_hour) <= allowed


def test_names_fit_sagemaker(root: Path) -> None:
    """A stack whose transform model would not fit 63 characters is told by how much to shorten."""
    lines = checked({}, root, "a-name-that-is-long-enough")

    assert any("moderation-heavy-batch-" in line and "SageMaker allows 63" in line for line in lines)
