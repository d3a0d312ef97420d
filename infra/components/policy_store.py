"""The policy document's way to the router: AppConfig, which keeps every version and rolls a new one out by degrees.

The document is authored as YAML and stored as JSON, the form the router reads. A changed document is a new hosted
version and a new deployment of it; the router polls, and keeps the last good one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import naming
from infra.config import RolloutConfig

ENVIRONMENT = "live"
PROFILE = "policy"


@dataclass(frozen=True)
class PolicyStoreArgs:
    """The document and how it is rolled out."""

    stack: str
    document: str
    """JSON."""
    rollout: RolloutConfig
    tags: Mapping[str, str]


class PolicyStore(pulumi.ComponentResource):
    """The AppConfig application whose one profile is the policy."""

    application_id: pulumi.Output[str]
    environment_id: pulumi.Output[str]
    profile_id: pulumi.Output[str]
    configuration_arn: pulumi.Output[str]
    """What reading the document is granted on."""

    def __init__(self, name: str, args: PolicyStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:PolicyStore", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        application = aws.appconfig.Application(
            f"{name}-application", name=f"{naming.PROJECT}-{args.stack}", tags=args.tags, opts=here
        )
        environment = aws.appconfig.Environment(
            f"{name}-environment", name=ENVIRONMENT, application_id=application.id, tags=args.tags, opts=here
        )
        profile = aws.appconfig.ConfigurationProfile(
            f"{name}-profile",
            name=PROFILE,
            application_id=application.id,
            location_uri="hosted",
            type="AWS.Freeform",
            tags=args.tags,
            opts=here,
        )
        version = aws.appconfig.HostedConfigurationVersion(
            f"{name}-version",
            application_id=application.id,
            configuration_profile_id=profile.configuration_profile_id,
            content=args.document,
            content_type="application/json",
            opts=here,
        )
        strategy = aws.appconfig.DeploymentStrategy(
            f"{name}-rollout",
            name=naming.stack_name(args.stack, "policy"),
            deployment_duration_in_minutes=args.rollout.duration_min,
            final_bake_time_in_minutes=args.rollout.bake_min,
            growth_factor=args.rollout.growth_percent,
            growth_type="LINEAR",
            replicate_to="NONE",
            tags=args.tags,
            opts=here,
        )
        deployment = aws.appconfig.Deployment(
            f"{name}-deployment",
            application_id=application.id,
            environment_id=environment.environment_id,
            configuration_profile_id=profile.configuration_profile_id,
            configuration_version=version.version_number.apply(str),
            deployment_strategy_id=strategy.id,
            tags=args.tags,
            opts=here,
        )
        # Read off the deployment, so that whoever is given the ids finds a document deployed under them.
        self.application_id = deployment.application_id
        self.environment_id = deployment.environment_id
        self.profile_id = deployment.configuration_profile_id
        self.configuration_arn = pulumi.Output.concat(environment.arn, "/configuration/", self.profile_id)
        self.register_outputs(
            {"application": self.application_id, "environment": self.environment_id, "profile": self.profile_id}
        )
