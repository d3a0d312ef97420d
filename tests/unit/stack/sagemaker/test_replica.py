"""What keeps a replica from starting before there is any process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack.sagemaker.documents import config, serverless, variant
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.faults import FaultTable
from workbench.stack.sagemaker.model.artifacts import Artifact, ArtifactStore
from workbench.stack.sagemaker.model.replica import GIB, Host, LogNumbers, ReplicaFactory, StartError
from workbench.stack.sagemaker.records import DataKind
from workbench.stack.sagemaker.settings import Settings


class Store(ArtifactStore):
    """Has an archive of that size behind every URL."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    async def fetch(self, url: str, kind: DataKind = "archive") -> Artifact:
        """See `ArtifactStore`."""
        return Artifact(Path(url), self._size_bytes)


def factory(size_bytes: int, of_variant: dict[str, Any], folder: Path) -> ReplicaFactory:
    """Of a variant whose model has that size."""
    catalog = Catalog("us-east-1", "000000000000")
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "r/i", "ModelDataUrl": "s3://b/k"}}, 1.0)
    catalog.create_endpoint_config(config("c", of_variant), 1.0)
    host = Host(Settings(folder), None, Store(size_bytes), LogNumbers(folder))  # type: ignore[arg-type]
    return ReplicaFactory(host, "e", catalog.plan("e", "c", 1.0).variants[0], FaultTable().view("e", "A"))


@pytest.mark.fidelity(
    "disk",
    "A model must fit on VolumeSizeInGB (30 GB unless given), or on a serverless container's 5 GB",
    source="botocore: ProductionVariant.VolumeSizeInGB; developer guide: serverless-endpoints",
)
@pytest.mark.parametrize(("of_variant", "gb"), [(variant(), 30), (variant(VolumeSizeInGB=2), 2), (serverless(), 5)])
async def test_models_must_fit_on_the_disk(tmp_path: Path, of_variant: dict[str, Any], gb: int) -> None:
    """One byte too many fails the start, with both sizes in the reason."""
    assert (await factory(gb * GIB, of_variant, tmp_path).fetch()).size_bytes == gb * GIB
    with pytest.raises(StartError, match=f"{gb}.0 GB do not fit on the {gb} GB disk of production variant A"):
        await factory(gb * GIB + 1, of_variant, tmp_path).fetch()
