"""Endpoints without processes: their states, what each allows, what is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.events import entry
from workbench.stack.sagemaker.control.rollout import Outcome
from workbench.stack.sagemaker.control.view import Running
from workbench.stack.sagemaker.records import Endpoint

NOTHING = Running({})
STATES = "developer guide: DescribeEndpoint EndpointStatus; botocore DescribeEndpointOutput.EndpointStatus"


def update(config_name: str, **more: Any) -> dict[str, Any]:
    """An UpdateEndpoint request for `e`."""
    return {"EndpointName": "e", "EndpointConfigName": config_name, **more}


def change(name: str = "e", **of_variant: Any) -> dict[str, Any]:
    """An UpdateEndpointWeightsAndCapacities request for variant A."""
    return {"EndpointName": name, "DesiredWeightsAndCapacities": [{"VariantName": "A", **of_variant}]}


def in_service(endpoints: Endpoints, name: str = "e", config_name: str = "one") -> Endpoint:
    """An endpoint that has been created and started."""
    endpoint = endpoints.begin_create({"EndpointName": name, "EndpointConfigName": config_name}, 10.0)
    endpoints.finish_create(endpoint, None, 11.0)
    return endpoint


@pytest.mark.fidelity("endpoint states", "Failed allows only DeleteEndpoint", source=STATES)
def test_create_then_fail(endpoints: Endpoints) -> None:
    """A first deployment that fails leaves Failed with its reason; only deletion is left then."""
    endpoint = endpoints.begin_create({"EndpointName": "e", "EndpointConfigName": "one"}, 10.0)
    assert "ProductionVariants" not in endpoints.describe("e", NOTHING)
    with pytest.raises(AwsError, match="Cannot update in-progress endpoint"):
        endpoints.begin_delete({"EndpointName": "e"}, 10.5)
    endpoints.finish_create(endpoint, "no artifact", 11.0)
    seen = endpoints.describe("e", NOTHING)
    assert (seen["EndpointStatus"], seen["FailureReason"]) == ("Failed", "no artifact")
    for begin in (
        lambda: endpoints.begin_update(update("two"), (), 12.0),
        lambda: endpoints.begin_change(change(DesiredWeight=1), 12.0),
    ):
        with pytest.raises(AwsError, match="in state Failed"):
            begin()
    endpoints.begin_delete({"EndpointName": "e"}, 13.0)
    endpoints.finish_delete(endpoint)
    assert endpoints.all() == []


@pytest.mark.fidelity(
    "pending deployment",
    "PendingDeploymentSummary is there while an endpoint is creating or updating with a new configuration, with each "
    "variant's stage",
    source="botocore: DescribeEndpointOutput.PendingDeploymentSummary, ProductionVariantStatus",
)
def test_pending_deployment(endpoints: Endpoints) -> None:
    """The configuration that starts or takes over is shown with its counts, weights and stage, and then no more."""
    endpoint = endpoints.begin_create({"EndpointName": "e", "EndpointConfigName": "two"}, 10.0)
    pending = endpoints.describe("e", Running({"A": 1}))["PendingDeploymentSummary"]
    assert (pending["EndpointConfigName"], pending["StartTime"]) == ("two", 10.0)
    assert pending["ProductionVariants"] == [
        {
            "VariantName": "A",
            "DeployedImages": [{"SpecifiedImage": "r/i", "ResolvedImage": "r/i", "ResolutionTime": 10.0}],
            "CurrentWeight": 0.0,
            "DesiredWeight": 1.0,
            "CurrentInstanceCount": 1,
            "DesiredInstanceCount": 2,
            "InstanceType": "ml.g5.xlarge",
            "VariantStatus": [{"Status": "Creating", "StartTime": 10.0}],
        }
    ]
    endpoints.finish_create(endpoint, None, 11.0)
    assert "PendingDeploymentSummary" not in endpoints.describe("e", NOTHING)
    endpoints.begin_update(update("one"), (), 12.0)
    endpoints.advance(endpoint, None, "Baking", 0.25, 13.0)
    seen = endpoints.describe("e", Running({"A": 2}, {"A": 1}))
    joining, serving = seen["PendingDeploymentSummary"]["ProductionVariants"][0], seen["ProductionVariants"][0]
    assert joining["VariantStatus"] == [{"Status": "Baking", "StartTime": 13.0}]
    assert (joining["CurrentWeight"], serving["CurrentWeight"], serving["DesiredWeight"]) == (0.25, 0.75, 1.0)
    assert (joining["CurrentInstanceCount"], serving["CurrentInstanceCount"]) == (1, 2)
    endpoints.advance(endpoint, "Deleting", None, 0.5, 14.0)
    serving = endpoints.describe("e", Running({"A": 1}, {"A": 1}))["ProductionVariants"][0]
    assert serving["VariantStatus"] == [{"Status": "Deleting", "StartTime": 14.0}]


@pytest.mark.fidelity(
    "endpoint states",
    "While Updating the old configuration serves and is shown, then the new one",
    source="botocore: UpdateEndpoint",
)
def test_update(endpoints: Endpoints) -> None:
    """While Updating the old configuration is shown; then the new one, with its counts and no reason."""
    endpoint = in_service(endpoints)
    endpoints.begin_update(update("two"), (), 12.0)
    seen = endpoints.describe("E", Running({"A": 1}))
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("Updating", "one")
    assert seen["PendingDeploymentSummary"]["EndpointConfigName"] == "two"
    for begin in (
        lambda: endpoints.begin_update(update("two"), (), 12.5),
        lambda: endpoints.begin_change(change(DesiredWeight=1), 12.5),
        lambda: endpoints.begin_delete({"EndpointName": "e"}, 12.5),
    ):
        with pytest.raises(AwsError, match="Cannot update in-progress endpoint"):
            begin()
    endpoints.finish_update(endpoint, Outcome(), 13.0)
    seen = endpoints.describe("e", Running({"A": 2}))
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "two")
    assert seen["ProductionVariants"][0]["DesiredInstanceCount"] == 2
    assert "FailureReason" not in seen


@pytest.mark.fidelity(
    "failed update",
    "A failed UpdateEndpoint is InService on the OLD configuration with FailureReason, which the next update clears",
    source="hashicorp/terraform-provider-aws#39099; aws-controllers-k8s/sagemaker-controller#7",
)
def test_failed_update(endpoints: Endpoints) -> None:
    """A failed update is InService on the old configuration with FailureReason, until the next update begins."""
    endpoint = in_service(endpoints)
    endpoints.begin_update(update("two"), (), 12.0)
    endpoints.finish_update(endpoint, Outcome("x" * 2000), 13.0)
    seen = endpoints.describe("e", Running({"A": 1}))
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "one")
    assert len(seen["FailureReason"]) == 1024
    endpoints.begin_update(update("two"), (), 14.0)
    assert "FailureReason" not in endpoints.describe("e", NOTHING)


@pytest.mark.fidelity(
    "rollback",
    "A deployment that fails after traffic moved is RollingBack, then InService on the old configuration; when the "
    "rollback fails too it is UpdateRollbackFailed, which another UpdateEndpoint or a deletion ends",
    source="developer guide: deployment-guardrails-rolling; botocore DescribeEndpointOutput.EndpointStatus",
)
def test_rollback(endpoints: Endpoints) -> None:
    """RollingBack still shows both configurations; UpdateRollbackFailed serves, can be updated, but not scaled."""
    endpoint = in_service(endpoints)
    endpoints.begin_update(update("two"), (), 12.0)
    endpoints.advance(endpoint, None, "Baking", 0.75, 12.5)
    endpoints.begin_rollback(endpoint, "an alarm", 13.0)
    seen = endpoints.describe("e", Running({"A": 1}, {"A": 1}))
    assert (seen["EndpointStatus"], seen["FailureReason"]) == ("RollingBack", "an alarm")
    assert seen["PendingDeploymentSummary"]["EndpointConfigName"] == "two"
    endpoints.finish_update(endpoint, Outcome("an alarm, and more", mixed=True), 14.0)
    seen = endpoints.describe("e", Running({"A": 1}))
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("UpdateRollbackFailed", "one")
    assert seen["ProductionVariants"][0]["CurrentWeight"] == 0.25
    assert "PendingDeploymentSummary" not in seen
    with pytest.raises(AwsError, match="in state UpdateRollbackFailed"):
        endpoints.begin_scale("e", "A", 3, 15.0)
    endpoints.begin_update(update("one"), (), 15.0)
    endpoints.finish_update(endpoint, Outcome(), 16.0)
    assert endpoints.describe("e", NOTHING)["EndpointStatus"] == "InService"


RETAIN = {"RetainAllVariantProperties": True}


@pytest.mark.fidelity(
    "retained properties",
    "RetainAllVariantProperties keeps instance counts and weights, ExcludeRetainedVariantProperties takes either from "
    "the new configuration",
    source="botocore: UpdateEndpointInput, VariantProperty",
)
@pytest.mark.parametrize(
    ("more", "count", "weight"),
    [
        ({}, 2, 1.0),
        (RETAIN, 5, 0.5),
        (RETAIN | {"ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredInstanceCount"}]}, 2, 0.5),
        (RETAIN | {"ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}]}, 5, 1.0),
    ],
)
def test_retained_properties(endpoints: Endpoints, more: dict[str, Any], count: int, weight: float) -> None:
    """What was scaled survives an update only when the caller retains it."""
    endpoint = in_service(endpoints)
    endpoints.begin_change(change(DesiredInstanceCount=5, DesiredWeight=0.5), 12.0)
    endpoints.finish_change(endpoint, None, 13.0)
    endpoints.begin_update(update("two", **more), (), 14.0)
    endpoints.finish_update(endpoint, Outcome(), 15.0)
    assert (endpoint.desired, endpoint.weights) == ({"A": count}, {"A": weight})
    assert endpoint.plan.variants[0].count == count


@pytest.mark.fidelity(
    "conversion",
    "A real-time endpoint cannot become serverless; a serverless one can become real-time",
    source="developer guide: serverless-endpoints",
)
@pytest.mark.fidelity(
    "scaled variants",
    "A variant with a scalable target keeps its name and instance type",
    source="developer guide: endpoint-scaling; hashicorp/terraform-provider-aws#14337",
)
def test_forbidden_updates(endpoints: Endpoints) -> None:
    """A scaled variant keeps its instance type; real-time never becomes serverless, the reverse may."""
    in_service(endpoints)
    with pytest.raises(AwsError, match="must be deregistered as scalable targets"):
        endpoints.begin_update(update("big"), ["A"], 12.0)
    with pytest.raises(AwsError, match="Cannot convert"):
        endpoints.begin_update(update("serverless"), (), 12.0)
    in_service(endpoints, "s", "serverless")
    updating, _ = endpoints.begin_update({"EndpointName": "s", "EndpointConfigName": "one"}, (), 12.0)
    assert updating.status == "Updating"


@pytest.mark.fidelity(
    "weights and capacities",
    "The endpoint is Updating, with the old values as Current and the asked ones as Desired, then InService",
    source="botocore: UpdateEndpointWeightsAndCapacities, ProductionVariantSummary",
)
def test_weights_and_capacities(endpoints: Endpoints) -> None:
    """Current and Desired differ while an endpoint changes, and agree when it is done."""
    endpoint = in_service(endpoints)
    endpoints.begin_change(change(DesiredInstanceCount=3, DesiredWeight=0.25), 12.0)
    seen = endpoints.describe("e", Running({"A": 1}))
    assert seen["EndpointStatus"] == "Updating"
    assert "PendingDeploymentSummary" not in seen
    summary = seen["ProductionVariants"][0]
    assert (summary["CurrentWeight"], summary["DesiredWeight"]) == (1.0, 0.25)
    assert (summary["CurrentInstanceCount"], summary["DesiredInstanceCount"]) == (1, 3)
    assert summary["VariantStatus"] == [{"Status": "Updating", "StartTime": 12.0}]
    endpoints.finish_change(endpoint, None, 13.0)
    summary = endpoints.describe("e", Running({"A": 3}))["ProductionVariants"][0]
    assert (summary["CurrentWeight"], summary["CurrentInstanceCount"]) == (0.25, 3)
    assert "VariantStatus" not in summary


@pytest.mark.fidelity(
    "failed change",
    "A change of weights or capacities that fails is RollingBack, then InService with the previous values",
    source="botocore: DescribeEndpointOutput.EndpointStatus (RollingBack)",
)
def test_failed_change(endpoints: Endpoints) -> None:
    """A change that fails leaves everything as it was, and says why."""
    endpoint = in_service(endpoints)
    endpoints.begin_change(change(DesiredInstanceCount=3, DesiredWeight=0.25), 12.0)
    endpoints.begin_rollback(endpoint, "no capacity", 13.0)
    assert endpoints.describe("e", NOTHING)["EndpointStatus"] == "RollingBack"
    endpoints.finish_change(endpoint, "no capacity", 14.0)
    seen = endpoints.describe("e", Running({"A": 1}))
    assert (seen["EndpointStatus"], seen["FailureReason"]) == ("InService", "no capacity")
    assert (endpoint.desired, endpoint.weights) == ({"A": 1}, {"A": 1.0})


@pytest.mark.fidelity(
    "weights and capacities",
    "MaxConcurrency and ProvisionedConcurrency change in place",
    source="botocore: DesiredWeightAndCapacity.ServerlessUpdateConfig",
)
def test_serverless_sizes(endpoints: Endpoints) -> None:
    """MaxConcurrency and ProvisionedConcurrency change in place, each alone or both; memory stays."""
    endpoint = in_service(endpoints, "s", "serverless")
    endpoints.begin_change(change("s", ServerlessUpdateConfig={"ProvisionedConcurrency": 2}), 12.0)
    summary = endpoints.describe("s", NOTHING)["ProductionVariants"][0]
    assert summary["CurrentServerlessConfig"] == {"MemorySizeInMB": 2048, "MaxConcurrency": 5}
    assert summary["DesiredServerlessConfig"] == {
        "MemorySizeInMB": 2048,
        "MaxConcurrency": 5,
        "ProvisionedConcurrency": 2,
    }
    endpoints.finish_change(endpoint, None, 13.0)
    endpoints.begin_change(change("s", ServerlessUpdateConfig={"MaxConcurrency": 9}), 14.0)
    endpoints.finish_change(endpoint, None, 15.0)
    summary = endpoints.describe("s", NOTHING)["ProductionVariants"][0]
    assert summary["CurrentServerlessConfig"]["MaxConcurrency"] == 9
    assert summary["CurrentServerlessConfig"]["ProvisionedConcurrency"] == 2
    endpoints.begin_provision("s", "A", 4, 16.0)
    assert endpoint.sizes["A"].provisioned == 4


BAD_CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("e", {"VariantName": "B", "DesiredWeight": 1}, "Variant B of endpoint e not found."),
    ("e", {"DesiredInstanceCount": 0}, "DesiredInstanceCount must be at least 1"),
    ("e", {"ServerlessUpdateConfig": {"MaxConcurrency": 1}}, "which is not serverless"),
    ("s", {"DesiredInstanceCount": 2}, "cannot be given for the serverless variant A"),
    ("s", {"ServerlessUpdateConfig": {"ProvisionedConcurrency": 6}}, "less than or equal to MaxConcurrency"),
    ("s", {"ServerlessUpdateConfig": {"MaxConcurrency": 1, "ProvisionedConcurrency": 2}}, "less than or equal"),
]


@pytest.mark.parametrize(("name", "of_variant", "message"), BAD_CHANGES)
def test_bad_changes(endpoints: Endpoints, name: str, of_variant: dict[str, Any], message: str) -> None:
    """A change that makes no sense is refused and changes nothing."""
    endpoint = in_service(endpoints, name, "serverless" if name == "s" else "one")
    before = endpoint.capacity
    with pytest.raises(AwsError) as caught:
        endpoints.begin_change(change(name, **{"VariantName": "A", **of_variant}), 12.0)
    assert message in str(caught.value)
    assert (endpoint.status, endpoint.capacity) == ("InService", before)


def test_a_variant_changes_once(endpoints: Endpoints) -> None:
    """A request names each variant once."""
    in_service(endpoints)
    request = {"EndpointName": "e", "DesiredWeightsAndCapacities": [{"VariantName": "A"}, {"VariantName": "A"}]}
    with pytest.raises(AwsError, match="repeated: A"):
        endpoints.begin_change(request, 12.0)


@pytest.mark.fidelity(
    "configurations in use",
    "An endpoint keeps what it runs when its configuration and model are deleted",
    source="botocore: UpdateEndpoint (EndpointConfig in use); ministryofjustice/analytical-platform#9863",
)
def test_deleting_what_is_in_use(catalog: Catalog, endpoints: Endpoints) -> None:
    """An endpoint keeps its plan when its configuration and model are deleted."""
    in_service(endpoints)
    catalog.delete_endpoint_config({"EndpointConfigName": "one"})
    catalog.delete_model({"ModelName": "m"})
    seen = endpoints.describe("e", Running({"A": 1}))
    assert seen["EndpointConfigName"] == "one"
    assert seen["ProductionVariants"][0]["DeployedImages"][0]["SpecifiedImage"] == "r/i"


GUARDED = {
    "BlueGreenUpdatePolicy": {
        "TrafficRoutingConfiguration": {
            "Type": "CANARY",
            "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 50},
            "WaitIntervalInSeconds": 60,
        }
    }
}


@pytest.mark.fidelity(
    "deployment configuration",
    "LastDeploymentConfig is the last one given; RetainDeploymentConfig uses it again, also one given at creation",
    source="developer guide: deployment-guardrails-blue-green-canary; botocore UpdateEndpointInput",
)
def test_deployment_configuration(endpoints: Endpoints) -> None:
    """A deployment configuration is used again only when the caller says so."""
    endpoint = endpoints.begin_create(
        {"EndpointName": "e", "EndpointConfigName": "one", "DeploymentConfig": GUARDED}, 10.0
    )
    endpoints.finish_create(endpoint, None, 11.0)
    _, rollout = endpoints.begin_update(update("two", RetainDeploymentConfig=True), (), 12.0)
    assert rollout.steps == (0.5, 1.0)
    assert endpoints.describe("e", NOTHING)["LastDeploymentConfig"] == GUARDED
    endpoints.finish_update(endpoint, Outcome(), 13.0)
    _, rollout = endpoints.begin_update(update("one"), (), 14.0)
    assert rollout.steps == (1.0,)
    assert "LastDeploymentConfig" not in endpoints.describe("e", NOTHING)


@pytest.mark.fidelity(
    "events",
    "SageMaker Endpoint State Change at every status, with the status in capitals and times in milliseconds",
    source="developer guide: automating-sagemaker-with-eventbridge",
)
def test_events(catalog: Catalog, endpoints: Endpoints) -> None:
    """Each new status is told once, with all that the guide's example has."""
    told: list[Any] = []
    endpoints.on_status = lambda e: told.append(entry(e, catalog.tags.of(e.arn)))
    endpoint = endpoints.begin_create(
        {"EndpointName": "e", "EndpointConfigName": "one", "Tags": [{"Key": "team", "Value": "ml"}]}, 10.0
    )
    endpoints.finish_create(endpoint, None, 11.0)
    endpoints.begin_update(update("two"), (), 12.0)
    endpoints.begin_rollback(endpoint, "an alarm", 13.0)
    endpoints.finish_update(endpoint, Outcome("an alarm"), 14.0)
    endpoints.begin_delete({"EndpointName": "e"}, 15.0)
    details = [json.loads(t["Detail"]) for t in told]
    assert [d["EndpointStatus"] for d in details] == [
        "CREATING", "IN_SERVICE", "UPDATING", "ROLLING_BACK", "IN_SERVICE", "DELETING",
    ]  # fmt: skip
    arn = "arn:aws:sagemaker:us-east-1:000000000000:endpoint/e"
    assert (told[0]["Source"], told[0]["Resources"]) == ("aws.sagemaker", [arn])
    assert details[1] == {
        "EndpointName": "e",
        "EndpointArn": arn,
        "EndpointConfigName": "one",
        "ProductionVariants": [{"VariantName": "A", "DesiredWeight": 1.0, "DesiredInstanceCount": 1}],
        "EndpointStatus": "IN_SERVICE",
        "CreationTime": 10_000,
        "LastModifiedTime": 11_000,
        "Tags": {"team": "ml"},
    }
    assert details[4]["FailureReason"] == "an alarm"


@pytest.mark.fidelity(
    "listing",
    "ListEndpoints filters by status and by when endpoints were modified",
    source="botocore: ListEndpointsInput",
)
def test_listed_endpoints(endpoints: Endpoints) -> None:
    """Endpoints can be listed by status and by when they were last modified."""
    in_service(endpoints, "a")
    in_service(endpoints, "b")
    endpoints.begin_scale("b", "A", 2, 20.0)
    assert [e["EndpointName"] for e in endpoints.list({"StatusEquals": "Updating"})["Endpoints"]] == ["b"]
    assert [e["EndpointName"] for e in endpoints.list({"LastModifiedTimeBefore": 20.0})["Endpoints"]] == ["a"]
    by_status = endpoints.list({"SortBy": "Status", "SortOrder": "Ascending"})["Endpoints"]
    assert [e["EndpointStatus"] for e in by_status] == ["InService", "Updating"]
