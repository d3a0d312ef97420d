"""Every resource type the deployer knows, from the rows of `rows/`, one file a service.

Where an emulator falls short, nothing is papered over here: the row says what AWS wants, the cloud's refusal is the
error. What MiniStack 1.5.33 accepts but does not act on is listed with the offline stack's limits, not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.stack.deployer.row import Row
from workbench.stack.deployer.rows import (
    appconfig,
    autoscaling,
    dynamodb,
    functions,
    gateway,
    iam,
    kms,
    logs,
    s3,
    sagemaker,
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
    functions.ROWS,
    gateway.ROWS,
    iam.ROWS,
    kms.ROWS,
    logs.ROWS,
    s3.ROWS,
    sagemaker.ROWS,
)
