"""Every resource type the deployer knows, from the rows of `rows/`, one file a service.

Rows say what AWS wants. Where an endpoint refuses, the refusal is the deploy's error; where it cannot answer something
that a row can do without, the deploy says so in a notice (`scaling_pause`: scheduled actions; `logs`: a log group taken
over; `appconfig`: a rollout that goes on). MiniStack 1.5.33 refused nothing of the rows the local stack uses. It stores
but does not act on: throttling of an HTTP API's stage, IAM policies (unless started with AUTH=true), the dimensions of
an alarm, a profile's validators (the deployer asks them itself: `appconfig`), and the architecture and runtime of a
function (it runs on MiniStack's own interpreter).
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.stack.deployer.row import Row
from workbench.stack.deployer.rows import (
    appconfig,
    autoscaling,
    dynamodb,
    event_sources,
    events,
    firehose,
    functions,
    gateway,
    iam,
    kms,
    logs,
    queues,
    s3,
    sagemaker,
    scheduler,
    states,
    topics,
)


def _table(*groups: tuple[Row, ...]) -> Mapping[str, Row]:
    rows = [row for group in groups for row in group]
    table = {row.type: row for row in rows}
    if len(table) != len(rows):
        raise AssertionError("a resource type has two rows")
    return table


ROWS = _table(
    appconfig.ROWS,
    autoscaling.ROWS,
    dynamodb.ROWS,
    event_sources.ROWS,
    events.ROWS,
    firehose.ROWS,
    functions.ROWS,
    gateway.ROWS,
    iam.ROWS,
    kms.ROWS,
    logs.ROWS,
    queues.ROWS,
    s3.ROWS,
    sagemaker.ROWS,
    scheduler.ROWS,
    states.ROWS,
    topics.ROWS,
)
