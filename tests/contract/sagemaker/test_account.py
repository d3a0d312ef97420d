"""A new account's quotas, and states that last: an emulator of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError

from tests.contract.sagemaker.emulator import HTTP, Aws, Emulator

GPU = "ml.g5.xlarge for endpoint usage"
CONCURRENCY = "Maximum total concurrency that can be allocated across all serverless endpoints"
OPTIONS = (
    "--quota-profile",
    "new-account",
    "--quota",
    "Number of endpoints=6",
    "--creating",
    "30",
    "--updating",
    "30",
    "--deleting",
    "30",
)


@pytest.fixture(scope="module")
def account(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """States of 30 emulated seconds, which are half of a real one."""
    emulator = Emulator.start(
        tmp_path_factory.mktemp("account") / "state", aws.url, *OPTIONS, "--time-scale", "60", "--startup-timeout", "6"
    )
    emulator.config("gpu", emulator.model("model"))
    emulator.config("five", "model", serverless=5)
    emulator.config("six", "model", serverless=6)
    yield emulator
    emulator.stop()


@pytest.mark.fidelity(
    "quotas",
    "ResourceLimitExceeded, HTTP 400, at CreateEndpoint and UpdateEndpoint",
    source="aws/amazon-sagemaker-examples#307; quota L-96300102",
)
def test_quotas(account: Emulator) -> None:
    """A new account gets no GPU and ten concurrent serverless requests, until its quotas are raised."""
    exceeded = account.sagemaker.exceptions.ResourceLimitExceeded
    with pytest.raises(exceeded, match=f"'{GPU}' is 0 Instances, with current utilization of 0 Instances") as caught:
        account.endpoint("refused", "gpu")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    account.endpoint("a", "five")
    with pytest.raises(exceeded, match="is 10 None, with current utilization of 5 None and a request delta of 6"):
        account.endpoint("b", "six")
    account.endpoint("b", "five")
    account.settled("b")
    with pytest.raises(exceeded, match="current utilization of 10 None and a request delta of 1 None"):
        account.sagemaker.update_endpoint(EndpointName="b", EndpointConfigName="six")
    account.admin("PUT", "/quotas", {GPU: 1})
    shown = {q["name"]: q for q in account.admin("GET", "/quotas")["quotas"]}
    assert shown[CONCURRENCY]["used"] == 10
    assert shown[GPU] == {"name": GPU, "value": 1, "used": 0, "set": True}
    account.endpoint("gpu", "gpu")
    assert shown["Number of endpoints"] == {"name": "Number of endpoints", "value": 6, "used": 2, "set": True}
    refused = HTTP.request("PUT", f"{account.url}/_inferlane/quotas", json={"more": 1})
    assert (refused.status, "there is no quota 'more'" in refused.json()["message"]) == (400, True)


@pytest.mark.fidelity(
    "waiters",
    "EndpointInService and EndpointDeleted end as botocore's waiters expect: success, failure, deletion",
    source="botocore: sagemaker waiters-2",
)
def test_states_that_waiters_see(account: Emulator, aws: Aws) -> None:
    """Creating, Updating and Deleting last as long as asked; both waiters return, and fail on Failed."""
    often: Any = {"Delay": 0.2, "MaxAttempts": 100}
    began = time.monotonic()
    account.config("cpu", "model", serverless=1)
    account.admin(
        "PUT", "/quotas", {"Maximum total concurrency that can be allocated across all serverless endpoints": 99}
    )
    account.endpoint("seen", "cpu")
    assert account.sagemaker.describe_endpoint(EndpointName="seen")["EndpointStatus"] == "Creating"
    in_service, deleted = (
        account.sagemaker.get_waiter("endpoint_in_service"),
        account.sagemaker.get_waiter("endpoint_deleted"),
    )
    in_service.wait(EndpointName="seen", WaiterConfig=often)
    assert time.monotonic() - began > 0.5
    account.sagemaker.update_endpoint(EndpointName="seen", EndpointConfigName="five")
    assert account.sagemaker.describe_endpoint(EndpointName="seen")["EndpointStatus"] == "Updating"
    in_service.wait(EndpointName="seen", WaiterConfig=often)
    account.sagemaker.delete_endpoint(EndpointName="seen")
    assert account.sagemaker.describe_endpoint(EndpointName="seen")["EndpointStatus"] == "Deleting"
    deleted.wait(EndpointName="seen", WaiterConfig=often)
    with pytest.raises(ClientError, match="Could not find endpoint"):
        account.sagemaker.describe_endpoint(EndpointName="seen")
    account.config("none", account.model("none", "s3://models/missing.tar.gz"), serverless=1)
    account.endpoint("failing", "none")
    with pytest.raises(WaiterError, match="Failed"):
        in_service.wait(EndpointName="failing", WaiterConfig=often)
    with pytest.raises(WaiterError, match="Failed"):
        deleted.wait(EndpointName="failing", WaiterConfig=often)
    with pytest.raises(WaiterError, match="ValidationException"):
        in_service.wait(EndpointName="never", WaiterConfig=often)
