"""Requests that the tests of the control plane send."""

from __future__ import annotations

from typing import Any

SERVERLESS = {"MemorySizeInMB": 2048, "MaxConcurrency": 5}


def variant(**changes: Any) -> dict[str, Any]:
    """A dedicated variant; None removes a member."""
    base = {"VariantName": "A", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    return {k: v for k, v in (base | changes).items() if v is not None}


def serverless(**changes: Any) -> dict[str, Any]:
    """A serverless variant."""
    size = SERVERLESS | changes.pop("size", {})
    return variant(InstanceType=None, InitialInstanceCount=None, ServerlessConfig=size, **changes)


def config(name: str, *variants: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A CreateEndpointConfig request."""
    return {"EndpointConfigName": name, "ProductionVariants": list(variants), **more}
