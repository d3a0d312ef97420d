"""Programs captured once for the whole session, in one process of their own (see `capture.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, cast

import pytest
import yaml

from tests.infra.capture import ROOT, Program, Resource

JWT = {"issuer": "https://login.example.com/tenant", "audience": ["inferlane", "inferlane-ops"]}
TOPIC = "arn:aws:sns:us-east-1:000000000000:on-call"
LIGHT = "models/moderation-light"
"""Stands for the heavy model's package too: what is built of it does not matter here."""
NOTIFY = {
    "topic": TOPIC,
    "webhooks": {"acme": {"url": "https://hooks.example.com/jobs", "secret_parameter": "/inferlane/webhooks/acme"}},
}
DATASETS = ["s3://reviews/in/{tenant}/", "s3://reviews-out/"]
DATASET_KEY = "arn:aws:kms:us-east-1:000000000000:key/reviews"
_HEAVY: dict[str, object] = {"models.moderation-heavy.package": LIGHT}
CASES: Mapping[str, tuple[str, dict[str, object]]] = {
    "local": ("local", _HEAVY),
    "growth": ("growth", {}),
    "prototype": ("prototype", {}),
    "mature": ("mature", _HEAVY),
    "mature-plain": ("mature", {**_HEAVY, "nightly": None, "capture": None}),
    "mature-told": (
        "mature",
        {
            **_HEAVY,
            "auth": "api_key",
            "batch": {"notify": NOTIFY, "datasets": DATASETS, "dataset_keys": [DATASET_KEY], "audit_hours": 1},
            "alarms": {"topic": TOPIC},
        },
    ),
    "growth-jwt": ("growth", {"auth": "jwt", "jwt": JWT}),
    "growth-topic": ("growth", {"alarms": {"errors_percent": 2, "p99_ms": 2000, "topic": TOPIC}}),
    "local-again": ("local", _HEAVY),
    "local-3072-mb": ("local", {**_HEAVY, "models.moderation.serverless.memory_mb": 3072}),
    "local-8-slots": ("local", {**_HEAVY, "models.moderation.dedicated.slots_per_instance": 8}),
}
"""Case -> stack file and what is changed in it (dotted paths under `inferlane:`)."""


def config_values(stack: str, changes: Mapping[str, object] = {}) -> dict[str, Any]:
    """The values under `inferlane:` of a stack file, some of them changed; a None takes a key out."""
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    values = {key.split(":", 1)[1]: value for key, value in config.items() if key.startswith("inferlane:")}
    for path, value in changes.items():
        *sections, key = path.split(".")
        section = values
        for name in sections:
            section = section[name]
        if value is None:
            del section[key]
        else:
            section[key] = value
    return values


@pytest.fixture(scope="session")
def programs() -> dict[str, Program]:
    """What the program asks for in each case."""
    cases = [
        {"stack": stack, "set": {f"inferlane:{key}": config_values(stack, changes).get(key) for key in keys}}
        for stack, changes in CASES.values()
        for keys in [{**config_values(stack), **config_values(stack, changes)}]
    ]
    run = subprocess.run(
        [sys.executable, "-m", "tests.infra.capture"],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return dict(zip(CASES, json.loads(run.stdout), strict=True))


def named(program: Program, name: str) -> dict[str, Any]:
    """The inputs of the resource with this logical name."""
    return one(program, name)["inputs"]


def one(program: Program, name: str) -> Resource:
    """The resource with this logical name; there is exactly one."""
    (found,) = (resource for resource in program["resources"] if resource["name"] == name)
    return found


def of_type(program: Program, kind: str) -> list[Resource]:
    """All resources whose type ends in this class name."""
    return [resource for resource in program["resources"] if resource["type"].endswith(f":{kind}")]


def statements(program: Program, name: str) -> list[dict[str, Any]]:
    """The statements of a role policy, without their effect, which is Allow."""
    document = json.loads(named(program, name)["policy"])
    assert {statement.pop("Effect") for statement in document["Statement"]} == {"Allow"}
    return cast("list[dict[str, Any]]", document["Statement"])
