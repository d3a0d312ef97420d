"""The control plane as documents and back: what an emulator that was killed comes back with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.stack.sagemaker.documents import SERVERLESS
from tests.unit.stack.sagemaker.test_endpoints import NOTHING, change, in_service, update
from workbench.stack.sagemaker.control import capacity, snapshot
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.journal import Row
from workbench.stack.sagemaker.records import Endpoint, Serverless

NOW = 500.0


def restarted(catalog: Catalog, endpoints: Endpoints) -> tuple[Catalog, Endpoints]:
    """What an emulator has that starts with what this one has kept."""
    again = Catalog("us-east-1", "000000000000")
    known = Endpoints(again)
    for row in snapshot.save(catalog, endpoints):
        assert snapshot.load(Row(row.kind, row.name, json.loads(json.dumps(row.document))), again, known, NOW)
    return again, known


def seen(endpoint: Endpoint) -> tuple[str, str | None]:
    return endpoint.status, endpoint.failure_reason


def test_models_configurations_and_tags(catalog: Catalog, endpoints: Endpoints) -> None:
    """They are described and listed as before, tags included."""
    arn = catalog.arn("model", "m")
    catalog.tags.add({"ResourceArn": arn, "Tags": [{"Key": "team", "Value": "ml"}]})
    again, _ = restarted(catalog, endpoints)
    assert again.describe_model({"ModelName": "m"}) == catalog.describe_model({"ModelName": "m"})
    for name in ("one", "serverless"):
        request = {"EndpointConfigName": name}
        assert again.describe_endpoint_config(request) == catalog.describe_endpoint_config(request)
    assert again.list_models({}) == catalog.list_models({})
    assert again.tags.of(arn) == {"team": "ml"}


def test_an_endpoint_that_served_comes_back_with_what_it_had(catalog: Catalog, endpoints: Endpoints) -> None:
    """Its scaled counts and weights, its resolved plan though model and configuration are deleted: SystemUpdating."""
    endpoint = in_service(endpoints, config_name="two")
    endpoints.begin_change(change(DesiredInstanceCount=4, DesiredWeight=0.5), 12.0)
    endpoints.finish_change(endpoint, None, 13.0)
    catalog.delete_endpoint_config({"EndpointConfigName": "two"})
    catalog.delete_model({"ModelName": "m"})
    _, known = restarted(catalog, endpoints)
    again = known.get("e")
    assert seen(again) == ("SystemUpdating", None)
    assert (again.desired, again.weights, again.created) == ({"A": 4}, {"A": 0.5}, endpoint.created)
    plan = capacity.applied(again.plan, again.capacity)
    assert [(p.count, p.weight, p.container.model_data_url) for p in plan.variants] == [(4, 0.5, "s3://b/m.tar.gz")]
    assert known.describe("e", NOTHING)["EndpointConfigName"] == "two"
    known.finish_restart(again, None, 501.0)
    assert seen(again) == ("InService", None)


def test_a_serverless_variants_size(catalog: Catalog, endpoints: Endpoints) -> None:
    """A changed MaxConcurrency is what the endpoint starts with again."""
    endpoint = in_service(endpoints, config_name="serverless")
    endpoints.begin_change(change(ServerlessUpdateConfig={"MaxConcurrency": 9}), 12.0)
    endpoints.finish_change(endpoint, None, 13.0)
    again = restarted(catalog, endpoints)[1].get("e")
    plan = capacity.applied(again.plan, again.capacity)
    assert plan.variants[0].variant.serverless == Serverless(SERVERLESS["MemorySizeInMB"], 9)


@pytest.mark.parametrize("rolling_back", [False, True])
def test_an_update_that_was_cut_off(catalog: Catalog, endpoints: Endpoints, rolling_back: bool) -> None:
    """The endpoint goes on with the configuration that it had, and FailureReason says why."""
    endpoint = in_service(endpoints)
    endpoints.begin_update(update("two"), (), 12.0)
    if rolling_back:
        endpoints.begin_rollback(endpoint, "an alarm", 13.0)
    again = restarted(catalog, endpoints)[1].get("e")
    assert seen(again) == ("SystemUpdating", "an alarm" if rolling_back else snapshot.CUT_OFF)
    assert (again.plan.config.name, again.desired, again.pending) == ("one", {"A": 1}, None)


def test_a_change_that_was_cut_off(catalog: Catalog, endpoints: Endpoints) -> None:
    """The endpoint goes on with the counts that it had."""
    in_service(endpoints)
    endpoints.begin_scale("e", "A", 3, 12.0)
    again = restarted(catalog, endpoints)[1].get("e")
    assert (seen(again), again.desired) == (("SystemUpdating", snapshot.CUT_OFF), {"A": 1})


def test_creating_failed_and_deleting(catalog: Catalog, endpoints: Endpoints) -> None:
    """Creating goes on, Failed stays so with its reason, what was being deleted is gone, its tags with it."""
    begun: dict[str, Any] = {
        n: endpoints.begin_create({"EndpointName": n, "EndpointConfigName": "one"}, 10.0) for n in ("new", "bad")
    }
    endpoints.finish_create(begun["bad"], "no artifact", 11.0)
    in_service(endpoints, "old")
    endpoints.begin_delete({"EndpointName": "old"}, 12.0)
    again, known = restarted(catalog, endpoints)
    assert {e.name: seen(e) for e in known.all()} == {"new": ("Creating", None), "bad": ("Failed", "no artifact")}
    assert known.describe("new", NOTHING)["PendingDeploymentSummary"]["EndpointConfigName"] == "one"
    assert catalog.arn("endpoint", "old") not in again.tags.all()


@pytest.mark.fidelity(
    "endpoint states",
    "SystemUpdating: the endpoint undergoes maintenance and cannot be updated, deleted or scaled until that is done",
    source="botocore: DescribeEndpointOutput.EndpointStatus",
)
def test_system_updating_allows_nothing(catalog: Catalog, endpoints: Endpoints) -> None:
    """While it starts again, an endpoint is neither updated nor changed nor deleted; it shows its variants."""
    in_service(endpoints)
    _, known = restarted(catalog, endpoints)
    for begin in (
        lambda: known.begin_update(update("two"), (), 501.0),
        lambda: known.begin_change(change(DesiredWeight=1), 501.0),
        lambda: known.begin_delete({"EndpointName": "e"}, 501.0),
    ):
        with pytest.raises(Exception, match="in-progress endpoint"):
            begin()
    assert known.describe("e", NOTHING)["ProductionVariants"][0]["CurrentInstanceCount"] == 0
    known.finish_restart(known.get("e"), "no artifact", 502.0)
    assert seen(known.get("e")) == ("Failed", "no artifact")


def test_other_rows_are_left_alone(catalog: Catalog, endpoints: Endpoints) -> None:
    """A row of another room is said to be none of ours."""
    assert not snapshot.load(Row("transform-job", "j", {}), catalog, endpoints, NOW)
