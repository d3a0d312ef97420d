"""What happens while nobody waits: queues, events, schedules, a state machine, a stream, a topic, an indexed table.

`variant` changes something of each in place; `index` adds a global index, `source` has the mapping read another queue.
"""

import json

import pulumi
import pulumi_aws as aws

stack = pulumi.get_stack()
config = pulumi.Config()
variant = config.get("variant") or "one"
first = variant == "one"
index = config.get_bool("index") or False
source = config.get("source") or "work"
tags = {"variant": variant}
name = f"async-{stack}"


def trust(*services: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": list(services)}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def allow(action: str, resource: pulumi.Output[str], service: str) -> pulumi.Output[str]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": action, "Resource": resource}
    return pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": [statement]}, sort_keys=True)


services = ("lambda", "scheduler", "states", "firehose")
role = aws.iam.Role("role", assume_role_policy=trust(*(f"{each}.amazonaws.com" for each in services)))

dead = aws.sqs.Queue("dead", name=f"{name}-dead", message_retention_seconds=1_209_600, tags=tags)
work = aws.sqs.Queue(
    "work",
    name=f"{name}-work",
    visibility_timeout_seconds=10 if first else 20,
    receive_wait_time_seconds=5 if first else None,
    redrive_policy=pulumi.Output.json_dumps(
        {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2 if first else 3}, sort_keys=True
    ),
    tags=tags,
)
other = aws.sqs.Queue("other", name=f"{name}-other", visibility_timeout_seconds=10)
aws.sqs.RedriveAllowPolicy(
    "dead-allows",
    queue_url=dead.url,
    redrive_allow_policy=pulumi.Output.json_dumps(
        {"redrivePermission": "byQueue", "sourceQueueArns": [work.arn]}, sort_keys=True
    ),
)
told = aws.sqs.Queue("told", name=f"{name}-told", tags=tags)
aws.sqs.QueuePolicy("told-takes", queue_url=told.url, policy=allow("sqs:SendMessage", told.arn, "sns.amazonaws.com"))
topic = aws.sns.Topic("topic", name=name, display_name=variant, tags=tags)
aws.sns.TopicPolicy("topic-takes", arn=topic.arn, policy=allow("sns:Publish", topic.arn, "events.amazonaws.com"))
aws.sns.TopicSubscription(
    "subscription", topic=topic.arn, protocol="sqs", endpoint=told.arn, raw_message_delivery=first
)

SOURCE = """def handler(event, context):
    print("called")
    failed = [record["messageId"] for record in event.get("Records", []) if record["body"] == "bad"]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
"""
function = aws.lambda_.Function(
    "function",
    name=name,
    role=role.arn,
    runtime="python3.13",
    handler="index.handler",
    code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(SOURCE)}),
    timeout=5,
    publish=True,
)
live = aws.lambda_.Alias("live", name="live", function_name=function.name, function_version=function.version)
aws.lambda_.EventSourceMapping(
    "mapping",
    event_source_arn={"work": work, "other": other}[source].arn,
    function_name=live.arn,
    batch_size=5 if first else 10,
    function_response_types=["ReportBatchItemFailures"],
    scaling_config={"maximum_concurrency": 2 if first else 3},
    tags=tags,
)
aws.lambda_.FunctionEventInvokeConfig(
    "fails-to",
    function_name=function.name,
    qualifier=live.name,
    maximum_retry_attempts=1 if first else 2,
    maximum_event_age_in_seconds=3600,
    destination_config={"on_failure": {"destination": dead.arn}},
)

rule = aws.cloudwatch.EventRule(
    "rule",
    name=name,
    description=variant,
    event_pattern=json.dumps({"source": ["aws.sagemaker"], "detail": {"TransformJobName": [{"prefix": variant}]}}),
    tags=tags,
)
aws.cloudwatch.EventTarget(
    "target",
    rule=rule.name,
    target_id="settle",
    arn=live.arn,
    retry_policy={"maximum_retry_attempts": 3 if first else 4, "maximum_event_age_in_seconds": 600},
)
aws.lambda_.Permission(
    "events-call",
    action="lambda:InvokeFunction",
    function=function.name,
    qualifier=live.name,
    principal="events.amazonaws.com",
    source_arn=rule.arn,
)
group = aws.scheduler.ScheduleGroup("group", name=name, tags=tags)
aws.scheduler.Schedule(
    "schedule",
    name=name,
    group_name=group.name,
    schedule_expression="cron(0 1 * * ? *)" if first else "cron(0 2 * * ? *)",
    schedule_expression_timezone="Europe/Madrid",
    flexible_time_window={"mode": "OFF"},
    target={
        "arn": live.arn,
        "role_arn": role.arn,
        "input": json.dumps({"variant": variant}),
        "retry_policy": {"maximum_retry_attempts": 3, "maximum_event_age_in_seconds": 600},
    },
)
machine = aws.sfn.StateMachine(
    "machine",
    name=name,
    role_arn=role.arn,
    definition=json.dumps({"StartAt": "End", "States": {"End": {"Type": "Pass", "Result": variant, "End": True}}}),
    tags=tags,
)

