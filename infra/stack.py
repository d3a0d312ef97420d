"""The current stack: its configuration as Pulumi has it, and whether what it needs lies around it.

`load` is the only function that reads Pulumi's configuration. `check` compares a valid config with policy and artifact
files, the price book, the image table, and the lengths of the names that follow from it; like a bad value, each thing
that stands in the way is one line with its way out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from infra import images, naming, pricebook
from infra.batch_config import BatchLaneConfig
from infra.config import ARTIFACT, ROOT, ConfigError, DedicatedConfig, ServerlessConfig, StackConfig, parse
from infra.pricebook import PriceBook, PriceError

HOSTING_ONLY = ("ml.c5.large",)
"""Of the price book's instance types those that run no transform jobs (botocore sagemaker 2017-07-24)."""


def load(root: Path = ROOT) -> StackConfig:
    """The current stack's config, checked. Raises `ConfigError`."""
    aws, own = pulumi.Config("aws"), pulumi.Config(naming.PROJECT)
    present = {*CONFIG.get(), *get_config_env()}  # pulumi.Config cannot list its keys, and a typo must not be ignored
    keys = sorted(key.split(":", 1)[1] for key in present if key.startswith(f"{naming.PROJECT}:"))
    config = parse(pulumi.get_stack(), aws.get("region"), {key: _decoded(own.require(key)) for key in keys})
    if lines := check(config, pricebook.load(), root):
        raise ConfigError(lines)
    return config


def check(config: StackConfig, prices: PriceBook, root: Path = ROOT) -> list[str]:
    """What stands in the way outside the config itself; one line each, empty when nothing does."""
    lines: list[str] = []
    if not (root / config.policy).is_file():
        lines.append(f"inferlane:policy: {config.policy} does not exist")
    if config.priced_as not in prices.regions:
        known = ", ".join(sorted(prices.regions))
        lines.append(
            f"inferlane:prices_region: no prices are known for {config.priced_as}; set it to one of {known} to reckon "
            "with that region's prices"
        )
    for name, model in sorted(config.models.items()):
        path = f"inferlane:models.{name}"
        if not (root / model.package / ARTIFACT).is_file():
            lines.append(f"{path}.package: {model.package}/{ARTIFACT} is missing: run `make models`")
        if model.dedicated:
            lines += _check_dedicated(f"{path}.dedicated", model.dedicated, config, prices)
            lines += _check_name(path, config.stack, name, "dedicated")
        if model.serverless:
            lines += _check_serverless(f"{path}.serverless", model.serverless, config)
            lines += _check_name(path, config.stack, name, "serverless")
        if model.batch:
            lines += _check_batch(f"{path}.batch", model.batch, config, prices)
            lines += _check_length(path, naming.hashed_name(naming.batch_name(config.stack, name), None))
    return lines


def _check_dedicated(path: str, lane: DedicatedConfig, config: StackConfig, prices: PriceBook) -> list[str]:
    try:
        processor = prices.processor(lane.instance_type)
    except PriceError as error:
        return [f"{path}.instance_type: {error}"]
    lines = _check_image(path, lane.image, config.region, processor)
    if config.priced_as in prices.regions:
        try:
            prices.hosting_per_hour(config.priced_as, lane.instance_type)
        except PriceError as error:
            lines.append(f"{path}.instance_type: {error}")
    return lines


def _check_serverless(path: str, lane: ServerlessConfig, config: StackConfig) -> list[str]:
    if lane.image and "-gpu" in lane.image:
        return [f"{path}.image: {lane.image!r} is a GPU image; serverless has no GPU: use a CPU image"]
    return _check_image(path, lane.image, config.region, "cpu")


def _check_batch(path: str, lane: BatchLaneConfig, config: StackConfig, prices: PriceBook) -> list[str]:
    if lane.instance_type in HOSTING_ONLY:
        return [
            f"{path}.instance_type: {lane.instance_type} runs no transform jobs: choose another, such as ml.c5.xlarge"
        ]
    try:
        processor = prices.processor(lane.instance_type)
    except PriceError as error:
        return [f"{path}.instance_type: {error}"]
    lines = _check_image(path, lane.image, config.region, processor)
    if config.priced_as in prices.regions and lane.usd_per_instance_hour is None:
        try:
            prices.transform_per_hour(config.priced_as, lane.instance_type)
        except PriceError as error:
            lines.append(f"{path}.usd_per_instance_hour: {error}: set it to what AWS charges you")
    return lines


def _check_image(path: str, image: str | None, region: str, processor: images.Processor) -> list[str]:
    try:
        images.choose(image, region, processor)
    except images.ImageError as error:
        return [f"{path}.image: {error}" if image is None else f"{path}.image: {image!r} {error}"]
    return []


def _check_name(path: str, stack: str, model: str, lane: naming.Lane) -> list[str]:
    """The longest name a lane makes is its endpoint configuration's: endpoint, hyphen, hash."""
    return _check_length(path, naming.hashed_name(naming.endpoint_name(stack, model, lane), None))


def _check_length(path: str, longest: str) -> list[str]:
    over = len(longest) - naming.MAX_SAGEMAKER_NAME
    if over <= 0:
        return []
    return [
        f"{path}: {longest} has {len(longest)} characters, SageMaker allows {naming.MAX_SAGEMAKER_NAME}: shorten "
        f"the stack's or the model's name by {over}"
    ]


def _decoded(text: str) -> object:
    """Pulumi hands every value over as text; objects, numbers and booleans are JSON."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value
