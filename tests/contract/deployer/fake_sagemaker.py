"""A SageMaker control plane and Application Auto Scaling with just enough behaviour to see a deploy go wrong.

Speaks JSON 1.1 over HTTP, so the deployer's real boto3 calls reach it. An endpoint moves for `steps` describe calls
before it settles; a configuration whose name holds `broken` fails: a create ends Failed, an update rolls back. Like
SageMaker, it refuses to change the instance type of an autoscaled variant and to delete what is in use.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARN = "arn:aws:sagemaker:us-east-1:000000000000"
STEPS = 2


class RefusedError(Exception):
    """A client error."""

    def __init__(self, message: str, code: str = "ValidationException") -> None:
        super().__init__(message)
        self.code = code


@dataclass
class FakeSageMaker:
    """The state and the operations; `calls` remembers every operation but the reads, in order."""

    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    steps: int = STEPS
    lock: threading.Lock = field(default_factory=threading.Lock)

    def operation(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        method = getattr(self, f"on_{name}", None)
        if method is None:
            raise RefusedError(f"{name} is not offered", "UnknownOperationException")
        with self.lock:
            if not name.startswith("Describe"):
                self.calls.append((name, request))
            answer: dict[str, Any] = method(request)
            return answer

    def names(self, *operations: str) -> list[str]:
        """The order in which these operations were called."""
        return [name for name, _ in self.calls if name in operations]

    def on_CreateModel(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"ModelArn": self._add(self.models, "model", request["ModelName"], request)}

    def on_DescribeModel(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._find(self.models, request["ModelName"])

    def on_DeleteModel(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._find(self.models, request["ModelName"])
        del self.models[request["ModelName"]]
        return {}

    def on_CreateEndpointConfig(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = request["EndpointConfigName"]
        for variant in request["ProductionVariants"]:
            self._find(self.models, variant["ModelName"])
        return {"EndpointConfigArn": self._add(self.configs, "endpoint-config", name, request)}

    def on_DescribeEndpointConfig(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._find(self.configs, request["EndpointConfigName"])

    def on_DeleteEndpointConfig(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = request["EndpointConfigName"]
        self._find(self.configs, name)
        users = [one for one, endpoint in self.endpoints.items() if endpoint["EndpointConfigName"] == name]
        if users:
            raise RefusedError(f"{name} is in use by {users}")
        del self.configs[name]
        return {}

    def on_CreateEndpoint(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._find(self.configs, request["EndpointConfigName"])
        arn = self._add(self.endpoints, "endpoint", request["EndpointName"], request)
        endpoint = self.endpoints[request["EndpointName"]]
        endpoint.update(EndpointStatus="Creating", left=self.steps, next=request["EndpointConfigName"], EndpointArn=arn)
        return {"EndpointArn": arn}

    def on_DescribeEndpoint(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        endpoint = self._find(self.endpoints, request["EndpointName"])
        if endpoint["left"]:
            endpoint["left"] -= 1
            if not endpoint["left"]:
                self._arrive(endpoint)
        return {name: value for name, value in endpoint.items() if name not in ("left", "next")}

    def on_UpdateEndpoint(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        endpoint = self._find(self.endpoints, request["EndpointName"])
        new = self._find(self.configs, request["EndpointConfigName"])
        old = self.configs[endpoint["EndpointConfigName"]]
        types = [config["ProductionVariants"][0].get("InstanceType") for config in (old, new)]
        scaled = [one for one in self.targets if one.startswith(f"endpoint/{request['EndpointName']}/")]
        if scaled and types[0] != types[1]:
            raise RefusedError("the variant is registered as a scalable target: deregister it first")
        endpoint.update(EndpointStatus="Updating", left=self.steps, next=request["EndpointConfigName"])
        return {"EndpointArn": endpoint["EndpointArn"]}

    def on_DeleteEndpoint(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._find(self.endpoints, request["EndpointName"])
        del self.endpoints[request["EndpointName"]]
        return {}

    def on_AddTags(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Tags": request["Tags"]}

    def on_RegisterScalableTarget(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.targets[request["ResourceId"]] = request
        return {"ScalableTargetARN": f"{ARN}:scalable-target/{len(self.calls)}"}

    def on_DescribeScalableTargets(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"ScalableTargets": [self.targets[one] for one in request["ResourceIds"] if one in self.targets]}

    def on_DeregisterScalableTarget(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if request["ResourceId"] not in self.targets:
            raise RefusedError("no scalable target found", "ObjectNotFoundException")
        del self.targets[request["ResourceId"]]
        self.policies = {key: one for key, one in self.policies.items() if key[0] != request["ResourceId"]}
        return {}

    def on_PutScalingPolicy(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if request["ResourceId"] not in self.targets:
            raise RefusedError("no scalable target found", "ObjectNotFoundException")
        self.policies[request["ResourceId"], request["PolicyName"]] = request
        return {"PolicyARN": f"arn:aws:autoscaling:us-east-1:000000000000:scalingPolicy/{request['PolicyName']}"}

    def on_DescribeScalingPolicies(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        found = [one for (resource, _), one in self.policies.items() if resource == request["ResourceId"]]
        wanted = request.get("PolicyNames")
        return {"ScalingPolicies": [one for one in found if wanted is None or one["PolicyName"] in wanted]}

    def on_DescribeScheduledActions(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"ScheduledActions": []}

    def on_DeleteScalingPolicy(self, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if self.policies.pop((request["ResourceId"], request["PolicyName"]), None) is None:
            raise RefusedError("no scaling policy found", "ObjectNotFoundException")
        return {}

    @staticmethod
    def _arrive(endpoint: dict[str, Any]) -> None:
        if "broken" not in endpoint["next"]:
            endpoint.update(EndpointStatus="InService", EndpointConfigName=endpoint["next"])
            endpoint.pop("FailureReason", None)
            return
        status = "Failed" if endpoint["EndpointStatus"] == "Creating" else "InService"
        endpoint.update(EndpointStatus=status, FailureReason="the container did not pass its health check")

    @staticmethod
    def _add(table: dict[str, dict[str, Any]], kind: str, name: str, request: dict[str, Any]) -> str:
        if name in table:
            raise RefusedError(f"Cannot create already existing {kind} {name}")
        table[name] = dict(request)
        return f"{ARN}:{kind}/{name}"

    @staticmethod
    def _find(table: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
        if name not in table:
            raise RefusedError(f'Could not find "{name}".')
        return table[name]


def serve(fake: FakeSageMaker) -> ThreadingHTTPServer:
    """Serves the fake on a free loopback port; the caller shuts it down."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            try:
                status, answer = 200, fake.operation(self.headers["X-Amz-Target"].split(".")[-1], request)
            except RefusedError as error:
                status, answer = 400, {"__type": error.code, "message": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
            """Quiet: the test reads `calls`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