key = aws.kms.Key("key", deletion_window_in_days=7)
bucket = aws.s3.Bucket("data", force_destroy=True)
aws.s3.BucketLifecycleConfiguration(
    "data-lifecycle",
    bucket=bucket.id,
    rules=[
        {
            "id": "payloads",
            "status": "Enabled",
            "filter": {"prefix": "batch/payloads/"},
            "expiration": {"days": 15 if first else 16},
            "abort_incomplete_multipart_upload": {"days_after_initiation": 1},
        }
    ],
)
logs = aws.cloudwatch.LogGroup("logs", name=f"/aws/kinesisfirehose/{name}", retention_in_days=1)
errors = aws.cloudwatch.LogStream("errors", name="errors", log_group_name=logs.name)
stream = aws.kinesis.FirehoseDeliveryStream(
    "stream",
    name=name,
    destination="extended_s3",
    server_side_encryption={"enabled": True, "key_type": "CUSTOMER_MANAGED_CMK", "key_arn": key.arn},
    extended_s3_configuration={
        "role_arn": role.arn,
        "bucket_arn": bucket.arn,
        "prefix": "capture/model=!{partitionKeyFromQuery:model}/date=!{timestamp:yyyy-MM-dd}/",
        "error_output_prefix": "capture-errors/!{firehose:error-output-type}/",
        "buffering_size": 64,
        "buffering_interval": 60 if first else 120,
        "compression_format": "GZIP",
        "custom_time_zone": "Europe/Madrid",
        "kms_key_arn": key.arn,
        "dynamic_partitioning_configuration": {"enabled": True, "retry_duration": 60},
        "processing_configuration": {
            "enabled": True,
            "processors": [
                {
                    "type": "MetadataExtraction",
                    "parameters": [
                        {"parameter_name": "MetadataExtractionQuery", "parameter_value": "{model: .model}"},
                        {"parameter_name": "JsonParsingEngine", "parameter_value": "JQ-1.6"},
                    ],
                }
            ],
        },
        "cloudwatch_logging_options": {"enabled": True, "log_group_name": logs.name, "log_stream_name": errors.name},
    },
    tags=tags,
)

types = {"tenant": "S", "id": "S", "accepted_at": "N", **({"state": "S"} if index else {})}
by_time: aws.dynamodb.TableGlobalSecondaryIndexArgsDict = {
    "name": "by_time",
    "projection_type": "KEYS_ONLY",
    "key_schemas": [
        {"attribute_name": "tenant", "key_type": "HASH"},
        {"attribute_name": "accepted_at", "key_type": "RANGE"},
    ],
}
by_state: aws.dynamodb.TableGlobalSecondaryIndexArgsDict = {
    "name": "by_state",
    "projection_type": "ALL",
    "hash_key": "state",
}
table = aws.dynamodb.Table(
    "table",
    name=name,
    billing_mode="PAY_PER_REQUEST",
    hash_key="tenant",
    range_key="id",
    attributes=[aws.dynamodb.TableAttributeArgs(name=each, type=kind) for each, kind in types.items()],
    global_secondary_indexes=[by_time, by_state] if index else [by_time],
    ttl={"attribute_name": "expires_at", "enabled": True},
    point_in_time_recovery={"enabled": True},
    server_side_encryption={"enabled": True, "kms_key_arn": key.arn},
    tags=tags,
)

depth = aws.cloudwatch.MetricAlarm(
    "depth",
    name=f"{name}-dead",
    namespace="AWS/SQS",
    metric_name="ApproximateNumberOfMessagesVisible",
    dimensions={"QueueName": dead.name},
    statistic="Maximum",
    comparison_operator="GreaterThanThreshold",
    threshold=0,
    period=60,
    evaluation_periods=1,
    tags=tags,
)
aws.cloudwatch.CompositeAlarm(
    "any",
    alarm_name=f"{name}-any",
    alarm_rule=depth.name.apply(lambda alarm: f"ALARM({alarm})"),
    alarm_description=variant,
    tags=tags,
)

pulumi.export("work", work.url)
pulumi.export("dead", dead.url)
pulumi.export("told", told.url)
pulumi.export("topic", topic.arn)
pulumi.export("machine", machine.arn)
pulumi.export("stream", stream.name)
pulumi.export("bucket", bucket.bucket)
pulumi.export("table", table.name)
