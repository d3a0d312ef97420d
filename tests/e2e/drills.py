"""Stacks for drills: a model that sleeps as long as each request says, both lanes, and a policy that a header steers.

The program is the project's own; only the stack's file, the policy and the model's package are the drill's. So a drill
needs no weights, costs the host next to nothing a request, and can have a service time that suits it.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from workbench import keys
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root

SERVERLESS_FIRST = {"X-Drill-First": "serverless"}
"""A request with this header tries serverless first, dedicated second; without it, the other way round."""
HEDGED = {"X-Drill-Hedge": "yes"}
"""A request with this header may be doubled on the next lane."""

_CODE = '''"""Sleeps for `sleep_s` of the request and answers with it."""
import json, time

def model_fn(model_dir):
    return None

def input_fn(body, content_type):
    return json.loads(body)

def predict_fn(data, model):
    time.sleep(data.get("sleep_s", 0.0))
    return data

def output_fn(prediction, accept):
    return json.dumps(prediction)
'''
_POLICY = """\
schema: inferlane/policy/v1
version: drill.1
defaults: {order: [dedicated, serverless], deadline_ms: 25000}
rules:
  - {id: serverless-first, when: {header: {x-drill-first: serverless}}, order: [serverless, dedicated]}
  - {id: hedged, when: {header: {x-drill-hedge: "yes"}}, order: [dedicated, serverless], hedge: true}
"""


@dataclass(frozen=True)
class Drill:
    """A deployed drill stack and a key for its door."""

    deployed: Deployment
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        """The drill's own, as the stack: the router's metrics are by model, whichever stack it is in."""
        return f"{self.deployed.stack}-model"

    @property
    def path(self) -> str:
        """Where requests to the model go, below the stack's URL."""
        return f"/v1/models/{self.model}/invocations"

    def endpoint(self, lane: str) -> str:
        """The lane's SageMaker endpoint."""
        return str(self.deployed.lane(lane, self.model)["endpoint"])


@contextmanager
def drill(
    name: str,
    folder: Path,
    cloud: Cloud,
    layout: Layout,
    client: Callable[[str], Any],
    *,
    dedicated: Mapping[str, object],
    serverless: Mapping[str, object],
) -> Iterator[Drill]:
    """Deploy the drill stack `name` from a copy of the program in `folder`, and take it down again.

    `dedicated` and `serverless` are added to the lanes' configuration.
    """
    for part in ("infra", "policies"):
        shutil.copytree(project_root() / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "functions").symlink_to(project_root() / "functions")
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    (folder / "policies/drill.yaml").write_text(_POLICY)
    package(folder / "sleeper", _CODE)
    stack = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())
    for deferring in ("inferlane:batch", "inferlane:capture", "inferlane:nightly"):
        stack["config"].pop(deferring, None)
    stack["config"] |= {
        "inferlane:stage": "growth",
        "inferlane:policy": "policies/drill.yaml",
        "inferlane:models": {
            f"{name}-model": {
                "package": "sleeper",
                "dedicated": {
                    "instance_type": "ml.g5.xlarge",
                    "min_instances": 1,
                    "max_instances": 1,
                    "slots_per_instance": 4,
                    "bake_s": 0,
                    **dedicated,
                },
                "serverless": {"memory_mb": 1024, "max_concurrency": 8, **serverless},
            }
        },
    }
    (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(stack))
    deployed = deployment.run("up", name, cloud=cloud, layout=layout, project=folder)
    try:
        key = keys.create(client("dynamodb"), name, "drill", datetime.now(UTC)).key
        yield Drill(deployed, {"X-Api-Key": key})
    finally:
        deployment.run("destroy", name, cloud=cloud, layout=layout, project=folder)


def package(folder: Path, code: str) -> None:
    """A model package in `folder` whose inference code is `code`."""
    (folder / "build").mkdir(parents=True)
    with tarfile.open(folder / "build/model.tar.gz", "w:gz") as archive:
        for file, content in (("code/inference.py", code), ("code/requirements.txt", "")):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
