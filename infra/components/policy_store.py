"""The policy document's way to the router: AppConfig, which numbers its versions and rolls a new one out by degrees.

The document is authored as YAML and stored as JSON, the form the router reads. A changed document is a new hosted
version and a new deployment of it, after which Pulumi deletes the version before; the router polls, and keeps the last
good one. Versions that `inferlane policy push` made are not in Pulumi's state: `inferlane policy clear` takes them away
before a destroy (docs/decisions/0010). Before AppConfig takes a version, by
whatever way it comes, it has the `validate` function read it with the router's own eyes: a document that the router
could not use is refused with its problems. While a rollout lasts, the stack's
error alarms are watched, and one that rings brings the version before back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming, package
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.config import RolloutConfig

ENVIRONMENT = "live"
PROFILE = "policy"
VALIDATE_MEMORY_MB = 512
VALIDATE_TIMEOUT_S = 10
"""The largest document takes a second or two; AppConfig gives a validator 15 s."""
MAX_MONITORS = 5
"""Alarms of one environment (botocore appconfig 2019-10-09, MonitorList.max)."""


@dataclass(frozen=True)
class PolicyStoreArgs:
    """The document and how it is rolled out."""

    stack: str
    document: str
    """JSON."""
    rollout: RolloutConfig
    alarms: Sequence[aws.cloudwatch.MetricAlarm]
    """What a rollout must not set off."""
    log_retention_days: int
    tags: Mapping[str, str]


class PolicyStore(pulumi.ComponentResource):
    """The AppConfig application whose one profile is the policy."""

    application_id: pulumi.Output[str]
    environment_id: pulumi.Output[str]
    profile_id: pulumi.Output[str]
    reads: iam.Allow
    """What a role needs to read the document."""
    validate: LambdaFunction

    def __init__(self, name: str, args: PolicyStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:PolicyStore", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        self.validate = self._validator(args)
        application = aws.appconfig.Application(
            f"{name}-application", name=f"{naming.PROJECT}-{args.stack}", tags=args.tags, opts=here
        )
        environment = aws.appconfig.Environment(
            f"{name}-environment",
            name=ENVIRONMENT,
            application_id=application.id,
            monitors=self._monitors(name, args) if args.rollout.takes_time else None,
            tags=args.tags,
            opts=here,
        )
        profile = self._profile(name, args, application)
        deployment = self._deployment(name, args, environment, profile)
        # Read off the deployment, so that whoever is given the ids finds a document deployed under them.
        self.application_id = deployment.application_id
        self.environment_id = deployment.environment_id
        self.profile_id = deployment.configuration_profile_id
        self.reads = iam.Allow(
            ["appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration"],
            [pulumi.Output.concat(environment.arn, "/configuration/", self.profile_id)],
        )
        self.register_outputs(
            {"application": self.application_id, "environment": self.environment_id, "profile": self.profile_id}
        )

    def _profile(
        self, name: str, args: PolicyStoreArgs, application: aws.appconfig.Application
    ) -> aws.appconfig.ConfigurationProfile:
        permission = self.validate.may_be_called(
            # AppConfig does not say which source it names, so none can be asked for; all there is to call for is a
            # reading of the caller's own text.
            f"{name}-calls-validate",
            None,
            "appconfig.amazonaws.com",
        )
        return aws.appconfig.ConfigurationProfile(
            f"{name}-profile",
            name=PROFILE,
            application_id=application.id,
            location_uri="hosted",
            type="AWS.Freeform",
            # No JSON Schema beside it: AppConfig's knows draft 4 and 32 KiB of schema, ours is a later draft.
            validators=[{"type": "LAMBDA", "content": self.validate.alias.arn}],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[permission]),
        )

    def _deployment(
        self,
        name: str,
        args: PolicyStoreArgs,
        environment: aws.appconfig.Environment,
        profile: aws.appconfig.ConfigurationProfile,
    ) -> aws.appconfig.Deployment:
        """The document as a version of the profile, rolled out to the environment."""
        here = pulumi.ResourceOptions(parent=self)
        version = aws.appconfig.HostedConfigurationVersion(
            f"{name}-version",
            application_id=profile.application_id,
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
        return aws.appconfig.Deployment(
            f"{name}-deployment",
            application_id=profile.application_id,
            environment_id=environment.environment_id,
            configuration_profile_id=profile.configuration_profile_id,
            configuration_version=version.version_number.apply(str),
            deployment_strategy_id=strategy.id,
            tags=args.tags,
            opts=here,
        )

    def _validator(self, args: PolicyStoreArgs) -> LambdaFunction:
        return LambdaFunction(
            "validate",
            LambdaFunctionArgs(
                function_name=naming.stack_name(args.stack, "validate"),
                handler="functions.handlers.validate.handler",
                description="Reads a policy document as the router would, and says what is wrong with it",
                code=package.archive(),
                environment=None,
                memory_mb=VALIDATE_MEMORY_MB,
                timeout_s=VALIDATE_TIMEOUT_S,
                statements=[],
                log_retention_days=args.log_retention_days,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _monitors(self, name: str, args: PolicyStoreArgs) -> list[aws.appconfig.EnvironmentMonitorArgsDict]:
        alarms = args.alarms[:MAX_MONITORS]
        if len(alarms) < len(args.alarms):
            pulumi.log.warn(
                f"AppConfig watches {MAX_MONITORS} alarms at most: a policy's rollout is rolled back by the errors of "
                f"the first {MAX_MONITORS} models only",
                self,
            )
        role = aws.iam.Role(
            f"{name}-rollback-role",
            name=naming.stack_name(args.stack, "policy-rollback"),
            description="AppConfig watches the alarms that roll a policy back",
            assume_role_policy=iam.trust("appconfig.amazonaws.com"),
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        grants = aws.iam.RolePolicy(
            f"{name}-rollback-grants",
            name="alarms",
            role=role.name,
            policy=iam.policy([iam.Allow(["cloudwatch:DescribeAlarms"], [alarm.arn for alarm in alarms])]),
            opts=pulumi.ResourceOptions(parent=self),
        )
        # Read off the grants as well, so that AppConfig is never handed a role that may not look yet.
        role_arn = pulumi.Output.all(role.arn, grants.id).apply(lambda made: str(made[0]))
        return [{"alarm_arn": alarm.arn, "alarm_role_arn": role_arn} for alarm in alarms]
