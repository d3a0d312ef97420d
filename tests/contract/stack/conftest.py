"""One offline stack for this folder's tests, as `inferlane up` starts it, with time passing fast for its SageMaker."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from workbench.stack import offline
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout

ROLE = "arn:aws:iam::000000000000:role/any"
SERVICES = ("lambda", "scheduler", "states", "firehose", "events", "sagemaker")
PRINTS = """import json
def handler(event, context):
    print(json.dumps({"told": event}))
    return event
"""


@pytest.fixture(scope="package")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """The stack."""
    layout = Layout(tmp_path_factory.mktemp("ct"))
    record = offline.up(layout, port=0, pace=offline.Pace(time_scale=60.0), say=print)
    try:
        made = Cloud(record.endpoint_url, record.cloud_id)
        make_role(made)
        yield made
    finally:
        offline.down(layout)


def make_role(cloud: Cloud) -> None:
    """`ROLE`, which may do everything and which every service may take."""
    iam = cloud.client("iam")
    principals = {"Service": [f"{service}.amazonaws.com" for service in SERVICES]}
    trust = {"Effect": "Allow", "Principal": principals, "Action": "sts:AssumeRole"}
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.create_role(RoleName="any", AssumeRolePolicyDocument=_policy(trust))
    iam.put_role_policy(RoleName="any", PolicyName="everything", PolicyDocument=_policy(everything))


def _policy(statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@dataclass(frozen=True)
class Functions:
    """Lambda functions of a test, and what they printed."""

    cloud: Cloud

    def make(self, name: str, source: str = PRINTS, *, timeout_s: int = 10) -> str:
        """A function with one file; returns its ARN."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", source)
        functions = self.cloud.client("lambda")
        made = functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="index.handler",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Timeout=timeout_s,
        )
        functions.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig={"Delay": 1})
        return str(made["FunctionArn"])

    def told(self, name: str) -> list[Any]:
        """The events that a function of `PRINTS` was called with, in order."""
        return [json.loads(line)["told"] for line in self.printed(name) if line.startswith('{"told"')]

    def printed(self, name: str) -> list[str]:
        """Its log lines."""
        logs = self.cloud.client("logs")
        try:
            pages = logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{name}")
            return [event["message"].strip() for page in pages for event in page["events"]]
        except logs.exceptions.ResourceNotFoundException:
            return []


@pytest.fixture(scope="package")
def functions(cloud: Cloud) -> Functions:
    """Lambda functions."""
    return Functions(cloud)


def eventually(condition: Callable[[], Any], timeout_s: float = 20.0) -> Any:
    """The condition's first true value; fails when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"still not true after {timeout_s} s")
