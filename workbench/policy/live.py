"""Which policy a stack serves: its place in AppConfig, its history, and the document that is live.

The offline stack's ids are the deployment's outputs; a real account's are found by the names that the Pulumi program
gives (`inferlane-{stack}`, `live`, `policy`). Rules of the history: the live version is that of the newest deployment
that completed; one that still rolls out, or was rolled back, is not it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from functions.core.document import Fields
from functions.core.policy import Policy, PolicyError
from functions.core.policy_parser import parse_policy
from functions.core.topology import Topology
from workbench.errors import UserError
from workbench.policy.document import one_line

if TYPE_CHECKING:
    from mypy_boto3_appconfig import AppConfigClient

ENVIRONMENT: Final = "live"
PROFILE: Final = "policy"
PUSHED: Final = "push-"
"""Begins the label of every hosted version that a push made. Pulumi's provider gives its own no label."""
COMPLETE: Final = "COMPLETE"
ROLLING: Final = frozenset({"VALIDATING", "DEPLOYING", "BAKING", "ROLLING_BACK"})
"""States of a deployment that has not ended."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Where AppConfig has the policy."""

    application: str
    environment: str
    profile: str
    strategy: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """One deployment of a hosted version."""

    number: int
    version: int
    state: str
    percent: float

    @property
    def rolling(self) -> bool:
        """Whether it has not ended."""
        return self.state in ROLLING


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A document as AppConfig holds it."""

    version: int
    """AppConfig's number of the hosted version."""
    value: Mapping[str, object]
    policy: Policy


@dataclass(frozen=True, slots=True)
class Store:
    """A stack's policy in AppConfig, read only."""

    stack: str
    client: AppConfigClient
    ids: Ids

    def rollouts(self) -> list[Rollout]:
        """The deployments of the policy, newest first."""
        pages = self.client.get_paginator("list_deployments").paginate(
            ApplicationId=self.ids.application, EnvironmentId=self.ids.environment
        )
        found = [
            Rollout(
                item["DeploymentNumber"], int(item["ConfigurationVersion"]), item["State"], item["PercentageComplete"]
            )
            for page in pages
            for item in page["Items"]
            if item["ConfigurationName"] == PROFILE and item["ConfigurationVersion"].isdigit()
        ]
        return sorted(found, key=lambda rollout: -rollout.number)

    def versions(self) -> list[int]:
        """The hosted versions there are, newest first."""
        return list(self.labelled())

    def labelled(self) -> dict[int, str]:
        """The hosted versions there are with their labels, newest first."""
        pages = self.client.get_paginator("list_hosted_configuration_versions").paginate(
            ApplicationId=self.ids.application, ConfigurationProfileId=self.ids.profile
        )
        found = {item["VersionNumber"]: item.get("VersionLabel", "") for page in pages for item in page["Items"]}
        return dict(sorted(found.items(), reverse=True))

    def live(self) -> LivePolicy | None:
        """The policy in force, or None before the first deployment completed. Raises `UserError`."""
        newest = next((rollout for rollout in self.rollouts() if rollout.state == COMPLETE), None)
        return None if newest is None else self.version(newest.version)

    def content(self, number: int) -> bytes:
        """The bytes of one hosted version."""
        held = self.client.get_hosted_configuration_version(
            ApplicationId=self.ids.application, ConfigurationProfileId=self.ids.profile, VersionNumber=number
        )
        return held["Content"].read()

    def version(self, number: int) -> LivePolicy:
        """One hosted version. Raises `UserError` when it holds no policy that this program can read."""
        content = self.content(number)
        try:
            value = json.loads(content)
            return LivePolicy(number, Fields.of(value).values, parse_policy(value))
        except PolicyError as error:
            cause = str(error)
        except (ValueError, RecursionError):
            cause = "it is not JSON"
        raise UserError(one_line(f"hosted version {number} of stack {self.stack} is no policy: {cause}"))


def offline_store(stack: str) -> tuple[Store, Topology]:
    """The store of a stack on the offline cloud, and the stack's topology. Raises `UserError`."""
    from workbench.stack import deployment
    from workbench.stack.cloud import current
    from workbench.stack.layout import Layout

    layout = Layout.default()
    cloud = current(layout)
    outputs = deployment.run("outputs", stack, cloud=cloud, layout=layout).outputs
    client = cloud.client("appconfig")
    held = outputs["policy"]
    ids = Ids(held["application"], held["environment"], held["profile"], _strategy(client, stack))
    return Store(stack, client, ids), Topology.from_json(outputs["topology"])


def account_store(stack: str) -> Store:
    """The store of a stack in the account that the default credential chain leads to. Raises `UserError`."""
    import boto3

    client: AppConfigClient = boto3.Session(region_name=region_of(stack)).client("appconfig")
    applications = client.get_paginator("list_applications").paginate()
    application = _named(applications, f"inferlane-{stack}", f"stack {stack} is not deployed to this account")
    environments = client.get_paginator("list_environments").paginate(ApplicationId=application)
    profiles = client.get_paginator("list_configuration_profiles").paginate(ApplicationId=application)
    missing = f"stack {stack} has no policy in this account"
    environment, profile = _named(environments, ENVIRONMENT, missing), _named(profiles, PROFILE, missing)
    return Store(stack, client, Ids(application, environment, profile, _strategy(client, stack)))


def _strategy(client: AppConfigClient, stack: str) -> str:
    pages = client.get_paginator("list_deployment_strategies").paginate()
    return _named(pages, f"inferlane-{stack}-policy", f"stack {stack} has no deployment strategy for its policy")


def _named(pages: Any, name: str, missing: str) -> str:
    """The id of what has this name. `pages` are of any of AppConfig's lists."""
    for page in pages:
        for item in page["Items"]:
            if item["Name"] == name:
                return str(item["Id"])
    raise UserError(f"{missing}: there is no {name!r} in AppConfig")


def region_of(stack: str) -> str | None:
    """The stack's region as its configuration says; None leaves it to the credential chain."""
    from workbench.stack.layout import project_root

    file = project_root() / f"Pulumi.{stack}.yaml"
    if not file.exists():
        return None
    config = (yaml.safe_load(file.read_text()) or {}).get("config") or {}
    return config.get("aws:region")
