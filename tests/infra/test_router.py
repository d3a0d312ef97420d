"""The router as deployed: functions, gateway, who may come in, and what each role may do."""

from __future__ import annotations

from typing import Any

import pytest

from functions import settings
from infra.components.front_door import JOB_ROUTES
from tests.infra.capture import Program, arn
from tests.infra.conftest import JWT, named, of_type, one, statements

KEY = arn("kms", "key/key-1")


def invoked_through(function: str) -> str:
    """The ARN by which API Gateway calls the alias `live` of a function."""
    return (
        "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/"
        f"{arn('lambda', f'function:{function}:live')}/invocations"
    )


def logs_of(function: str) -> dict[str, Any]:
    """The statement that lets a function write its own log."""
    group = arn("logs", f"log-group:/aws/lambda/{function}:*")
    return {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [group]}


def test_the_route_function_is_sized_by_the_stack_file(programs: dict[str, Program]) -> None:
    """Handler, runtime and architecture are fixed; memory and timeout come from `router`; each update is a version."""
    function = named(programs["growth"], "route-function")

    assert function["handler"] == "functions.handlers.route.handler"
    assert (function["runtime"], function["architectures"]) == ("python3.13", ["arm64"])
    assert (function["memorySize"], function["timeout"]) == (1024, 30)
    assert function["publish"] is True


def test_the_route_function_reads_what_the_program_writes(programs: dict[str, Program]) -> None:
    """Its environment is exactly what `settings` names, and reads back as the stack file's values."""
    variables = named(programs["local"], "route-function")["environment"]["variables"]
    read = settings.read_router(variables | {"AWS_REGION": "us-east-1", "LAMBDA_TASK_ROOT": "/var/task"})

    assert variables == settings.router_environment(
        stack="local",
        policy_application="app1",
        policy_environment="env1",
        policy_profile="pro1",
        metric_period_s=10,
        snapshot_ttl_s=3,
        policy_ttl_s=15,
        log_level="INFO",
        snapshot_table="inferlane-local-snapshot",
        jobs_table="inferlane-local-jobs",
        work_queue="https://sqs.us-east-1.amazonaws.com/000000000000/inferlane-local-work",
        promote_queue="https://sqs.us-east-1.amazonaws.com/000000000000/inferlane-local-promote",
        data_bucket="inferlane-local-data-0a1b2c3",
        capture_stream="inferlane-local-capture",
    )
    assert read.snapshot_table == "inferlane-local-snapshot"
    assert (read.stack, read.metric_period_s, read.snapshot_ttl_s, read.policy_ttl_s) == ("local", 10, 3, 15)


def test_the_authorizer_reads_what_the_program_writes(programs: dict[str, Program]) -> None:
    """The authorize function knows the keys table and nothing of lanes or policy."""
    function = named(programs["local"], "authorize-function")

    assert function["handler"] == "functions.handlers.authorize.handler"
    lambdas = {"AWS_REGION": "us-east-1"}
    read = settings.read_authorizer(function["environment"]["variables"] | lambdas)
    assert read.keys_table == "inferlane-local-keys"
    assert function["timeout"] == 10
    assert settings.TOPOLOGY_FILE not in function["code"]["archive"]


@pytest.mark.parametrize("name", ["route", "authorize"])
def test_callers_name_the_alias(programs: dict[str, Program], name: str) -> None:
    """The gateway calls `live`, which points at the version just published, and only the gateway may."""
    program = programs["local"]
    alias = named(program, f"{name}-live")

    assert alias == {"name": "live", "functionName": f"inferlane-local-{name}", "functionVersion": "7"}
    uris = [
        named(program, "front-door-integration")["integrationUri"],
        named(program, "front-door-proxy-authorizer")["authorizerUri"],
    ]
    assert invoked_through(f"inferlane-local-{name}") in uris
    (permission,) = (
        resource["inputs"]
        for resource in of_type(program, "Permission")
        if resource["inputs"]["function"] == f"inferlane-local-{name}"
    )
    assert permission["principal"] == "apigateway.amazonaws.com"
    assert permission["qualifier"] == "live"
    assert permission["sourceArn"].startswith(arn("execute-api", "api1/"))


