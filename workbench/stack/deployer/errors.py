"""What can go wrong in a deploy, by whose fault it is.

`ProgramError`: the Pulumi program or its configuration asks for something that cannot be had. `CloudError`: a call to
the cloud was refused or ended badly; it names the operation and the cloud's own words. `Interrupted`: the engineer
pressed Ctrl-C. Each message is one line: the cause, then the way out.
"""

from __future__ import annotations

import re

_EXISTS = re.compile(r"already ?exist|AlreadyOwnedByYou|ResourceInUseException: Table already", re.IGNORECASE)


class DeployError(Exception):
    """The base of everything the deployer raises on purpose."""


class ProgramError(DeployError):
    """The program, its configuration or its state asks for something the deployer cannot do."""


class UnmappedError(ProgramError):
    """An input, output, type or function that no row maps: silence would deploy something else than was written."""


class CloudError(DeployError):
    """A call failed; `operation` is the API operation, `code` the cloud's error code ("" when it answered nothing)."""

    def __init__(self, operation: str, cause: str, code: str = "") -> None:
        super().__init__(f"{operation}: {cause}")
        self.operation = operation
        self.code = code


class BrokenError(CloudError):
    """The resource exists but can only be replaced (an endpoint in status Failed)."""


class ResourceError(DeployError):
    """A resource could not be made, changed or removed; the message names it, the operation and the cause."""

    def __init__(self, resource_type: str, name: str, action: str, cause: BaseException) -> None:
        text = str(cause) if isinstance(cause, DeployError) else f"{type(cause).__name__}: {cause}"
        if _EXISTS.search(text):
            text += " (it stands, but not in the state: remove it, or give this one another name)"
        super().__init__(f'{action} {resource_type} "{name}": {text}')


class Interrupted(DeployError):  # noqa: N818  not an error of anyone's
    """Ctrl-C: running calls were finished, nothing new was started."""

    def __init__(self) -> None:
        super().__init__("interrupted: what exists is in the state; run the same command to continue")
