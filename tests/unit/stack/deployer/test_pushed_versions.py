"""What happens at a profile's end to the hosted versions that no program made."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

from tests.unit.stack.deployer.fakes import NoCloud, Things, engine, goal
from workbench.stack.deployer.progress import JsonProgress
from workbench.stack.deployer.row import Instance
from workbench.stack.deployer.state import StateFile
from workbench.stack.deployer.table import ROWS

TYPE = "aws:appconfig/configurationProfile:ConfigurationProfile"
NAMES = {"ApplicationId": "app", "ConfigurationProfileId": "pro"}


class Profile(NoCloud):
    """A cloud with one profile, which tells its versions two at a time."""

    def __init__(self, *versions: int) -> None:
        self.versions = list(versions)

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, object]:
        given = dict(parameters)
        if (service, operation) == ("appconfig", "list_hosted_configuration_versions"):
            assert given == NAMES
            return {"Items": [{"VersionNumber": number} for number in self.versions[:2]]}
        assert (service, operation) == ("appconfig", "delete_hosted_configuration_version")
        number = given.pop("VersionNumber")
        assert given == NAMES
        assert isinstance(number, int)
        self.versions.remove(number)
        return {}


def emptied(cloud: Profile) -> Instance:
    """The profile on its way out."""
    instance = Instance(TYPE, "policy-profile", cloud, {"applicationId": "app"})
    instance.outputs = {"configurationProfileId": "pro"}
    before_delete = ROWS[TYPE].before_delete
    assert before_delete is not None
    before_delete(instance)
    return instance


def test_pushed_versions_go_and_the_engineer_hears_of_it() -> None:
    """Every one, page after page; the notice says what AWS itself would do, and the way out."""
    cloud = Profile(5, 4, 2)
    (note,) = emptied(cloud).notes
    assert cloud.versions == []
    assert note.startswith("versions 2, 4, 5 were pushed past the program")
    assert "inferlane policy clear" in note


def test_a_profile_that_only_the_program_filled_says_nothing() -> None:
    """Its own version is gone before it."""
    assert emptied(Profile()).notes == []


def test_notes_of_a_deletion_are_told(tmp_path: Path) -> None:
    """As those of a creation are."""

    class Talking(Things):
        def delete(self, instance: Instance) -> None:
            super().delete(instance)
            instance.notes.append("left something")

    told, things = io.StringIO(), Talking()
    one = engine(StateFile.open(tmp_path / "state.json", "fakes", "test"), things, JsonProgress(told))
    one.register(goal("a"))
    one.destroy()
    assert any("left something" in json.dumps(json.loads(line)) for line in told.getvalue().splitlines())
