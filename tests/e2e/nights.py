"""A stack with a nightly recheck, and two models whose every verdict is known: one reads for "bad", one for "worse"."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.drills import package
from workbench import keys
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root

STACK = "nights"
ZONE = "Asia/Kathmandu"
_CODE = '''"""Flags what holds the word {word!r}; says so with a score."""
import json

def model_fn(model_dir):
    return None

def verdict(text):
    flagged = {word!r} in text
    return {{"label": "toxic" if flagged else "ok", "score": 0.9 if flagged else 0.1, "version": {word!r}}}

def answer(body):
    asked = json.loads(body)
    if "refuse" in body:
        return {{"inferlane_error": {{"status": 400, "detail": "refused"}}}} if {word!r} == "worse" else verdict("ok")
    if "texts" in asked:
        return {{"results": [verdict(text) for text in asked["texts"]]}}
    return verdict(asked["text"])

def input_fn(body, content_type):
    text = body if isinstance(body, str) else bytes(body).decode()
    if (content_type or "").startswith("application/jsonlines"):
        return [answer(line) for line in text.split("\\n") if line.strip()]
    return answer(text)

def predict_fn(data, model):
    return data

def output_fn(prediction, accept):
    if isinstance(prediction, list):
        return "".join(json.dumps(each) + "\\n" for each in prediction), "application/jsonlines"
    return json.dumps(prediction), "application/json"
'''
_POLICY = f"""\
schema: inferlane/policy/v1
version: nights.1
timezone: {ZONE}
defaults: {{order: [serverless]}}
routes:
  - {{path: /kept, model: light, capture: {{share: 100%, redact: [/user/email]}}}}
  - {{path: /hidden, model: light, capture: {{share: 100%, redact: body}}}}
  - {{path: /free, model: light}}
tiers: {{standard: {{max_priority: normal}}}}
tenants:
  - {{api_key: red, tenant: red, tier: standard, cost_center: red}}
"""


@dataclass(frozen=True)
class Nights:
    """The stack, and a caller of it."""

    deployed: Deployment
    headers: Mapping[str, str]


@contextmanager
def nights(folder: Path, cloud: Cloud, layout: Layout, client: Callable[[str], Any]) -> Iterator[Nights]:
    """Deploy it from a copy of the program in `folder`, and take it down again."""
    for part in ("infra", "policies"):
        shutil.copytree(project_root() / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "functions").symlink_to(project_root() / "functions")
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    (folder / "policies/nights.yaml").write_text(_POLICY)
    for name, word in (("light", "bad"), ("heavy", "worse")):
        package(folder / name, _CODE.format(word=word))
    local = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())["config"]
    batch = {"instance_type": "ml.c5.xlarge", "usd_per_instance_hour": 0.204, "startup_s": 5}
    config = {
        "aws:region": "us-east-1",
        "inferlane:stage": "mature",
        "inferlane:auth": "api_key",
        "inferlane:policy": "policies/nights.yaml",
        "inferlane:protect": False,
        "inferlane:router": local["inferlane:router"],
        "inferlane:models": {
            "light": {"package": "light", "serverless": {"memory_mb": 1024, "max_concurrency": 8}},
            "heavy": {"package": "heavy", "batch": batch},
        },
        "inferlane:capture": {"interval_s": 60},
        "inferlane:nightly": {"model": "heavy", "rechecks": "light", "pause_s": 1},
    }
    (folder / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump({"config": config}))
    deployed = deployment.run("up", STACK, cloud=cloud, layout=layout, project=folder)
    try:
        key = keys.create(client("dynamodb"), STACK, "red", datetime.now(UTC)).key
        yield Nights(deployed, {"X-Api-Key": key})
    finally:
        deployment.run("destroy", STACK, cloud=cloud, layout=layout, project=folder)
