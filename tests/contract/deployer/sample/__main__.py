"""One of each: what a stack of ours is made of, as small as it goes. `variant` and `memory` make it change."""

import json

import pulumi
import pulumi_aws as aws

stack = pulumi.get_stack()
config = pulumi.Config()
memory = config.require_int("memory")
variant = config.require("variant")
instance_type = config.get("instance_type") or "ml.m5.large"
extra = config.get_bool("extra") or False
secret = config.get_secret("token") or "none"
tags = {"stack": stack}
name = f"sample-{stack}"


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


key = aws.kms.Key(
    "key", description=f"sample {variant}", enable_key_rotation=True, deletion_window_in_days=7, tags=tags
)
aws.kms.Alias("key-alias", name=f"alias/{name}", target_key_id=key.key_id)

bucket = aws.s3.Bucket("data", force_destroy=True, tags=tags)
versioning = aws.s3.BucketVersioning(
    "data-versioning", bucket=bucket.id, versioning_configuration={"status": "Enabled"}
)
aws.s3.BucketLifecycleConfiguration(
    "data-lifecycle",
    bucket=bucket.id,
    rules=[{"id": "old", "status": "Enabled", "noncurrent_version_expiration": {"noncurrent_days": 7}}],
)
note = aws.s3.BucketObjectv2(
    "note",
    bucket=bucket.bucket,
    key="note.txt",
    source=pulumi.StringAsset(f"note {variant}"),
    content_type="text/plain",
    opts=pulumi.ResourceOptions(depends_on=[versioning]),
)

table = aws.dynamodb.Table(
    "jobs",
    name=name,
    billing_mode="PAY_PER_REQUEST",
    hash_key="id",
    attributes=[{"name": "id", "type": "S"}],
    ttl={"attribute_name": "expires", "enabled": True},
    point_in_time_recovery={"enabled": True},
    server_side_encryption={"enabled": True, "kms_key_arn": key.arn},
    tags=tags,
)

logs = aws.cloudwatch.LogGroup("logs", name=f"/aws/lambda/{name}", retention_in_days=1, tags=tags)
role = aws.iam.Role(
    "role", assume_role_policy=trust("lambda.amazonaws.com"), description=f"sample {variant}", tags=tags
)
grants = aws.iam.RolePolicy(
    "grants",
    role=role.id,
    policy=table.arn.apply(
        lambda arn: json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": arn}]}
        )
    ),
)
SOURCE = """import base64, json, os
def handler(event, context):
    print("called")
    if "configurationProfileId" in event:  # as a validator
        if b"refuse" in base64.b64decode(event["content"]):
            raise ValueError("rules[0].order: unknown lane 'gpu'\\nrules[1].id: missing")
        return None
    body = {"version": context.function_version, "memory": os.environ["MEMORY"], "variant": os.environ["VARIANT"]}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
"""
function = aws.lambda_.Function(
    "function",
    name=name,
    role=role.arn,
    runtime="python3.13",
    handler="index.handler",
    code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(SOURCE), "variant.txt": pulumi.StringAsset(variant)}),
    memory_size=memory,
    timeout=10,
    publish=True,
    environment={"variables": {"MEMORY": str(memory), "VARIANT": variant, "TOKEN": secret}},
    tags=tags,
    opts=pulumi.ResourceOptions(depends_on=[grants, logs]),
)
live = aws.lambda_.Alias("live", name="live", function_name=function.name, function_version=function.version)
api = aws.apigatewayv2.Api("api", protocol_type="HTTP", tags=tags)
integration = aws.apigatewayv2.Integration(
    "integration",
    api_id=api.id,
    integration_type="AWS_PROXY",
    integration_method="POST",
    integration_uri=live.invoke_arn,
    payload_format_version="2.0",
    timeout_milliseconds=10000,
)
route = aws.apigatewayv2.Route(
    "route", api_id=api.id, route_key="GET /hello", target=pulumi.Output.concat("integrations/", integration.id)
)
stage = aws.apigatewayv2.Stage(
    "stage", api_id=api.id, name="$default", auto_deploy=True, opts=pulumi.ResourceOptions(depends_on=[route])
)
aws.lambda_.Permission(
    "gateway-calls-function",
    action="lambda:InvokeFunction",
    function=function.name,
    qualifier=live.name,
    principal="apigateway.amazonaws.com",
    source_arn=pulumi.Output.concat(api.execution_arn, "/*/*"),
)

