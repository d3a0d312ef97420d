"""The lanes as deployed: containers, sizes, guardrail, scaling, and what a model's role may do."""

from __future__ import annotations

import pytest

from infra.components.dedicated_lane import BUSY_SLOTS
from tests.infra.capture import Program, arn
from tests.infra.conftest import named, of_type, statements

BUCKET = "inferlane-growth-artifacts-0a1b2c3"
PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
REPOSITORY = "arn:aws:ecr:us-east-1:763104351884:repository/pytorch-inference"


def test_containers_run_the_package(programs: dict[str, Program]) -> None:
    """Both lanes run the same artifact, on the image that fits: GPU with a worker a slot, CPU with one worker."""
    program = programs["growth"]
    containers = {
        lane: named(program, f"moderation-{lane}-model")["primaryContainer"] for lane in ("dedicated", "serverless")
    }
    key = named(program, "moderation-artifact")["key"]

    assert {container["modelDataUrl"] for container in containers.values()} == {f"s3://{BUCKET}/{key}"}
    assert containers["dedicated"]["image"].endswith("/pytorch-inference:2.6.0-gpu-py312")
    assert containers["serverless"]["image"].endswith("/pytorch-inference:2.6.0-cpu-py312")
    told = {lane: container["environment"] for lane, container in containers.items()}
    workers = {lane: environment["SAGEMAKER_MODEL_SERVER_WORKERS"] for lane, environment in told.items()}
    assert workers == {"dedicated": "4", "serverless": "1"}
    bounds = {lane: environment["INFERLANE_MAX_QUEUE_MS"] for lane, environment in told.items()}
    assert bounds == {"dedicated": "200", "serverless": "0"}, "SageMaker gives a serverless container one at a time"


def test_the_dedicated_variant(programs: dict[str, Program]) -> None:
    """Instances as the stack file says, requests to the least busy one."""
    (variant,) = named(programs["growth"], "moderation-dedicated-config")["productionVariants"]

    assert (variant["variantName"], variant["instanceType"], variant["initialInstanceCount"]) == (
        *("AllTraffic", "ml.g5.xlarge", 2),
    )
    assert variant["routingConfigs"] == [{"routingStrategy": "LEAST_OUTSTANDING_REQUESTS"}]


def test_the_serverless_variant(programs: dict[str, Program]) -> None:
    """Memory and concurrency as the stack file says."""
    (variant,) = named(programs["growth"], "moderation-serverless-config")["productionVariants"]

    assert variant["serverlessConfig"] == {"memorySizeInMb": 4096, "maxConcurrency": 40}
    assert "deploymentConfig" not in named(programs["growth"], "moderation-serverless-endpoint")


def test_an_update_is_a_canary_where_there_are_two_instances(programs: dict[str, Program]) -> None:
    """Half the new fleet takes traffic first while the alarm on 5xx answers can still roll it back."""
    program = programs["growth"]
    guardrail = named(program, "moderation-dedicated-endpoint")["deploymentConfig"]
    alarm = named(program, "moderation-dedicated-errors")

    assert guardrail["autoRollbackConfiguration"] == {"alarms": [{"alarmName": alarm["name"]}]}
    assert guardrail["blueGreenUpdatePolicy"] == {
        "trafficRoutingConfiguration": {
            "type": "CANARY",
            "canarySize": {"type": "CAPACITY_PERCENT", "value": 50},
            "waitIntervalInSeconds": 300,
        },
        "terminationWaitInSeconds": 300,
        "maximumExecutionTimeoutInSeconds": 2400,
    }
    assert alarm["dimensions"] == {"EndpointName": "inferlane-growth-moderation-dedicated", "VariantName": "AllTraffic"}
    assert (alarm["namespace"], alarm["metricName"]) == ("AWS/SageMaker", "Invocation5XXErrors")


def test_one_instance_moves_all_at_once(programs: dict[str, Program]) -> None:
    """A canary is at most half a fleet, so a single instance has none; the alarm still rolls back."""
    guardrail = named(programs["local"], "moderation-dedicated-endpoint")["deploymentConfig"]

    assert guardrail["blueGreenUpdatePolicy"]["trafficRoutingConfiguration"]["type"] == "ALL_AT_ONCE"
    assert guardrail["autoRollbackConfiguration"]["alarms"]


