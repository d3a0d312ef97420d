"""The terraform program: where it and the AWS provider are found, and the commands the tests need.

A provider is looked for in a filesystem mirror, never downloaded: TF_MIRROR, else what TF_CLI_CONFIG_FILE says, else
the folders where terraform itself and its users keep mirrors.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLACES = (
    "~/.terraform.d/plugins", "~/.local/share/terraform/plugins", "/usr/local/share/terraform/plugins",
    "/usr/share/terraform/plugins", "~/.terraform.d/*", "/usr/share/*", "/opt/*",
)  # fmt: skip
SOURCE = "registry.terraform.io/hashicorp/aws"


class MissingError(Exception):
    """Terraform or the provider is not here; the message says what was looked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan would do to one resource."""

    address: str
    actions: tuple[str, ...]
    attributes: tuple[str, ...]
    """What differs or is not known: of a block that occurs once, `block.attribute`, else the top-level attribute."""

    @property
    def type(self) -> str:
        """The resource's type."""
        return self.address.split(".")[0]


@dataclass(frozen=True, slots=True)
class Failure:
    """One error of an apply or destroy: where, and in the provider's words."""

    address: str
    text: str


@dataclass(frozen=True, slots=True)
class Terraform:
    """Terraform in one folder, with the environment its commands run in."""

    folder: Path
    environment: Mapping[str, str]
    """All of it, AWS's variables included: nothing is taken over from this process."""

    def init(self) -> None:
        """Make the provider available. Raises `MissingError` when there is no mirror with it."""
        done = self._run("init", "-no-color", "-input=false")
        if done.returncode:
            raise MissingError(f"terraform init failed: {' '.join(done.stderr.split())[:400]}")

    def schema(self) -> str:
        """The provider's schema, as JSON."""
        return self._checked("providers", "schema", "-json")

    def version(self) -> str:
        """The provider's version."""
        selections: dict[str, str] = json.loads(self._checked("version", "-json"))["provider_selections"]
        return selections[SOURCE]

    def validate(self) -> list[str]:
        """What is wrong with the configuration by itself."""
        answer = json.loads(self._run("validate", "-json").stdout)
        return [f"{each['summary']}: {each.get('detail', '')}" for each in answer["diagnostics"]]

    def plan(self) -> list[Change]:
        """What an apply would do now; empty when the cloud is as the configuration says."""
        file = self.folder / "plan"
        self._checked("plan", "-no-color", "-input=false", f"-out={file}")
        document = json.loads(self._checked("show", "-json", str(file)))
        changes = [_change(each) for each in document.get("resource_changes", [])]
        return [change for change in changes if change.actions != ("no-op",)]

    def apply(self) -> list[Failure]:
        """Bring the cloud to the configuration; what failed."""
        return self._act("apply")

    def destroy(self) -> list[Failure]:
        """Remove everything; what failed."""
        return self._act("destroy")

    def standing(self) -> list[str]:
        """Addresses of the resources in the state."""
        return self._checked("state", "list").split()

    def _act(self, command: str) -> list[Failure]:
        done = self._run(command, "-json", "-input=false", "-auto-approve")
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = list(_failures(events))
        if done.returncode and not found:
            raise AssertionError(f"terraform {command} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return found

    def _checked(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise AssertionError(f"terraform {arguments[0]} failed: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["terraform", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


def open_in(folder: Path, environment: Mapping[str, str]) -> Terraform:
    """Terraform in a folder, told where its provider is. Raises `MissingError`."""
    if shutil.which("terraform") is None:
        raise MissingError("terraform is not on PATH")
    own = {**environment, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
    configured = Path(environment.get("TF_CLI_CONFIG_FILE", ""))
    if "TF_MIRROR" in environment or not configured.is_file():
        own["TF_CLI_CONFIG_FILE"] = str(_configuration(folder, environment.get("TF_MIRROR")))
    return Terraform(folder, own)


def _configuration(folder: Path, mirror: str | None) -> Path:
    """Terraform's own configuration: the mirror, and nothing from the registry."""
    file = folder / "terraform.rc"
    place = json.dumps(mirror or str(_mirror()))
    file.write_text(f"provider_installation {{\n  filesystem_mirror {{\n    path = {place}\n  }}\n}}\n")
    return file


def _mirror() -> Path:
    for place in PLACES:
        home, pattern = Path(place).expanduser().anchor, str(Path(place).expanduser())[1:]
        for folder in sorted(Path(home).glob(pattern)):
            if (folder / SOURCE).is_dir():
                return folder
    raise MissingError(f"no mirror with {SOURCE}: set TF_MIRROR (looked in {', '.join(PLACES)})")


def _change(row: Mapping[str, Any]) -> Change:
    before, after = row["change"]["before"] or {}, row["change"]["after"] or {}
    unknown = row["change"].get("after_unknown") or {}
    differing = {*_differing(before, after), *(name for name, value in unknown.items() if value)}
    return Change(row["address"], tuple(row["change"]["actions"]), tuple(sorted(differing)))


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in {*before, *after}:
        match before.get(name), after.get(name):
            case [dict(was)], [dict(wanted)]:
                yield from (f"{name}.{inner}" for inner in _differing(was, wanted))
            case was, wanted if was != wanted:
                yield name


def _failures(events: list[Any]) -> Iterator[Failure]:
    for event in events:
        diagnostic = event.get("diagnostic")
        if diagnostic and diagnostic["severity"] == "error":
            text = f"{diagnostic['summary']} {diagnostic.get('detail', '')}".strip()
            yield Failure(diagnostic.get("address", ""), text)
