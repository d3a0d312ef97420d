"""What Application Auto Scaling asks of the service that it scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

Dimension = Literal["sagemaker:variant:DesiredInstanceCount", "sagemaker:variant:DesiredProvisionedConcurrency"]
INSTANCES: Dimension = "sagemaker:variant:DesiredInstanceCount"
CONCURRENCY: Dimension = "sagemaker:variant:DesiredProvisionedConcurrency"
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


@dataclass(frozen=True, slots=True)
class Reading:
    """A scalable dimension of one variant, now."""

    desired: int
    """What the service was last told to have."""
    steady: bool
    """Whether it can be told to change: the endpoint is InService."""
    least: int = 1
    """The lowest minimum a target may have."""
    most: int | None = None
    """The highest maximum a target may have, where the service has one."""
    failure: str | None = None
    """Why the last change did not succeed."""


class Resources(Protocol):
    """The service's variants."""

    def read(self, endpoint: str, variant: str, dimension: Dimension) -> Reading:
        """Raises `AwsError` when there is no such variant, or it has no such dimension."""

    def change(self, endpoint: str, variant: str, dimension: Dimension, count: int) -> None:
        """Begin to bring the dimension to `count`. Raises `AwsError`."""
