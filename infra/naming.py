"""How resources are called.

Rules: what other systems refer to (endpoints, functions, tables) has a stable name built from the stack; what SageMaker
cannot change in place (models, endpoint configurations) carries a hash of its content, because a configuration replaced
under its old name is not picked up by the endpoint (hashicorp/terraform-provider-aws#48993). Only the bucket is left to
Pulumi's own naming: bucket names are global.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

Lane = Literal["dedicated", "serverless"]

PROJECT = "inferlane"
VARIANT = "AllTraffic"
"""The one production variant of every endpoint."""
MAX_SAGEMAKER_NAME = 63
"""Endpoint, endpoint configuration, variant and model names (botocore sagemaker 2017-07-24, EndpointName.max)."""
HASH_LENGTH = 10


def stack_name(stack: str, what: str) -> str:
    """`inferlane-{stack}-{what}`: functions, tables, log groups, applications."""
    return f"{PROJECT}-{stack}-{what}"


def endpoint_name(stack: str, model: str, lane: Lane) -> str:
    """The stable name of a lane's endpoint."""
    return stack_name(stack, f"{model}-{lane}")


def batch_name(stack: str, model: str) -> str:
    """What a model's batch lane is called: its role, and the beginning of its SageMaker Models' names."""
    return stack_name(stack, f"{model}-batch")


def transform_jobs(stack: str) -> str:
    """How the names of all transform jobs of a stack begin; a run's is this and sixteen hex digits."""
    return stack_name(stack, "")


def hashed_name(name: str, content: object) -> str:
    """`name` followed by a hash of `content` (any JSON value)."""
    return f"{name}-{content_hash(content)}"


def content_hash(content: object) -> str:
    """The first hex digits of SHA-256 over the canonical JSON of `content`."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:HASH_LENGTH]


def file_hash(path: Path) -> str:
    """The first hex digits of SHA-256 over a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:HASH_LENGTH]
