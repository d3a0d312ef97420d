"""Which container image serves a lane when the stack names none.

The sample models run on AWS's PyTorch inference containers: the CPU build for serverless (which has no GPU and
refuses images above 10 GB), the GPU build for dedicated instances that have GPUs. Source of account, regions and
tags: the image table of the SageMaker SDK (aws/sagemaker-python-sdk, image_uri_config/pytorch.json;
`retrieve("pytorch", "2.6.0")` in SDK 3.27.0), read 2026-11-30. Only regions whose registry is account 763104351884
are listed; elsewhere set `image`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Processor = Literal["cpu", "gpu"]

ACCOUNT = "763104351884"
REGIONS = frozenset(
    {
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-south-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "ca-central-1",
        "eu-central-1",
        "eu-north-1",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
        "sa-east-1",
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
    }
)
TAGS: dict[Processor, str] = {"cpu": "2.6.0-cpu-py312", "gpu": "2.6.0-gpu-py312"}

_URI = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?P<china>\.cn)?"
    r"/(?P<repository>[a-z0-9][a-z0-9._/-]*)(?::(?P<tag>[\w.-]+)|@sha256:[0-9a-f]{64})"
)


class ImageError(ValueError):
    """No image is known, or an image is not one SageMaker can pull; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Image:
    """A container image in ECR."""

    uri: str
    repository_arn: str


def choose(uri: str | None, region: str, processor: Processor) -> Image:
    """The image a lane names, else the default. Raises `ImageError`."""
    return default(region, processor) if uri is None else parse(uri)


def default(region: str, processor: Processor) -> Image:
    """AWS's PyTorch inference image of a region. Raises `ImageError` for a region that is not in the table."""
    if region not in REGIONS:
        raise ImageError(f"no default image is known for region {region}: set `image` to an ECR image URI there")
    return parse(f"{ACCOUNT}.dkr.ecr.{region}.amazonaws.com/pytorch-inference:{TAGS[processor]}")


def parse(uri: str) -> Image:
    """Read an ECR image URI. Raises `ImageError`: SageMaker pulls endpoint images from ECR."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise ImageError(
            "is not an ECR image: write ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG or …@sha256:DIGEST"
        )
    partition = "aws-cn" if match["china"] else "aws-us-gov" if match["region"].startswith("us-gov-") else "aws"
    return Image(
        uri=uri,
        repository_arn=f"arn:{partition}:ecr:{match['region']}:{match['account']}:repository/{match['repository']}",
    )
