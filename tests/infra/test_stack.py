"""What a valid stack needs around it: files, prices, images, names that fit. One line for each thing in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import config, pricebook, stack
from tests.infra.conftest import config_values

PRICES = pricebook.load()


def parsed(changes: dict[str, object], *, name: str = "growth") -> config.StackConfig:
    """The growth stack's config with some values changed."""
    return config.parse(name, "us-east-1", config_values("growth", changes))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project folder with the files a growth stack needs."""
    for name in ("policies/growth.yaml", "models/moderation-light/build/model.tar.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_nothing_stands_in_the_way(root: Path) -> None:
    """With policy, artifact, prices and images at hand there is nothing to report."""
    assert stack.check(parsed({}), PRICES, root) == []


def test_a_missing_artifact_says_how_to_build_it(root: Path) -> None:
    """The line names the file and the command that makes it."""
    (root / "models/moderation-light/build/model.tar.gz").unlink()

    assert stack.check(parsed({}), PRICES, root) == [
        "inferlane:models.moderation.package: models/moderation-light/build/model.tar.gz is missing: run `make models`"
    ]


def test_a_missing_policy_is_named(root: Path) -> None:
    """The line names the policy file as the stack file wrote it."""
    assert stack.check(parsed({"policy": "policies/absent.yaml"}), PRICES, root) == [
        "inferlane:policy: policies/absent.yaml does not exist"
    ]


def test_an_unknown_instance_type_lists_the_known_ones(root: Path) -> None:
    """An instance type the price book lacks is refused with those it has."""
    (line,) = stack.check(parsed({"models.moderation.dedicated.instance_type": "ml.z9.xlarge"}), PRICES, root)

    assert line.startswith(
        "inferlane:models.moderation.dedicated.instance_type: 'ml.z9.xlarge' is not one of ml.c5.2xlarge,"
    )


def test_a_region_without_prices_or_images_says_what_to_set(root: Path) -> None:
    """Another region needs `prices_region` and, where AWS's registry is not known, `image` on each lane."""
    wanted = config.parse("growth", "me-south-1", config_values("growth"))

    assert stack.check(wanted, PRICES, root) == [
        "inferlane:prices_region: no prices are known for me-south-1; set it to one of us-east-1 to reckon with that "
        "region's prices",
        "inferlane:models.moderation.dedicated.image: no default image is known for region me-south-1: set `image` to "
        "an ECR image URI there",
        "inferlane:models.moderation.serverless.image: no default image is known for region me-south-1: set `image` to "
        "an ECR image URI there",
    ]


def test_prices_of_another_region_may_stand_in(root: Path) -> None:
    """With `prices_region`, a region the book lacks is no obstacle."""
    wanted = config.parse("growth", "eu-west-1", config_values("growth", {"prices_region": "us-east-1"}))

    assert stack.check(wanted, PRICES, root) == []
    assert (wanted.region, wanted.priced_as) == ("eu-west-1", "us-east-1")


def test_serverless_takes_no_gpu_image(root: Path) -> None:
    """A GPU image on the serverless lane is refused before SageMaker does."""
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-gpu-py312"
    (line,) = stack.check(parsed({"models.moderation.serverless.image": image}), PRICES, root)

    assert line.endswith("is a GPU image; serverless has no GPU: use a CPU image")


def test_an_image_lies_in_ecr(root: Path) -> None:
    """SageMaker pulls from ECR only."""
    (line,) = stack.check(parsed({"models.moderation.dedicated.image": "docker.io/me/model:1"}), PRICES, root)

    assert line.startswith("inferlane:models.moderation.dedicated.image: 'docker.io/me/model:1' is not an ECR image:")


def test_names_fit_sagemaker(root: Path) -> None:
    """A stack whose endpoint configuration would not fit 63 characters is told by how much to shorten."""
    name = "a-rather-long-name-for-one"
    lines = stack.check(parsed({}, name=name), PRICES, root)

    assert lines == [
        f"inferlane:models.moderation: inferlane-{name}-moderation-dedicated-74234e98af has 68 characters, SageMaker "
        "allows 63: shorten the stack's or the model's name by 5",
        f"inferlane:models.moderation: inferlane-{name}-moderation-serverless-74234e98af has 69 characters, SageMaker "
        "allows 63: shorten the stack's or the model's name by 6",
    ]