application = aws.appconfig.Application("application", name=name, tags=tags)
environment = aws.appconfig.Environment("environment", name="live", application_id=application.id)
profile = aws.appconfig.ConfigurationProfile(
    "profile",
    name="policy",
    application_id=application.id,
    location_uri="hosted",
    validators=[{"type": "LAMBDA", "content": live.arn}],
)
document = aws.appconfig.HostedConfigurationVersion(
    "document",
    application_id=application.id,
    configuration_profile_id=profile.configuration_profile_id,
    content=json.dumps({"variant": variant, "said": config.get("said") or ""}),
    content_type="application/json",
)
strategy = aws.appconfig.DeploymentStrategy(
    "strategy",
    name=name,
    deployment_duration_in_minutes=0,
    final_bake_time_in_minutes=0,
    growth_factor=100,
    replicate_to="NONE",
)
aws.appconfig.Deployment(
    "rollout",
    application_id=application.id,
    environment_id=environment.environment_id,
    configuration_profile_id=profile.configuration_profile_id,
    configuration_version=document.version_number.apply(lambda number: f"{number:.0f}"),
    deployment_strategy_id=strategy.id,
)

model = aws.sagemaker.Model(
    "model",
    name=f"{name}-model",
    execution_role_arn=role.arn,
    primary_container={"image": "000000000000.dkr.ecr.us-east-1.amazonaws.com/sample:1", "environment": {"A": "1"}},
    tags=tags,
)
configuration = aws.sagemaker.EndpointConfiguration(
    "configuration",
    name=f"{name}-{variant}-{instance_type.replace('.', '-')}",
    production_variants=[
        {
            "variant_name": "AllTraffic",
            "model_name": model.name,
            "instance_type": instance_type,
            "initial_instance_count": 1,
        }
    ],
    tags=tags,
)
endpoint = aws.sagemaker.Endpoint("endpoint", name=name, endpoint_config_name=configuration.name, tags=tags)
target = aws.appautoscaling.Target(
    "target",
    service_namespace="sagemaker",
    scalable_dimension="sagemaker:variant:DesiredInstanceCount",
    resource_id=pulumi.Output.concat("endpoint/", endpoint.name, "/variant/AllTraffic"),
    min_capacity=1,
    max_capacity=3,
)
aws.appautoscaling.Policy(
    "scaling",
    policy_type="TargetTrackingScaling",
    service_namespace=target.service_namespace,
    scalable_dimension=target.scalable_dimension,
    resource_id=target.resource_id,
    target_tracking_scaling_policy_configuration={
        "predefined_metric_specification": {"predefined_metric_type": "SageMakerVariantInvocationsPerInstance"},
        "target_value": 50,
    },
)
aws.cloudwatch.MetricAlarm(
    "alarm",
    namespace="AWS/SageMaker",
    metric_name="Invocation5XXErrors",
    dimensions={"EndpointName": endpoint.name, "VariantName": "AllTraffic"},
    statistic="Sum",
    comparison_operator="GreaterThanThreshold",
    threshold=1,
    period=60,
    evaluation_periods=1,
    tags=tags,
)
if extra:
    aws.cloudwatch.LogGroup("extra", name=f"/{name}/extra")

pulumi.export("url", stage.invoke_url)
pulumi.export("bucket", bucket.bucket)
pulumi.export("endpoint", endpoint.name)
pulumi.export("token", pulumi.Output.secret("hidden"))
