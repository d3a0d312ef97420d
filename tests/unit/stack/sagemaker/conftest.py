"""A control plane without processes."""

from __future__ import annotations

import pytest

from tests.unit.stack.sagemaker.documents import config, serverless, variant
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints


@pytest.fixture
def catalog() -> Catalog:
    """With model `m` and configurations `one`, `two`, `big` (g5.2xlarge) and `serverless`."""
    catalog = Catalog("us-east-1", "000000000000")
    catalog.create_model(
        {"ModelName": "m", "PrimaryContainer": {"Image": "r/i", "ModelDataUrl": "s3://b/m.tar.gz"}}, 1.0
    )
    catalog.create_endpoint_config(config("one", variant()), 1.0)
    catalog.create_endpoint_config(config("two", variant(InitialInstanceCount=2)), 2.0)
    catalog.create_endpoint_config(config("big", variant(InstanceType="ml.g5.2xlarge")), 3.0)
    catalog.create_endpoint_config(config("serverless", serverless()), 4.0)
    return catalog


@pytest.fixture
def endpoints(catalog: Catalog) -> Endpoints:
    """Without any endpoint."""
    return Endpoints(catalog)
