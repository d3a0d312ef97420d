"""A hosted version's way past the profile's validators, on a cloud that answers from a script."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.stack.deployer.fakes import NoCloud
from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Instance
from workbench.stack.deployer.table import ROWS

TYPE = "aws:appconfig/hostedConfigurationVersion:HostedConfigurationVersion"
FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:inferlane-x-validate:live"
LAMBDA = {"Type": "LAMBDA", "Content": FUNCTION}


class Scripted(NoCloud):
    """A cloud with one profile and one function; keeps the events that the function was sent."""

    def __init__(self, validators: list[Mapping[str, str]], raised: str | None = None, payload: bytes = b"") -> None:
        self._profile: dict[str, object] = {"LocationUri": "hosted", "Validators": validators}
        self._error: dict[str, object] = {"FunctionError": "Unhandled"} if raised is not None or payload else {}
        self._payload = payload or json.dumps({"errorType": "ValueError", "errorMessage": raised}).encode()
        self.events: list[tuple[object, Any]] = []

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, object]:
        if (service, operation) == ("appconfig", "get_configuration_profile"):
            assert parameters == {"ApplicationId": "app", "ConfigurationProfileId": "pro"}
            return self._profile
        assert (service, operation) == ("lambda", "invoke")
        sent = parameters["Payload"]
        assert isinstance(sent, bytes)
        self.events.append((parameters["FunctionName"], json.loads(sent)))
        return {**self._error, "Payload": io.BytesIO(self._payload)}


def admitted(cloud: Scripted, content: str = "{}") -> Instance:
    """A version that passed; raises what refused it."""
    inputs = {"applicationId": "app", "configurationProfileId": "pro", "content": content}
    instance = Instance(TYPE, "version", cloud, inputs)
    admit = ROWS[TYPE].admit
    assert admit is not None
    admit(instance)
    return instance


def test_the_validator_gets_appconfigs_event() -> None:
    """The function is called with the documented event, the content in Base64."""
    cloud = Scripted([LAMBDA])
    admitted(cloud, '{"version":"é"}')

    ((function, event),) = cloud.events
    assert function == FUNCTION
    assert base64.b64decode(event.pop("content")).decode() == '{"version":"é"}'
    assert event == {
        "applicationId": "app",
        "configurationProfileId": "pro",
        "configurationVersion": "",
        "uri": "hosted",
    }


def test_without_validators_nobody_is_asked() -> None:
    """A profile without validators takes anything."""
    cloud = Scripted([])

    assert admitted(cloud).notes == []
    assert cloud.events == []


def test_what_it_raises_refuses_the_version() -> None:
    """One line with the function and all its problems, under the operation that AppConfig would have refused."""
    with pytest.raises(CloudError) as error:
        admitted(Scripted([LAMBDA], raised="rules[0].order: unknown lane 'gpu'\n  tiers: overlap\n"))

    assert error.value.operation == "appconfig.create_hosted_configuration_version"
    assert str(error.value).endswith(
        ": refused by its validator inferlane-x-validate:live: rules[0].order: unknown lane 'gpu'; tiers: overlap"
    )


@pytest.mark.parametrize("payload", [b"Task timed out", b"[]", b"{}"])
def test_a_validator_that_fails_to_say_why_refuses_too(payload: bytes) -> None:
    """A crash is no consent; what it said is passed on as it is."""
    with pytest.raises(CloudError) as error:
        admitted(Scripted([LAMBDA], payload=payload))

    assert payload.decode() in str(error.value)


def test_a_schema_validator_is_said_not_to_have_run() -> None:
    """What the deployer does not check, it does not pass over in silence."""
    instance = admitted(Scripted([{"Type": "JSON_SCHEMA", "Content": "{}"}, LAMBDA]))

    assert instance.notes == ["its JSON_SCHEMA validator is AppConfig's to run; offline nobody did"]
