"""AppConfig: applications, environments, profiles, hosted versions, strategies and deployments.

A deployment that is to happen at once is waited for; one that its strategy draws out is started, and said to go on. It
cannot be deleted, only followed by another: it leaves the state with its environment. A hosted version is deleted
before its profile, as the API wants.

AppConfig runs a profile's validators before it takes a new hosted version. Emulated ones take anything, so the deployer
stands in for them: it invokes the profile's Lambda validators itself, with the event that AppConfig documents, and what
they raise fails the deploy before a version exists. Where AppConfig validates too, that is once more than needed.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Protocol, cast

from workbench.stack.deployer.errors import BrokenError, CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.values import items, mapping

LIMIT_S = 120.0
POLL_S = 0.2
_ARN = "arn:aws:appconfig:{region}:{account}:"
_TAGS = Tags("tag_resource", "untag_resource", "ResourceArn")
_APPLICATION: Templates = {"ApplicationId": "{in.applicationId}"}
_ENVIRONMENT: Templates = {**_APPLICATION, "EnvironmentId": "{own.environmentId}"}
_PROFILE: Templates = {**_APPLICATION, "ConfigurationProfileId": "{own.configurationProfileId}"}
_VERSION: Templates = {
    **_APPLICATION,
    "ConfigurationProfileId": "{in.configurationProfileId}",
    "VersionNumber": "{own.versionNumber}",
}


def _await_deployment(instance: Instance) -> None:
    parameters = {
        "ApplicationId": instance.inputs["applicationId"],
        "EnvironmentId": instance.inputs["environmentId"],
        "DeploymentNumber": instance.outputs["deploymentNumber"],
    }
    started = time.monotonic()
    while True:
        found = instance.cloud.call("appconfig", "get_deployment", parameters)
        state = found.get("State")
        instance.outputs["state"] = state
        if state == "COMPLETE":
            return
        if state in ("ROLLED_BACK", "ROLLING_BACK", "REVERTED"):
            raise BrokenError("appconfig.start_deployment", f"the deployment ended {state}")
        minutes = [found.get(name) or 0 for name in ("DeploymentDurationInMinutes", "FinalBakeTimeInMinutes")]
        planned = sum(float(str(value)) for value in minutes)
        if planned:
            instance.notes.append(
                f"is rolled out and watched for {planned:.0f} min, as its strategy says; not waited for"
            )
            return
        if time.monotonic() - started > LIMIT_S:
            raise CloudError("appconfig.get_deployment", f"still {state} after {LIMIT_S:.0f} s")
        instance.cloud.pause(POLL_S)


class _Stream(Protocol):
    def read(self) -> bytes: ...


def _validate(instance: Instance) -> None:
    """Raises the cloud's own error for content that a validator of the profile refuses."""
    profile = {name: instance.inputs[name] for name in ("applicationId", "configurationProfileId")}
    asked = {f"{name[0].upper()}{name[1:]}": value for name, value in profile.items()}
    found = instance.cloud.call("appconfig", "get_configuration_profile", asked)
    event = {
        **profile,
        "configurationVersion": "",  # it gets its number once it is accepted
        "content": base64.b64encode(instance.text("content").encode()).decode(),
        "uri": found.get("LocationUri", "hosted"),
    }
    for validator in map(mapping, items(found.get("Validators"))):
        if validator.get("Type") == "LAMBDA":
            _ask(instance, str(validator["Content"]), event)
        else:
            instance.notes.append(f"its {validator.get('Type')} validator is AppConfig's to run; offline nobody did")


def _ask(instance: Instance, function: str, event: Mapping[str, object]) -> None:
    answer = instance.cloud.call("lambda", "invoke", {"FunctionName": function, "Payload": json.dumps(event).encode()})
    if not answer.get("FunctionError"):
        return
    cause = _error_message(cast(_Stream, answer["Payload"]).read().decode(errors="replace"))
    lines = "; ".join(line.strip() for line in cause.splitlines() if line.strip())
    operation = "appconfig.create_hosted_configuration_version"
    raise CloudError(operation, f"refused by its validator {function.split(':function:')[-1]}: {lines}", "BadRequest")


def _error_message(payload: str) -> str:
    """What a function raised, from Lambda's error document; anything else as it is."""
    try:
        document = json.loads(payload)
    except ValueError:
        return payload
    message = document.get("errorMessage") if isinstance(document, dict) else None
    return str(message or payload)