def test_the_fleet_grows_with_demand(programs: dict[str, Program]) -> None:
    """Between the stack file's bounds, keeping 70 % of an instance's slots busy with what is asked of the model."""
    program = programs["growth"]
    target, policy = (
        named(program, "moderation-dedicated-scaling"),
        named(program, "moderation-dedicated-scaling-policy"),
    )
    tracking = policy["targetTrackingScalingPolicyConfiguration"]
    queries = {query["id"]: query for query in tracking["customizedMetricSpecification"]["metrics"]}

    assert target["resourceId"] == "endpoint/inferlane-growth-moderation-dedicated/variant/AllTraffic"
    assert (target["minCapacity"], target["maxCapacity"]) == (2, 6)
    assert tracking["targetValue"] == 2.8
    assert "predefinedMetricSpecification" not in tracking
    assert [id_ for id_, query in queries.items() if query["returnData"]] == ["busy"]
    variant = [
        {"name": "EndpointName", "value": "inferlane-growth-moderation-dedicated"},
        {"name": "VariantName", "value": "AllTraffic"},
    ]
    assert {id_: query["metricStat"] for id_, query in queries.items() if id_ != "busy"} == {
        "demand": summed(
            "Inferlane", "Demand", [{"name": "model", "value": "moderation"}, {"name": "stack", "value": "growth"}]
        ),
        "calls": summed("AWS/SageMaker", "Invocations", variant),
        "shares": summed("AWS/SageMaker", "InvocationsPerInstance", variant),
    }


def summed(namespace: str, metric: str, dimensions: list[dict[str, str]]) -> dict[str, object]:
    """A metric's sum over the minute."""
    return {"metric": {"namespace": namespace, "metricName": metric, "dimensions": dimensions}, "stat": "Sum"}


@pytest.mark.parametrize(
    ("demand_s", "calls", "instances", "busy"),
    [
        (240.0, 1200, 1, 4.0),  # four slots' worth of work a second, on one instance
        (240.0, 1200, 4, 1.0),  # the same on four
        (960.0, 1200, 4, 4.0),  # three quarters of the arrivals were spilled: demand still counts them
        (0.0, 0, 3, 0.0),  # nobody calls
        (240.0, 0, 3, 0.0),  # the endpoint is given nothing
    ],
)
def test_what_is_tracked_is_busy_slots_an_instance(demand_s: float, calls: int, instances: int, busy: float) -> None:
    """The expression, evaluated as CloudWatch does, is a minute's demand shared by the instances that took calls."""
    shares = sum([1 / instances] * calls)
    names = {"demand": demand_s, "calls": calls, "shares": shares, "IF": lambda c, a, b: a() if c else b}
    expression = BUSY_SLOTS.replace("PERIOD(demand)", "60").replace("IF(calls > 0, ", "IF(calls > 0, lambda: ")

    assert eval(expression, names) == pytest.approx(busy)


def test_a_model_may_read_its_artifacts(programs: dict[str, Program]) -> None:
    """Its role: this model's objects, the key through S3, its own metrics, a registry token."""
    assert statements(programs["growth"], "moderation-grants") == [
        {"Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::{BUCKET}/models/moderation/*"]},
        {
            "Action": ["kms:Decrypt"],
            "Resource": [arn("kms", "key/key-1")],
            "Condition": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}},
        },
        {
            "Action": ["cloudwatch:PutMetricData"],
            "Resource": ["*"],
            "Condition": {"StringEquals": {"cloudwatch:namespace": ["/aws/sagemaker/Endpoints", "AWS/SageMaker"]}},
        },
        {"Action": ["ecr:GetAuthorizationToken"], "Resource": ["*"]},
    ]


def test_a_lane_may_pull_its_image_and_write_its_log(programs: dict[str, Program]) -> None:
    """Each lane adds its own log group and its image's repository to the model's role."""
    program = programs["growth"]
    for lane in ("dedicated", "serverless"):
        group = arn("logs", f"log-group:/aws/sagemaker/Endpoints/inferlane-growth-moderation-{lane}:*")

        assert named(program, f"moderation-{lane}-grants")["role"] == "inferlane-growth-moderation-model"
        assert statements(program, f"moderation-{lane}-grants") == [
            {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [group]},
            {"Action": PULL, "Resource": [REPOSITORY]},
        ]


def test_only_their_services_assume_the_roles(programs: dict[str, Program]) -> None:
    """Functions run as Lambda, containers as SageMaker, deliveries as Firehose; Scheduler starts what has its time."""
    trusted = {
        resource["inputs"]["name"]: resource["inputs"]["assumeRolePolicy"].split('"Service": "')[1].split('"')[0]
        for resource in of_type(programs["local"], "Role")
    }

    assert trusted == {
        "inferlane-local-moderation-model": "sagemaker.amazonaws.com",
        "inferlane-local-moderation-batch": "sagemaker.amazonaws.com",
        "inferlane-local-moderation-heavy-model": "sagemaker.amazonaws.com",
        "inferlane-local-moderation-heavy-batch": "sagemaker.amazonaws.com",
        "inferlane-local-nightly": "states.amazonaws.com",
        "inferlane-local-capture": "firehose.amazonaws.com",
        **{f"inferlane-local-{name}-schedule": "scheduler.amazonaws.com" for name in ("collect", "audit", "nightly")},
        **{
            f"inferlane-local-{name}": "lambda.amazonaws.com"
            for name in ("collect", "settle", "promote", "audit", "jobs", "prepare", "report")
        },
        "inferlane-local-route": "lambda.amazonaws.com",
        "inferlane-local-authorize": "lambda.amazonaws.com",
        "inferlane-local-validate": "lambda.amazonaws.com",
    }
