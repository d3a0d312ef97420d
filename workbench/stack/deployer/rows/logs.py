"""CloudWatch Logs and alarms.

A log group or stream that exists already is taken over: services make theirs on their own as soon as they write, and
only a group's retention and tags are ours.
"""

from __future__ import annotations

from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.rows.gone import listed
from workbench.stack.deployer.values import Properties, items, mapping

_GROUP: Templates = {"logGroupName": "{id}"}


def _delete_group(instance: Instance) -> None:
    if instance.inputs.get("skipDestroy"):
        return
    instance.cloud.call("logs", "delete_log_group", {"logGroupName": instance.id})


def _metric_queries(inputs: Properties) -> Properties:
    """pulumi-aws puts a query's metric, period and statistic side by side; the API nests them."""
    queries = [mapping(query) for query in items(inputs.get("metricQueries"))]
    if not queries:
        return inputs
    rest = {name: value for name, value in inputs.items() if name != "metricQueries"}
    return {**rest, "metrics": [_query(query) for query in queries]}


def _query(given: dict[str, object]) -> dict[str, object]:
    metric = mapping(given.get("metric"))
    if not metric:
        return given
    beside = {"period", "stat", "unit"}
    nested: dict[str, object] = {name: value for name, value in metric.items() if name in beside}
    nested["metric"] = {name: value for name, value in metric.items() if name not in beside}
    return {**{name: value for name, value in given.items() if name != "metric"}, "metricStat": nested}


def _suppressor(inputs: Properties) -> Properties:
    """pulumi-aws groups what the API has side by side."""
    given = mapping(inputs.get("actionsSuppressor"))
    names = {
        "alarm": "actionsSuppressor",
        "waitPeriod": "actionsSuppressorWaitPeriod",
        "extensionPeriod": "actionsSuppressorExtensionPeriod",
    }
    rest = {name: value for name, value in inputs.items() if name != "actionsSuppressor"}
    return {**rest, **{names.get(name, name): value for name, value in given.items()}}


ROWS = (
    Row(
        type="aws:cloudwatch/logGroup:LogGroup",
        service="logs",
        create=Call("create_log_group", rename={"name": "logGroupName"}),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "arn:aws:logs:{region}:{account}:log-group:{in.name}"},
        auto_name="name",
        steps=(
            Step(
                ("retentionInDays",),
                Call("put_retention_policy", params=_GROUP),
                unset=Call("delete_retention_policy", params=_GROUP),
            ),
            Step(
                ("kmsKeyId",),
                Call("associate_kms_key", params=_GROUP),
                at="update",
                unset=Call("disassociate_kms_key", params=_GROUP),
            ),
        ),
        tags=Tags("tag_resource", "untag_resource", "resourceArn", keys="tagKeys"),
        identity=("name",),
        local=("skipDestroy",),
        read=listed("logs", "describe_log_groups", lambda i: {"logGroupNamePrefix": i.id}, "logGroups", "logGroupName"),
        delete=_delete_group,
        adopt=("ResourceAlreadyExistsException",),
    ),
    Row(
        type="aws:cloudwatch/logStream:LogStream",
        service="logs",
        create=Call("create_log_stream", rename={"name": "logStreamName"}),
        id="{in.name}",
        outputs={
            "name": "{in.name}",
            "arn": "arn:aws:logs:{region}:{account}:log-group:{in.logGroupName}:log-stream:{in.name}",
        },
        auto_name="name",
        identity=("logGroupName", "name"),
        read=listed(
            "logs",
            "describe_log_streams",
            lambda i: {"logGroupName": i.text("logGroupName"), "logStreamNamePrefix": i.id},
            "logStreams",
            "logStreamName",
        ),
        delete=Call("delete_log_stream", params={"logGroupName": "{in.logGroupName}", "logStreamName": "{id}"}),
        adopt=("ResourceAlreadyExistsException",),
    ),
    Row(
        type="aws:cloudwatch/metricAlarm:MetricAlarm",
        service="cloudwatch",
        create=Call("put_metric_alarm", rename={"name": "AlarmName"}),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{in.name}"},
        auto_name="name",
        arrange=_metric_queries,
        tags=Tags("tag_resource", "untag_resource", "ResourceARN"),
        upsert=True,
        identity=("name",),
        read=listed("cloudwatch", "describe_alarms", lambda i: {"AlarmNames": [i.id]}, "MetricAlarms", "AlarmName"),
        delete=Call("delete_alarms", params={"AlarmNames": lambda i: [i.id]}),
    ),
    Row(
        type="aws:cloudwatch/compositeAlarm:CompositeAlarm",
        service="cloudwatch",
        create=Call("put_composite_alarm"),
        id="{in.alarmName}",
        outputs={"arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{in.alarmName}"},
        auto_name="alarmName",
        arrange=_suppressor,
        tags=Tags("tag_resource", "untag_resource", "ResourceARN"),
        upsert=True,
        identity=("alarmName",),
        read=listed(
            "cloudwatch",
            "describe_alarms",
            lambda i: {"AlarmNames": [i.id], "AlarmTypes": ["CompositeAlarm"]},
            "CompositeAlarms",
            "AlarmName",
        ),
        delete=Call("delete_alarms", params={"AlarmNames": lambda i: [i.id]}),
    ),
)
