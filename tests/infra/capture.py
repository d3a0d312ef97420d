"""Run the whole Pulumi program, without an engine, and keep every resource it asks for.

`python -m tests.infra.capture` reads a JSON list of cases from standard input (`{"stack": …, "set": {key: value}}`; a
null value takes a key out) and prints a JSON list of programs, one a case. It is a process of its own because Pulumi's
runtime is global. Outputs are those the real provider would compute, and no more: one that is missing here shows up as
a null in an input or an export, and the tests refuse nulls.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import runpy
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import pulumi
import yaml
from pulumi.runtime import rpc, set_all_config, set_mocks
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks
from pulumi.runtime.settings import set_root_resource
from pulumi.runtime.stack import run_in_stack

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT, REGION = "000000000000", "us-east-1"


class Resource(TypedDict):
    """One registered resource, as the engine would see it."""

    type: str
    name: str
    urn: str
    parent: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    protect: bool
    depends_on: list[str]


class Program(TypedDict):
    """Everything one run of the program asked for."""

    stack: str
    resources: list[Resource]
    exports: dict[str, Any]


def arn(service: str, resource: str, *, region: str = REGION, account: str = ACCOUNT) -> str:
    """An ARN of the test account."""
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def computed(kind: str, name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and computed outputs of a resource, by the last part of its type."""
    own = given.get("name", f"{name}-0a1b2c3")
    match kind:
        case "Key":
            return "key-1", {"keyId": "key-1", "arn": arn("kms", "key/key-1")}
        case "Bucket":
            return own, {"bucket": own, "arn": arn("s3", own, region="", account="")}
        case "Role":
            return own, {"arn": arn("iam", f"role/{own}", region="")}
        case "LogGroup":
            return own, {"arn": arn("logs", f"log-group:{own}")}
        case "Table":
            return own, {"arn": arn("dynamodb", f"table/{own}")}
        case "MetricAlarm":
            return own, {"arn": arn("cloudwatch", f"alarm:{own}")}
        case "Queue":
            url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{own}"
            return url, {"url": url, "arn": arn("sqs", own)}
        case "EventRule":
            return own, {"arn": arn("events", f"rule/{own}")}
        case "ScheduleGroup":
            return own, {"arn": arn("scheduler", f"schedule-group/{own}")}
        case "StateMachine":
            return own, {"arn": arn("states", f"stateMachine:{own}")}
        case "FirehoseDeliveryStream":
            return own, {"arn": arn("firehose", f"deliverystream/{own}")}
        case "Model":
            return own, {"arn": arn("sagemaker", f"model/{own}")}
        case "Endpoint":
            return own, {"arn": arn("sagemaker", f"endpoint/{own}")}
        case "Application":
            return "app1", {}
        case "Environment":
            return "env1:app1", {"environmentId": "env1", "arn": arn("appconfig", "application/app1/environment/env1")}
        case "ConfigurationProfile":
            return "pro1:app1", {"configurationProfileId": "pro1"}
        case "HostedConfigurationVersion":
            return "app1/pro1/1", {"versionNumber": 1}
        case "Function":
            return own, {"version": "7"}
        case "Alias" if "functionName" in given:
            function = arn("lambda", f"function:{given['functionName']}:{own}")
            return own, {
                "arn": function,
                "invokeArn": f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{function}/invocations",
            }
        case "Api":
            return "api1", {"executionArn": arn("execute-api", "api1")}
        case "Authorizer":
            return f"{name}-id", {}
        case "Stage":
            return own, {"invokeUrl": f"https://api1.execute-api.{REGION}.amazonaws.com/"}
        case _:
            return own, {}


class Recorder(Mocks):
    """Answers each registration with the provider's outputs, and keeps it."""

    def __init__(self) -> None:
        self.resources: list[Resource] = []

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], None]:
        raise AssertionError(f"the program asks AWS for {args.token}: ARNs come from resources, nothing is looked up")

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if not args.custom:
            return None, args.inputs
        identifier, outputs = computed(args.typ.rsplit(":", 1)[1], args.name, args.inputs)
        return identifier, {**args.inputs, **outputs}


class Monitor(MockMonitor):
    """Adds what mocks are not told: URN, parent, dependencies, protection, the stack's exports."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.recorder = recorder
        self.exports: dict[str, Any] = {}
        self._lock = threading.Lock()

    def RegisterResource(self, request: Any, context: Any = None) -> Any:  # noqa: N802 (gRPC's name)
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        if request.custom:
            implied = {urn for dependencies in request.propertyDependencies.values() for urn in dependencies.urns}
            resource: Resource = {
                "type": request.type,
                "name": request.name,
                "urn": response.urn,
                "parent": request.parent,
                "inputs": _plain(rpc.deserialize_properties(request.object)),
                "outputs": _plain(rpc.deserialize_properties(response.object)),
                "protect": request.protect,
                "depends_on": sorted({*request.dependencies, *implied}),
            }
            with self._lock:
                self.recorder.resources.append(resource)
        return response

    def RegisterResourceOutputs(self, request: Any, context: Any = None) -> Any:  # noqa: N802 (gRPC's name)
        if "pulumi:pulumi:Stack::" in request.urn:
            self.exports = _plain(rpc.deserialize_properties(request.outputs))
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


def stack_config(stack: str, changes: Mapping[str, object]) -> dict[str, str]:
    """A stack file's config as Pulumi hands it over: every value text, objects as JSON."""
    values = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"] | changes
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


def run(stack: str, changes: Mapping[str, object]) -> Program:
    """Run the program once for a stack file with some keys changed."""
    recorder = Recorder()
    monitor = Monitor(recorder)
    loop = asyncio.new_event_loop()  # before set_mocks, which puts tasks on the current loop
    asyncio.set_event_loop(loop)
    set_all_config(stack_config(stack, changes), [])
    set_mocks(recorder, project="inferlane", stack=stack, preview=False, monitor=monitor)
    set_root_resource(None)  # type: ignore[arg-type]  # None is how the SDK starts a stack
    loop.run_until_complete(run_in_stack(_program))
    loop.close()
    resources = sorted(recorder.resources, key=lambda resource: resource["urn"])
    return {"stack": stack, "resources": resources, "exports": monitor.exports}


def _program() -> None:
    runpy.run_path(str(ROOT / "infra/__main__.py"), run_name="__main__")


def _plain(value: Any) -> Any:
    """Secrets laid open, whole floats as ints, archives as what they hold: text as text, files as their hash."""
    match value:
        case {rpc._special_sig_key: rpc._special_secret_sig, "value": secret}:
            return _plain(secret)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case pulumi.AssetArchive():
            return {"archive": {name: _plain(asset) for name, asset in value.assets.items()}}
        case pulumi.StringAsset():
            return {"text": value.text}
        case pulumi.FileAsset():
            return {"sha256": hashlib.sha256(Path(value.path).read_bytes()).hexdigest()}
        case _:
            return value


if __name__ == "__main__":
    json.dump([run(case["stack"], case.get("set", {})) for case in json.load(sys.stdin)], sys.stdout)