def test_the_gateway_passes_requests_whole(programs: dict[str, Program]) -> None:
    """Payload format 2.0, and as long as an HTTP API waits at all."""
    integration = named(programs["local"], "front-door-integration")

    assert (integration["integrationType"], integration["payloadFormatVersion"]) == ("AWS_PROXY", "2.0")
    assert integration["timeoutMilliseconds"] == 30_000


def routes(program: Program) -> dict[str, str]:
    """Route key -> authorization."""
    return {
        resource["inputs"]["routeKey"]: resource["inputs"]["authorizationType"]
        for resource in of_type(program, "Route")
    }


def test_only_liveness_is_open_with_api_keys(programs: dict[str, Program]) -> None:
    """With `auth: api_key`, everything but GET /healthz asks the authorizer, which sees the key's header only."""
    program = programs["local"]
    authorizer = named(program, "front-door-proxy-authorizer")

    assert routes(program) == {
        "GET /healthz": "NONE",
        **dict.fromkeys(("ANY /{proxy+}", *JOB_ROUTES.values()), "CUSTOM"),
    }
    assert authorizer["identitySources"] == ["$request.header.x-api-key"]
    assert (authorizer["authorizerPayloadFormatVersion"], authorizer["enableSimpleResponses"]) == ("2.0", True)


def test_only_liveness_is_open_with_iam(programs: dict[str, Program]) -> None:
    """With `auth: iam`, requests are signed: there is neither an authorizer nor a table of keys."""
    program = programs["growth"]

    assert routes(program) == {"GET /healthz": "NONE", "ANY /{proxy+}": "AWS_IAM"}
    assert of_type(program, "Authorizer") == []
    assert [resource["name"] for resource in of_type(program, "Table")] == ["snapshot-table"]
    assert "authorize-function" not in [resource["name"] for resource in of_type(program, "Function")]


def test_only_liveness_is_open_with_tokens(programs: dict[str, Program]) -> None:
    """With `auth: jwt`, the gateway itself checks the issuer's tokens: no function, no table, no other header."""
    program = programs["growth-jwt"]
    authorizer = named(program, "front-door-proxy-authorizer")

    assert routes(program) == {"GET /healthz": "NONE", "ANY /{proxy+}": "JWT"}
    assert authorizer["identitySources"] == ["$request.header.Authorization"]
    assert authorizer["jwtConfiguration"] == {"issuer": JWT["issuer"], "audiences": JWT["audience"]}
    assert named(program, "front-door-proxy")["authorizerId"] == "front-door-proxy-authorizer-id"
    assert "authorize-function" not in [resource["name"] for resource in of_type(program, "Function")]


def test_the_stage_is_throttled_and_logged(programs: dict[str, Program]) -> None:
    """The stage file's limits hold for all routes, and every call is written to the gateway's log group."""
    stage = named(programs["growth"], "front-door-stage")

    assert stage["name"] == "$default"
    assert stage["defaultRouteSettings"] == {"throttlingRateLimit": 1000, "throttlingBurstLimit": 2000}
    group = arn("logs", "log-group:/aws/vendedlogs/apigateway/inferlane-growth")
    assert stage["accessLogSettings"]["destinationArn"] == group


