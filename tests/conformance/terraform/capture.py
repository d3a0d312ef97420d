"""One stack of the Pulumi program as a Terraform configuration.

`python -m tests.conformance.terraform.capture --stack local --schema schema.json --out DIR [--set KEY=VALUE]` writes
`main.tf.json` and, beside it, the files of assets and archives under their hash. A process of its own: Pulumi's runtime
is global.

What Pulumi's engine would do and Terraform is told to do alike: resources wait for those they depend on, a replacement
comes before the deletion of the old one unless the program asks otherwise, ignored properties are left alone. Names
that Pulumi would make up are left to the provider. Protection is not passed on: destroying a protected stack begins
with taking the protection off.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.terraform import translation
from tests.conformance.terraform.translation import Block
from workbench.stack.deployer import program
from workbench.stack.deployer.diff import Goal
from workbench.stack.deployer.engine import Registered
from workbench.stack.deployer.errors import DeployError
from workbench.stack.deployer.monitor import EngineMonitor
from workbench.stack.deployer.values import Payload, Properties
from workbench.stack.layout import project_root

PROVIDER = {"source": "hashicorp/aws"}


@dataclass
class Configuration:
    """Stands where the engine stands, and says each resource in Terraform's words."""

    schema: Mapping[str, Block]
    folder: Path
    goals: dict[str, Goal] = field(default_factory=dict)
    resources: dict[str, dict[str, object]] = field(default_factory=dict)

    def register(self, goal: Goal) -> Registered:
        """Write one resource down and answer with references to it."""
        type_ = translation.resource_type(goal.type)
        if type_ not in self.schema:
            raise DeployError(f"{goal.type} {goal.name!r}: the provider has no resource {type_}")
        block = self.schema[type_]
        given = {name: self._file(value, goal) for name, value in goal.inputs.items()}
        try:
            said = translation.arguments(type_, given, block)
        except translation.TranslationError as error:
            raise DeployError(f"{goal.type} {goal.name!r}: {error}") from error
        depends_on = [self._address(urn) for urn in goal.dependencies if urn in self.goals]
        lifecycle = {
            "create_before_destroy": not goal.delete_before_replace,
            "ignore_changes": sorted(block.find(translation.snake(name)) or name for name in goal.ignore_changes),
        }
        body = {"depends_on": depends_on, "lifecycle": lifecycle}
        arguments = translation.rendered(said)
        assert isinstance(arguments, dict)
        self.goals[goal.urn] = goal
        self.resources.setdefault(type_, {})[translation.label(goal.name)] = {**arguments, **body}
        outputs = translation.outputs(type_, goal.name, block, goal.inputs)
        return Registered(translation.mark(type_, goal.name, "id"), outputs, goal.inputs)

    def document(self) -> dict[str, object]:
        """The whole configuration. The provider finds cloud and credentials as any SDK does, in the environment."""
        return {
            "terraform": {"required_providers": {"aws": PROVIDER}},
            "provider": {"aws": {"s3_use_path_style": True}},
            "resource": self.resources,
        }

    def _address(self, urn: str) -> str:
        goal = self.goals[urn]
        return f"{translation.resource_type(goal.type)}.{translation.label(goal.name)}"

    def _file(self, value: object, goal: Goal) -> object:
        """An asset or archive as a file beside the configuration; its name is its hash, so a change is seen."""
        if not isinstance(value, Payload):
            return value
        content = value.read()
        if translation.MARK.search(content.decode("utf-8", "ignore")):
            raise DeployError(f"{goal.name}: an asset holds what only the provider knows")
        (self.folder / value.sha256).write_bytes(content)
        return value.sha256


def _no_functions(token: str, arguments: Properties) -> dict[str, object]:
    raise DeployError(f"the program asks AWS for {token}: nothing is looked up in a capture")


def main() -> None:
    """Parse, run the program, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.terraform.capture", description=__doc__)
    parser.add_argument("--stack", required=True)
    parser.add_argument("--schema", type=Path, required=True, help="what `terraform providers schema -json` printed")
    parser.add_argument("--out", type=Path, required=True, help="an existing folder")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a config value")
    options = parser.parse_args()
    (provider,) = json.loads(options.schema.read_text())["provider_schemas"].values()
    schema = {name: Block.parse(each["block"]) for name, each in provider["resource_schemas"].items()}
    configuration = Configuration(schema, options.out)
    wanted = program.load(project_root(), options.stack, dict(pair.split("=", 1) for pair in options.set))
    try:
        program.run(wanted, EngineMonitor(configuration, _no_functions, wanted.region), preview=False)
    except DeployError as error:
        sys.exit(str(error))
    (options.out / "main.tf.json").write_text(json.dumps(configuration.document(), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
