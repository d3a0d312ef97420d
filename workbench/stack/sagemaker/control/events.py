"""What EventBridge is told of endpoints: "SageMaker Endpoint State Change", at every new status. Pure.

The detail's fields, statuses in capitals (IN_SERVICE) and times in epoch milliseconds are those of the example in the
developer guide ("Automating with EventBridge"). Like there, of a variant only the weight and count wanted are given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from workbench.stack.sagemaker.records import Endpoint

SOURCE = "aws.sagemaker"
DETAIL_TYPE = "SageMaker Endpoint State Change"


def entry(endpoint: Endpoint, tags: Mapping[str, str]) -> Mapping[str, Any]:
    """The endpoint's event, as PutEvents takes it."""
    return {
        "Source": SOURCE,
        "DetailType": DETAIL_TYPE,
        "Resources": [endpoint.arn],
        "Detail": json.dumps(_detail(endpoint, tags)),
    }


def _detail(endpoint: Endpoint, tags: Mapping[str, str]) -> Mapping[str, Any]:
    detail: dict[str, Any] = {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "EndpointConfigName": endpoint.plan.config.name,
        "ProductionVariants": [
            {"VariantName": name, "DesiredWeight": weight, "DesiredInstanceCount": endpoint.desired.get(name, 0)}
            for name, weight in endpoint.weights.items()
        ],
        "EndpointStatus": re.sub(r"(?<=[a-z])(?=[A-Z])", "_", endpoint.status).upper(),
        "CreationTime": round(endpoint.created * 1000),
        "LastModifiedTime": round(endpoint.modified * 1000),
        "Tags": dict(tags),
    }
    return detail | ({"FailureReason": endpoint.failure_reason} if endpoint.failure_reason else {})