def test_the_router_may_call_its_endpoints_and_read(programs: dict[str, Program]) -> None:
    """Its role: its log, exactly the stack's two endpoints, metrics, the policy, and single items of the snapshot."""
    assert statements(programs["growth"], "route-grants") == [
        logs_of("inferlane-growth-route"),
        {
            "Action": ["sagemaker:InvokeEndpoint"],
            "Resource": [
                arn("sagemaker", "endpoint/inferlane-growth-moderation-dedicated"),
                arn("sagemaker", "endpoint/inferlane-growth-moderation-serverless"),
            ],
        },
        {"Action": ["cloudwatch:GetMetricData"], "Resource": ["*"]},
        {
            "Action": ["appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration"],
            "Resource": [arn("appconfig", "application/app1/environment/env1/configuration/pro1")],
        },
        {
            "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
            "Resource": [arn("dynamodb", "table/inferlane-growth-snapshot")],
        },
        {
            "Action": ["kms:Decrypt"],
            "Resource": [KEY],
            "Condition": {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}},
        },
    ]


def test_the_authorizer_may_read_keys(programs: dict[str, Program]) -> None:
    """Its role: its log, single items of the keys table, and the stack's key through DynamoDB."""
    assert statements(programs["local"], "authorize-grants") == [
        logs_of("inferlane-local-authorize"),
        {"Action": ["dynamodb:GetItem"], "Resource": [arn("dynamodb", "table/inferlane-local-keys")]},
        {
            "Action": ["kms:Decrypt"],
            "Resource": [KEY],
            "Condition": {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}},
        },
    ]


def test_keys_are_kept_safe(programs: dict[str, Program]) -> None:
    """The keys table is encrypted with the stack's key and can be restored to any second."""
    table = named(programs["local"], "key-auth-keys")

    assert table["hashKey"] == "key_hash"
    assert table["serverSideEncryption"] == {"enabled": True, "kmsKeyArn": KEY}
    assert table["pointInTimeRecovery"] == {"enabled": True}


def test_the_snapshot_is_encrypted_and_expires(programs: dict[str, Program]) -> None:
    """The shared snapshot's table costs by the request, is encrypted with the stack's key, and drops what is old."""
    table = named(programs["growth"], "snapshot-table")

    assert (table["name"], table["hashKey"], table["billingMode"]) == (
        *("inferlane-growth-snapshot", "pk", "PAY_PER_REQUEST"),
    )
    assert table["attributes"] == [{"name": "pk", "type": "S"}]
    assert table["ttl"] == {"attributeName": "ttl", "enabled": True}
    assert table["serverSideEncryption"] == {"enabled": True, "kmsKeyArn": KEY}


def test_a_policy_is_validated_before_it_is_taken(programs: dict[str, Program]) -> None:
    """AppConfig may call the alias of a function that reads a document as the router does and only writes its log."""
    program = programs["growth"]
    function, permission = named(program, "validate-function"), named(program, "policy-calls-validate")

    assert named(program, "policy-profile")["validators"] == [
        {"type": "LAMBDA", "content": arn("lambda", "function:inferlane-growth-validate:live")}
    ]
    assert one(program, "policy-calls-validate")["urn"] in one(program, "policy-profile")["depends_on"]
    assert (permission["principal"], permission["qualifier"]) == ("appconfig.amazonaws.com", "live")
    assert function["handler"] == "functions.handlers.validate.handler"
    assert statements(program, "validate-grants") == [logs_of("inferlane-growth-validate")]
    assert settings.TOPOLOGY_FILE not in function["code"]["archive"]


def test_the_policy_is_deployed_as_json(programs: dict[str, Program]) -> None:
    """The YAML policy becomes a JSON hosted version, rolled out as the stack file says."""
    program = programs["growth"]
    version, rollout = named(program, "policy-version"), named(program, "policy-rollout")

    assert version["contentType"] == "application/json"
    assert version["content"].startswith("{")
    assert '"schema":"inferlane/policy/v1"' in version["content"]
    assert named(program, "policy-deployment")["configurationVersion"] == "1"
    assert (rollout["deploymentDurationInMinutes"], rollout["growthFactor"], rollout["finalBakeTimeInMinutes"]) == (
        *(10, 20, 10),
    )
