"""The real AWS provider deploys, changes and destroys each stack of the Pulumi program on the offline host.

pulumi-aws wraps this provider, so its code is what `pulumi up` runs against AWS: its checks of arguments, its waits,
and its reading back of everything that it wrote. The program runs unmodified; what it registers is said in Terraform's
JSON (`terraform/capture.py`). Skipped where terraform or the provider is not installed.

What MiniStack gets wrong is in `HOST_FAULTS`, by resource and attribute. Any other drift fails, and so does a row that
no longer occurs. Nothing of SageMaker or Application Auto Scaling may ever stand there: that is our own emulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.terraform import cli
from tests.conformance.terraform.capture import PROVIDER
from tests.infra.conftest import config_values
from workbench.nightly.machine import machine_of
from workbench.stack.cloud import Cloud
from workbench.stack.layout import project_root

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True)
class HostFault:
    """Attributes of a type of resource that MiniStack does not give back as they were set."""

    type: str
    attributes: tuple[str, ...]
    cause: str
    until_update: bool = False
    """The provider's next apply mends it, by another call."""


HOST_FAULTS = (
    HostFault(
        "aws_apigatewayv2_authorizer",
        ("jwt_configuration",),
        "GetAuthorizer shows an empty jwtConfiguration for a Lambda authorizer, which has none",
    ),
    HostFault(
        "aws_appconfig_deployment",
        ("tags", "tags_all"),
        "StartDeployment drops its Tags; TagResource keeps them",
        until_update=True,
    ),
    HostFault(
        "aws_cloudwatch_metric_alarm",
        (
            "actions_enabled", "alarm_description", "dimensions", "evaluate_low_sample_count_percentiles",
            "extended_statistic", "period", "statistic", "treat_missing_data",
        ),
        "DescribeAlarms in the Query protocol leaves out most of what PutMetricAlarm was given",
    ),
    HostFault(
        "aws_kinesis_firehose_delivery_stream",
        ("extended_s3_configuration.custom_time_zone",),
        "DescribeDeliveryStream leaves out CustomTimeZone, by which objects are named all the same",
    ),
    HostFault(
        "aws_s3_object",
        ("tags", "tags_all"),
        "CreateMultipartUpload drops x-amz-tagging (the provider uploads more than 5 MB in parts); PutObjectTagging "
        "keeps it",
        until_update=True,
    ),
)  # fmt: skip
UPDATES: Mapping[str, Mapping[str, object]] = {
    "local": {"models.moderation.serverless.memory_mb": 3072, "models.moderation.dedicated.min_instances": 2},
    "growth": {"models.moderation.dedicated.min_instances": 3, "protect": False},
    "mature": {"models.moderation.dedicated.min_instances": 3, "protect": False},
    "prototype": {"models.moderation.serverless.memory_mb": 3072, "protect": False},
}
"""Stack -> a change that replaces an endpoint configuration; protected stacks lose their protection with it."""
ENDPOINT, CONFIG = "aws_sagemaker_endpoint", "aws_sagemaker_endpoint_configuration"