def _empty(instance: Instance) -> None:
    """Removes the versions that came past the program (`inferlane policy push`): AWS deletes no profile that holds any,
    and the program knows only its own, which is gone by now."""
    profile = {
        "ApplicationId": instance.inputs["applicationId"],
        "ConfigurationProfileId": instance.outputs["configurationProfileId"],
    }
    removed: list[int] = []
    while True:  # each look finds what the one before it left
        found = instance.cloud.call("appconfig", "list_hosted_configuration_versions", profile)
        versions = [int(str(mapping(version)["VersionNumber"])) for version in items(found.get("Items"))]
        if not versions:
            break
        for version in versions:
            instance.cloud.call(
                "appconfig", "delete_hosted_configuration_version", {**profile, "VersionNumber": version}
            )
        removed += versions
    if removed:
        instance.notes.append(
            f"versions {', '.join(map(str, sorted(removed)))} were pushed past the program and were removed; "
            "`pulumi destroy` would fail here: on AWS run `inferlane policy clear` before it"
        )


ROWS = (
    Row(
        type="aws:appconfig/application:Application",
        service="appconfig",
        create=Call("create_application"),
        id="{out.Id}",
        outputs={"name": "{in.name}", "arn": _ARN + "application/{id}"},
        auto_name="name",
        steps=(
            Step(("name", "description"), Call("update_application", params={"ApplicationId": "{id}"}), at="update"),
        ),
        tags=_TAGS,
        read=Call("get_application", params={"ApplicationId": "{id}"}),
        delete=Call("delete_application", params={"ApplicationId": "{id}"}),
    ),
    Row(
        type="aws:appconfig/environment:Environment",
        service="appconfig",
        create=Call("create_environment"),
        id="{out.Id}:{in.applicationId}",
        outputs={
            "name": "{in.name}",
            "environmentId": "{out.Id}",
            "arn": _ARN + "application/{in.applicationId}/environment/{own.environmentId}",
            "state": "{out.State}",
        },
        auto_name="name",
        steps=(
            Step(("name", "description", "monitors"), Call("update_environment", params=_ENVIRONMENT), at="update"),
        ),
        tags=_TAGS,
        read=Call("get_environment", params=_ENVIRONMENT),
        delete=Call("delete_environment", params=_ENVIRONMENT),
    ),
    Row(
        type="aws:appconfig/configurationProfile:ConfigurationProfile",
        service="appconfig",
        create=Call("create_configuration_profile"),
        id="{out.Id}:{in.applicationId}",
        outputs={
            "name": "{in.name}",
            "configurationProfileId": "{out.Id}",
            "arn": _ARN + "application/{in.applicationId}/configurationprofile/{own.configurationProfileId}",
        },
        auto_name="name",
        steps=(
            Step(
                ("name", "description", "retrievalRoleArn", "validators", "kmsKeyIdentifier"),
                Call("update_configuration_profile", params=_PROFILE),
                at="update",
            ),
        ),
        tags=_TAGS,
        read=Call("get_configuration_profile", params=_PROFILE),
        before_delete=_empty,
        delete=Call("delete_configuration_profile", params=_PROFILE),
    ),
    Row(
        type="aws:appconfig/hostedConfigurationVersion:HostedConfigurationVersion",
        service="appconfig",
        create=Call("create_hosted_configuration_version"),
        admit=_validate,
        id="{in.applicationId}/{in.configurationProfileId}/{out.VersionNumber}",
        outputs={
            "versionNumber": "{out.VersionNumber}",
            "arn": _ARN
            + "application/{in.applicationId}/configurationprofile/{in.configurationProfileId}"
            + "/hostedconfigurationversion/{own.versionNumber}",
        },
        read=Call("get_hosted_configuration_version", params=_VERSION),
        delete=Call("delete_hosted_configuration_version", params=_VERSION),
    ),
    Row(
        type="aws:appconfig/deploymentStrategy:DeploymentStrategy",
        service="appconfig",
        create=Call("create_deployment_strategy"),
        id="{out.Id}",
        outputs={"name": "{in.name}", "arn": _ARN + "deploymentstrategy/{id}"},
        auto_name="name",
        steps=(
            Step(
                ("description", "deploymentDurationInMinutes", "finalBakeTimeInMinutes", "growthFactor", "growthType"),
                Call("update_deployment_strategy", params={"DeploymentStrategyId": "{id}"}),
                at="update",
            ),
        ),
        tags=_TAGS,
        read=Call("get_deployment_strategy", params={"DeploymentStrategyId": "{id}"}),
        delete=Call("delete_deployment_strategy", params={"DeploymentStrategyId": "{id}"}),
    ),
    Row(
        type="aws:appconfig/deployment:Deployment",
        service="appconfig",
        create=Call("start_deployment"),
        id="{in.applicationId}/{in.environmentId}/{out.DeploymentNumber}",
        outputs={
            "deploymentNumber": "{out.DeploymentNumber}",
            "arn": _ARN
            + "application/{in.applicationId}/environment/{in.environmentId}/deployment/{own.deploymentNumber}",
            "state": "{out.State}",
        },
        tags=_TAGS,
        settle=_await_deployment,
        gone_with="its environment",
        read=Call(
            "get_deployment",
            params={
                **_APPLICATION,
                "EnvironmentId": "{in.environmentId}",
                "DeploymentNumber": "{own.deploymentNumber}",
            },
        ),
    ),
)
