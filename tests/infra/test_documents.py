"""The documents a deploy reads and writes: price book, images, topology, policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra import config, images, policy_document, pricebook, topology
from infra.policy_document import PolicyDocumentError
from infra.pricebook import PriceBook, PriceError
from tests.infra.conftest import config_values

PRICES = pricebook.load()


def test_every_priced_instance_type_has_its_hardware() -> None:
    """Whatever has an hourly price also has vCPUs and GPUs."""
    assert set(PRICES.region("us-east-1").hosting_per_hour) == set(PRICES.instance_types)


def test_serverless_costs_by_memory() -> None:
    """The six memory sizes, each proportional to its gigabytes."""
    per_gb = {memory: PRICES.serverless_per_s("us-east-1", memory) / memory for memory in config.SERVERLESS_MEMORY_MB}

    assert set(PRICES.region("us-east-1").serverless_per_s) == set(config.SERVERLESS_MEMORY_MB)
    assert [ratio * 1024 for ratio in per_gb.values()] == pytest.approx([0.00002] * 6)


def test_a_figure_names_a_source() -> None:
    """A figure whose source is not listed makes the book invalid."""
    book = json.loads(pricebook.FILE.read_text())
    book["regions"]["us-east-1"]["services"]["kms_key_per_month"]["source"] = "hearsay"

    with pytest.raises(ValueError, match="us-east-1: kms_key_per_month names an unknown source 'hearsay'"):
        PriceBook.model_validate(book)


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (
            lambda: PRICES.hosting_per_hour("eu-west-1", "ml.g5.xlarge"),
            "no prices are known for region eu-west-1, only",
        ),
        (lambda: PRICES.hosting_per_hour("us-east-1", "ml.x"), "no hosting price is known for ml.x in us-east-1"),
        (lambda: PRICES.serverless_per_s("us-east-1", 512), "no serverless price is known for 512 MB in us-east-1"),
    ],
)
def test_an_unknown_figure_is_an_error(ask: object, answer: str) -> None:
    """The book never guesses."""
    assert callable(ask)
    with pytest.raises(PriceError, match=answer):
        ask()


def test_an_image_knows_its_repository() -> None:
    """A pull is granted on the repository's ARN, in the image's own account, region and partition."""
    image = images.parse("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/team/model@sha256:" + "a" * 64)

    assert image.repository_arn == "arn:aws-cn:ecr:cn-north-1:123456789012:repository/team/model"


def test_the_topology_is_the_contract() -> None:
    """A growth stack's lanes carry exactly the contract's fields, with hardware, limits and prices filled in."""
    stack = config.parse("growth", "us-east-1", config_values("growth"))
    built = topology.build(
        stack, {("moderation", "dedicated"): "gpu-endpoint", ("moderation", "serverless"): "small-endpoint"}, {}, PRICES
    )

    assert built == {
        "schema": "inferlane/topology/v1",
        "region": "us-east-1",
        "models": {
            "moderation": {
                "lanes": {
                    "dedicated": {
                        "kind": "dedicated",
                        "endpoint": "gpu-endpoint",
                        "variant": "AllTraffic",
                        "instance_type": "ml.g5.xlarge",
                        "vcpus": 4,
                        "gpus": 1,
                        "min_instances": 2,
                        "max_instances": 6,
                        "slots_per_instance": 4,
                        "max_bytes": 6291456,
                        "timeout_s": 60,
                        "usd_per_instance_hour": 1.408,
                    },
                    "serverless": {
                        "kind": "serverless",
                        "endpoint": "small-endpoint",
                        "variant": "AllTraffic",
                        "memory_mb": 4096,
                        "max_concurrency": 40,
                        "max_bytes": 4194304,
                        "timeout_s": 60,
                        "usd_per_s": 0.00008,
                    },
                }
            }
        },
    }
    assert topology.dumps(built) == topology.dumps(json.loads(topology.dumps(built)))


def written(folder: Path, text: str) -> Path:
    """A policy file with this text below its schema and version."""
    file = folder / "policy.yaml"
    file.write_text(f"schema: inferlane/policy/v1\nversion: 2026-12-01\n{text}", encoding="utf-8")
    return file


def test_yaml_1_2_scalars_stay_what_they_look_like(tmp_path: Path) -> None:
    """Clock times, dates and words are text; numbers, booleans and null are themselves."""
    text = "a: 22:00\nb: yes\nc: 1.5\nd: 10%\ne: true\nf: ~\ng: 0x1F\nh: on\ni: 1e3\nj: [2026-12-01, -4, .5]\n"
    document = json.loads(policy_document.to_json(written(tmp_path, text)))

    assert document == {
        "schema": "inferlane/policy/v1",
        "version": "2026-12-01",
        "a": "22:00",
        "b": "yes",
        "c": 1.5,
        "d": "10%",
        "e": True,
        "f": None,
        "g": 31,
        "h": "on",
        "i": 1000.0,
        "j": ["2026-12-01", -4, 0.5],
    }


def test_the_json_form_is_stable(tmp_path: Path) -> None:
    """Reordered keys and comments do not change the document that is deployed."""
    one = policy_document.to_json(written(tmp_path, "a: 1\nb: 2\n"))
    two = policy_document.to_json(written(tmp_path, "# why\nb: 2\na: 1\n"))

    assert one == two


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a: 1\na: 2\n", "policy.yaml:4: key 'a' appears twice"),
        ("a: &x 1\n", "policy.yaml:3: anchors and aliases are not allowed"),
        ("a: !!python/object:os.system x\n", "policy.yaml:3: tags are not allowed"),
        ("a: [1\n", "policy.yaml:4: did not find expected ',' or ']'"),
        ("a: {? [1] : 2}\n", "policy.yaml:3: a key must be text"),
        ("1: 2\n", "policy.yaml:3: a key must be text"),
    ],
)
def test_what_a_document_may_not_hold(tmp_path: Path, text: str, cause: str) -> None:
    """Each refusal has file, line and cause."""
    with pytest.raises(PolicyDocumentError) as error:
        policy_document.to_json(written(tmp_path, text))

    assert str(error.value).startswith(cause)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"- a\n", "policy.yaml:1: not a policy document"),
        (b"schema: other\n", "policy.yaml:1: not a policy document"),
        (b"schema: inferlane/policy/v1\nversion: 1\n", "policy.yaml:1: `version` is missing or not text"),
        (b"\xff\xfe\xff", "policy.yaml: not UTF-8 at byte 0"),
        (b"a: \x07\n", "policy.yaml: character 3: special characters are not allowed"),
        (b"#" * (2**20 + 1), "policy.yaml: 1048577 bytes, more than 1048576"),
        (b"a: " + b"[ " * 100_000, "policy.yaml:1: nested too deeply"),
    ],
)
def test_what_is_no_policy_document(tmp_path: Path, content: bytes, cause: str) -> None:
    """Other documents, other encodings and bombs are refused in one line."""
    file = tmp_path / "policy.yaml"
    file.write_bytes(content)

    with pytest.raises(PolicyDocumentError) as error:
        policy_document.to_json(file)

    assert str(error.value).startswith(cause)
    assert "\n" not in str(error.value)