@pytest.fixture(scope="module")
def schema(host: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The provider's schema; skips where there is no terraform, or no provider for it."""
    folder = tmp_path_factory.mktemp("provider")
    (folder / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": {"aws": PROVIDER}}}))
    try:
        terraform = cli.open_in(folder, host.environment())
        terraform.init()
    except cli.MissingError as missing:
        pytest.skip(f"the AWS provider is not checked: {missing}")
    file = folder / "schema.json"
    file.write_text(terraform.schema())
    print(f"hashicorp/aws {terraform.version()}")
    return file


@pytest.mark.fidelity(
    "clients",
    "The AWS provider creates models, configurations, endpoints and scalable targets, finds them as it made them, "
    "moves an endpoint to a new configuration before it deletes the old one, and deletes all",
    source="hashicorp/terraform-provider-aws 5.100.0",
)
@pytest.mark.parametrize("stack", UPDATES)
def test_the_provider_deploys_updates_and_destroys(stack: str, host: Cloud, schema: Path, tmp_path: Path) -> None:
    """Valid; applied; no drift; an update replaces the configuration first and moves the endpoint; no drift; gone."""
    terraform = cli.open_in(tmp_path, host.environment())
    kinds = _capture(stack, {}, schema, tmp_path)
    terraform.init()
    assert terraform.validate() == []
    assert {change.actions for change in terraform.plan()} == {("create",)}
    assert terraform.apply() == []
    first_configs = _serving(host, stack)
    if "aws_sfn_state_machine" in kinds:
        _check_batch(host, stack)
    _check_drift(terraform.plan(), [fault for fault in HOST_FAULTS if fault.type in kinds])

    _capture(stack, UPDATES[stack], schema, tmp_path)
    planned = terraform.plan()
    replaced = [change.actions for change in planned if change.type == CONFIG]
    assert replaced
    assert set(replaced) == {("create", "delete")}
    moved = [change.actions for change in planned if change.type == ENDPOINT]
    assert moved == [("update",)] * len(replaced)
    assert not [change for change in planned if "delete" in change.actions and change.type != CONFIG]
    assert terraform.apply() == []
    assert len(_serving(host, stack) - first_configs) == len(replaced)
    if "aws_sfn_state_machine" in kinds:
        _check_batch(host, stack)
    _check_drift(terraform.plan(), [f for f in HOST_FAULTS if f.type in kinds and not f.until_update])

    assert terraform.destroy() == []
    assert terraform.standing() == []
    assert _left(host, stack) == []


def _capture(stack: str, changes: Mapping[str, object], schema: Path, folder: Path) -> set[str]:
    """Write the stack's configuration, some keys of it changed; returns its types of resources."""
    command = [sys.executable, "-m", "tests.conformance.terraform.capture", "--stack", stack]
    for key, value in config_values(stack, changes).items():
        command += ["--set", f"inferlane:{key}={value if isinstance(value, str) else json.dumps(value)}"]
    command += ["--schema", str(schema), "--out", str(folder)]
    done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return set(json.loads((folder / "main.tf.json").read_text())["resource"])


def _check_drift(changes: Iterable[cli.Change], expected: Iterable[HostFault]) -> None:
    found = {(change.type, attribute) for change in changes for attribute in change.attributes}
    listed = {(fault.type, attribute) for fault in expected for attribute in fault.attributes}
    assert found - listed == set(), "drift that is nobody's known fault"
    assert listed - found == set(), "MiniStack has mended this: take it out of HOST_FAULTS"
    assert {actions for change in changes for actions in change.actions} <= {"update"}


def _serving(host: Cloud, stack: str) -> set[str]:
    """The configurations that the stack's endpoints serve; each endpoint answers with the model's verdict."""
    sagemaker, runtime = host.client("sagemaker"), host.client("sagemaker-runtime")
    configs = set()
    for row in sagemaker.list_endpoints(NameContains=f"inferlane-{stack}-")["Endpoints"]:
        name = row["EndpointName"]
        seen = sagemaker.describe_endpoint(EndpointName=name)
        assert (seen["EndpointStatus"], seen.get("FailureReason")) == ("InService", None)
        configs.add(seen["EndpointConfigName"])
        body = json.dumps({"text": "Thank you, this was a great help."})
        answer = runtime.invoke_endpoint(EndpointName=name, Body=body, ContentType="application/json")
        assert json.loads(answer["Body"].read())["label"] == "ok"
    listed = sagemaker.list_endpoint_configs(NameContains=f"inferlane-{stack}-")["EndpointConfigs"]
    assert {row["EndpointConfigName"] for row in listed} == configs, "a configuration that no endpoint uses"
    return configs


def _check_batch(host: Cloud, stack: str) -> None:
    """The collector takes its turn, and the recheck of a day without captures goes to its end."""
    answer = host.client("lambda").invoke(FunctionName=f"inferlane-{stack}-collect", Qualifier="live")
    assert "FunctionError" not in answer, answer["Payload"].read()
    night = machine_of(stack, host.client, pause_s=0.5).run("2020-01-01", None, print)
    assert night.outcome == "nothing"


def _left(host: Cloud, stack: str) -> list[Any]:
    """What still bears the stack's name where its resources were."""
    sagemaker, scaling = host.client("sagemaker"), host.client("application-autoscaling")
    name = f"inferlane-{stack}-"
    rows = [
        *sagemaker.list_endpoints(NameContains=name)["Endpoints"],
        *sagemaker.list_endpoint_configs(NameContains=name)["EndpointConfigs"],
        *sagemaker.list_models(NameContains=name)["Models"],
        *scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"],
        *host.client("s3").list_buckets()["Buckets"],
        *host.client("lambda").list_functions()["Functions"],
        *host.client("lambda").list_event_source_mappings()["EventSourceMappings"],
        *host.client("sqs").list_queues().get("QueueUrls", []),
        *host.client("dynamodb").list_tables()["TableNames"],
        *host.client("scheduler").list_schedules()["Schedules"],
        *host.client("scheduler").list_schedule_groups()["ScheduleGroups"],
        *host.client("events").list_rules()["Rules"],
        *host.client("stepfunctions").list_state_machines()["stateMachines"],
        *host.client("firehose").list_delivery_streams()["DeliveryStreamNames"],
        *host.client("iam").list_roles()["Roles"],
        *host.client("logs").describe_log_groups()["logGroups"],
        *host.client("cloudwatch").describe_alarms()["MetricAlarms"],
    ]
    return [row for row in rows if name in json.dumps(row, default=str)]
