"""AppConfig as far as the policy commands use it, in memory, with deployments that take as many looks as told."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from workbench.policy.live import Ids, Store


class BadRequestError(Exception):
    """What the service answers to a document or a deployment it refuses."""


class ConflictError(Exception):
    """What the service answers while another deployment goes on."""


class _Exceptions:
    BadRequestException = BadRequestError
    ConflictException = ConflictError


@dataclass
class _Pages:
    """A paginator whose pages hold one item each."""

    items: list[dict[str, Any]]

    def paginate(self, **_names: str) -> Iterator[dict[str, Any]]:
        yield {"Items": []}
        for item in self.items:
            yield {"Items": [item]}


@dataclass
class FakeAppConfig:
    """One application with one environment and one profile."""

    looks: int = 1
    """How often a deployment is looked at until it is complete."""
    minutes: int = 0
    ends: str = "COMPLETE"
    refuses_documents: str = ""
    refuses_deployments: type[Exception] | None = None
    versions: dict[int, bytes] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    deployments: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    exceptions: type[_Exceptions] = _Exceptions
    _next_version: int = 1

    def store(self) -> Store:
        """The store that a command would open."""
        return Store("test", cast(Any, self), Ids("app", "env", "profile", "strategy"))

    def seed(self, content: bytes, state: str = "COMPLETE", label: str = "") -> int:
        """A version and its deployment, as an earlier push or deploy left them."""
        version = self._add(content, label)
        self.deployments.append(self._deployment(version, state))
        return version

    def get_paginator(self, name: str) -> _Pages:
        self.calls.append(name)
        if name == "list_deployments":
            return _Pages([dict(deployment) for deployment in self.deployments])
        told = self.labels
        return _Pages([{"VersionNumber": n, **({"VersionLabel": told[n]} if told[n] else {})} for n in self.versions])

    def get_hosted_configuration_version(self, *, VersionNumber: int, **_: str) -> dict[str, Any]:  # noqa: N803
        return {"Content": io.BytesIO(self.versions[VersionNumber])}

    def create_hosted_configuration_version(
        self,
        *,
        Content: bytes,  # noqa: N803
        Description: str,  # noqa: N803
        VersionLabel: str,  # noqa: N803
        **_: str,
    ) -> dict[str, Any]:
        self.calls.append("create")
        if self.refuses_documents:
            raise BadRequestError(self.refuses_documents)
        json.loads(Content)
        Description.encode("ascii")
        assert VersionLabel not in self.labels.values()
        assert re.fullmatch(r".*[^0-9].*", VersionLabel)
        assert len(VersionLabel) <= 64
        return {"VersionNumber": self._add(Content, VersionLabel)}

    def delete_hosted_configuration_version(self, *, VersionNumber: int, **_: str) -> None:  # noqa: N803
        self.calls.append("delete")
        del self.versions[VersionNumber]

    def start_deployment(self, *, ConfigurationVersion: str, **_: str) -> dict[str, Any]:  # noqa: N803
        self.calls.append("start")
        if self.refuses_deployments is not None:
            raise self.refuses_deployments("refused")
        self.deployments.append(self._deployment(int(ConfigurationVersion), "DEPLOYING"))
        return {"DeploymentNumber": len(self.deployments)}

    def stop_deployment(self, *, DeploymentNumber: int, AllowRevert: bool, **_: str) -> None:  # noqa: N803
        self.calls.append("stop")
        found = self.deployments[DeploymentNumber - 1]
        if found["State"] != "DEPLOYING" and not AllowRevert:
            raise BadRequestError("cannot be stopped")
        found["State"] = "REVERTED" if found["State"] == "COMPLETE" else "ROLLED_BACK"

    def get_deployment(self, *, DeploymentNumber: int, **_: str) -> dict[str, Any]:  # noqa: N803
        found = self.deployments[DeploymentNumber - 1]
        if found["State"] == "DEPLOYING":
            found["looked"] += 1
            found["PercentageComplete"] = 100.0 * min(1.0, found["looked"] / self.looks)
            if found["looked"] >= self.looks:
                found["State"] = self.ends
        event = {"Description": "Rollback initiated by alarm errors-moderation"}
        return {**found, "EventLog": [event] if found["State"] == "ROLLED_BACK" else []}

    def _add(self, content: bytes, label: str) -> int:
        number = self._next_version
        self._next_version += 1
        self.versions[number] = content
        self.labels[number] = label
        return number

    def _deployment(self, version: int, state: str) -> dict[str, Any]:
        return {
            "DeploymentNumber": len(self.deployments) + 1,
            "ConfigurationName": "policy",
            "ConfigurationVersion": str(version),
            "State": state,
            "PercentageComplete": 100.0 if state == "COMPLETE" else 30.0,
            "DeploymentDurationInMinutes": self.minutes,
            "FinalBakeTimeInMinutes": 0,
            "looked": 0,
        }
