"""Rollback alarms: CloudWatch alarms of the account, asked for their state while an update bakes.

An alarm that does not exist trips nothing, as on AWS, and the log says so. When CloudWatch cannot be asked, the update
does not go on unwatched: that is a reason to go back too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

log = logging.getLogger(__name__)


class Alarms(Protocol):
    """What the baking of an update needs to know."""

    async def problem(self, names: Sequence[str]) -> str | None:
        """Why an update that these alarms watch must go back; None while it need not."""


class CloudWatchAlarms:
    """Alarms in CloudWatch, found as this server's SDK finds it."""

    def __init__(self, client: CloudWatchClient) -> None:
        self._client = client

    async def problem(self, names: Sequence[str]) -> str | None:
        """See `Alarms`."""
        if not names:
            return None
        try:
            states = await asyncio.to_thread(self._states, list(names))
        except (BotoCoreError, ClientError) as error:
            return f"The rollback alarms could not be read from CloudWatch: {error}"
        if missing := sorted(set(names) - set(states)):
            log.warning("rollback alarms that do not exist watch nothing: %s", ", ".join(missing))
        tripped = sorted(name for name, state in states.items() if state == "ALARM")
        return f"CloudWatch alarms in ALARM state during the baking period: {', '.join(tripped)}." if tripped else None

    def _states(self, names: list[str]) -> dict[str, str]:
        found = self._client.describe_alarms(AlarmNames=names, AlarmTypes=["MetricAlarm", "CompositeAlarm"])
        states: dict[str, str] = {a["AlarmName"]: a["StateValue"] for a in found.get("MetricAlarms", ())}
        return states | {a["AlarmName"]: a["StateValue"] for a in found.get("CompositeAlarms", ())}
