"""Service quotas: what endpoints reserve, and how AWS refuses more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.stack.sagemaker.documents import config, serverless, variant
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.quotas import CONCURRENCY, ENDPOINTS, QuotaError, Quotas, profile
from workbench.stack.sagemaker.control.rollout import Outcome
from workbench.stack.sagemaker.records import Endpoint

G5 = "ml.g5.xlarge for endpoint usage"


@pytest.fixture
def quotas() -> Quotas:
    """Four GPU instances, ten concurrent serverless requests."""
    return Quotas("new-account", {G5: 4})


@pytest.fixture
def endpoints(catalog: Catalog, quotas: Quotas) -> Endpoints:
    """Under those quotas, with further serverless configurations of three and eight concurrent requests."""
    for most in (3, 8):
        catalog.create_endpoint_config(config(f"s{most}", serverless(size={"MaxConcurrency": most})), 5.0)
    catalog.create_endpoint_config(config("large", serverless(size={"MemorySizeInMB": 4096})), 5.0)
    catalog.create_endpoint_config(config("cpu", variant(InstanceType="ml.m5.large")), 5.0)
    return Endpoints(catalog, quotas)


def create(endpoints: Endpoints, name: str, config_name: str) -> Endpoint:
    """Bring an endpoint InService."""
    endpoint = endpoints.begin_create({"EndpointName": name, "EndpointConfigName": config_name}, 10.0)
    endpoints.finish_create(endpoint, None, 11.0)
    return endpoint


def refusal(act: Any) -> str:
    """The text of a ResourceLimitExceeded."""
    with pytest.raises(AwsError) as caught:
        act()
    assert (caught.value.code, caught.value.status) == ("ResourceLimitExceeded", 400)
    return str(caught.value.message)


@pytest.mark.fidelity(
    "quotas",
    "New accounts have no GPU instances for endpoints; the refusal is ResourceLimitExceeded in AWS's words",
    source="aws/amazon-sagemaker-examples#307; aws-samples/sagemaker-custom-project-templates#51",
)
def test_instances_of_a_new_account(catalog: Catalog) -> None:
    """The text names the quota, its value, its use and what was asked for; nothing is created."""
    endpoints = Endpoints(catalog, Quotas("new-account"))
    text = refusal(lambda: create(endpoints, "e", "one"))
    assert text == (
        "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 0 Instances, with current utilization of "
        "0 Instances and a request delta of 1 Instances. Please use AWS Service Quotas to request an increase for this "
        "quota. If AWS Service Quotas is not available, contact AWS support to request an increase for this quota."
    )
    assert endpoints.all() == []


@pytest.mark.fidelity(
    "quotas",
    "Instances of a type are counted over all endpoints from creation to deletion",
    source="Service Quotas: '<type> for endpoint usage'; aws-samples/sagemaker-custom-project-templates#51",
)
def test_instances_add_up(endpoints: Endpoints) -> None:
    """Instances count over all endpoints, from creation to deletion; other types are not touched."""
    create(endpoints, "a", "two")
    b = create(endpoints, "b", "two")
    assert "is 4 Instances, with current utilization of 4" in refusal(lambda: create(endpoints, "c", "one"))
    create(endpoints, "c", "cpu")
    endpoints.begin_delete({"EndpointName": "b"}, 12.0)
    assert endpoints.use()[G5] == 4
    endpoints.finish_delete(b)
    create(endpoints, "d", "one")


@pytest.mark.fidelity(
    "quotas",
    "An update of a real-time endpoint needs room for the new fleet beside the old one",
    source="botocore: UpdateEndpoint (deploys to a new fleet, ResourceLimitExceeded)",
)
def test_updates_need_room_for_both_fleets(endpoints: Endpoints) -> None:
    """While two fleets run both count; afterwards one does."""
    endpoint = create(endpoints, "a", "two")
    endpoints.begin_update({"EndpointName": "a", "EndpointConfigName": "two"}, (), 12.0)
    assert endpoints.use()[G5] == 4
    endpoints.finish_update(endpoint, Outcome(), 13.0)
    assert endpoints.use()[G5] == 2
    create(endpoints, "b", "one")
    text = refusal(lambda: endpoints.begin_update({"EndpointName": "a", "EndpointConfigName": "two"}, (), 14.0))
    assert "current utilization of 3 Instances and a request delta of 2" in text
    assert endpoint.status == "InService"


def test_scaling_counts(endpoints: Endpoints) -> None:
    """More instances are refused; fewer never are, and count until they are gone."""
    endpoint = create(endpoints, "a", "two")
    assert "request delta of 3" in refusal(lambda: endpoints.begin_scale("a", "A", 5, 12.0))
    endpoints.begin_scale("a", "A", 1, 12.0)
    assert endpoints.use()[G5] == 2
    endpoints.finish_change(endpoint, None, 13.0)
    assert endpoints.use()[G5] == 1


@pytest.mark.fidelity(
    "quotas",
    "MaxConcurrency is reserved when a serverless endpoint is created or updated, over all endpoints; new accounts "
    "have 10",
    source="quota L-96300102; repost.aws QUY0gXNLrdTH6eqqA4hv5FeA",
)
def test_serverless_concurrency(endpoints: Endpoints) -> None:
    """What does not fit is refused when asked for, not when used; an update needs only the difference."""
    create(endpoints, "a", "s3")
    text = refusal(lambda: create(endpoints, "b", "s8"))
    assert text.startswith(
        "The account-level service limit 'Maximum total concurrency that can be allocated across all serverless "
        "endpoints' is 10 None, with current utilization of 3 None and a request delta of 8 None."
    )
    create(endpoints, "b", "s3")
    assert endpoints.use()[CONCURRENCY] == 6
    text = refusal(lambda: endpoints.begin_update({"EndpointName": "b", "EndpointConfigName": "s8"}, (), 12.0))
    assert "current utilization of 6 None and a request delta of 5 None" in text
    more = {"VariantName": "A", "ServerlessUpdateConfig": {"MaxConcurrency": 8}}
    assert "delta of 5" in refusal(
        lambda: endpoints.begin_change({"EndpointName": "b", "DesiredWeightsAndCapacities": [more]}, 12.0)
    )
    endpoints.begin_update({"EndpointName": "b", "EndpointConfigName": "s3"}, (), 12.0)
    assert endpoints.use()[CONCURRENCY] == 6


@pytest.mark.fidelity(
    "quotas",
    "New accounts have serverless endpoints of 3072 MB at most",
    source="AWS's refusal 'Memory size in MB per serverless endpoint' is 3072 MBs, seen in public deployment notes",
)
def test_serverless_memory(endpoints: Endpoints) -> None:
    """The quota is per endpoint."""
    text = refusal(lambda: create(endpoints, "a", "large"))
    assert "'Memory size in MB per serverless endpoint' is 3072 MBs, with current utilization of 0 MBs and a" in text


def test_number_of_endpoints(endpoints: Endpoints, quotas: Quotas) -> None:
    """A failed endpoint holds its name and nothing else."""
    quotas.change({ENDPOINTS: 1})
    endpoint = endpoints.begin_create({"EndpointName": "a", "EndpointConfigName": "one"}, 10.0)
    endpoints.finish_create(endpoint, "no", 11.0)
    assert endpoints.use() == {ENDPOINTS: 1, "Maximum number of serverless endpoints": 0}
    assert "'Number of endpoints' is 1 Endpoints" in refusal(lambda: create(endpoints, "b", "one"))


def test_changes(quotas: Quotas) -> None:
    """Quotas are set by name and put back with null; a change that makes no sense changes none."""
    quotas.change({"ml.p5.48xlarge for transform job usage": 1, G5: None})
    assert (quotas.value("ml.p5.48xlarge for transform job usage"), quotas.value(G5)) == (1, 0)
    bad: Any
    for bad in ({"ml.g5.xlarge": 1}, {CONCURRENCY: -1}, {CONCURRENCY: True}, {CONCURRENCY: 1.5}, []):
        with pytest.raises(QuotaError):
            quotas.change({"ml.m5.large for endpoint usage": 7, **bad} if isinstance(bad, dict) else bad)
    assert quotas.value("ml.m5.large for endpoint usage") == 2
    shown = quotas.shown({CONCURRENCY: 3})
    assert shown["profile"] == "new-account"
    assert {"name": CONCURRENCY, "value": 10, "used": 3, "set": False} in shown["quotas"]  # type: ignore[operator]


def test_profiles() -> None:
    """Profiles have names; the generous one has what AWS documents for its larger Regions."""
    assert Quotas(profile("generous")).value(CONCURRENCY) == 1000
    with pytest.raises(QuotaError, match="there are generous, new-account"):
        profile("rich")
