"""The `inferlane` command. Every command has --help and --json and exits non-zero when it fails.

The commands live in the rooms they command. A room is imported when one of its commands is asked for, so that a quick
command does not wait for the imports of a slow one.
"""

from __future__ import annotations

import json
import signal
import sys
from importlib import import_module
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from workbench.errors import UserError

_NIGHTLY: Final = "workbench.nightly.commands"
_POLICY: Final = "workbench.policy.commands"
_STACK: Final = "workbench.stack.commands"
ROOMS: Final = {
    "up": _STACK,
    "status": _STACK,
    "down": _STACK,
    "deploy": _STACK,
    "destroy": _STACK,
    "demo": _STACK,
    "sagemaker": _STACK,
    "fault": "workbench.stack.fault_commands",
    "keys": _STACK,
    "policy": _POLICY,
    "nightly": _NIGHTLY,
}
"""Each command and the module whose `app` has it, in the order of --help."""


class _Rooms(TyperGroup):
    """The commands of `ROOMS`, imported one room at a time."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's shape
        return list(ROOMS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in ROOMS and cmd_name not in self.commands:
            room = get_command(import_module(ROOMS[cmd_name]).app)
            self.commands.update({name: command for name, command in room.commands.items() if name in ROOMS})  # type: ignore[attr-defined]
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in ROOMS:  # a typo: the base class suggests names it knows
            for name in ROOMS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=_Rooms, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=True)


@app.callback()
def inferlane() -> None:
    """Serve AI models on AWS in four modes at once: policies, the offline stack, deployments on it, the demo."""


def _fail(message: str) -> NoReturn:
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": message}) + "\n")
    sys.stderr.write(f"error: {message}\n")
    sys.exit(1)


def _cloud_errors() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def main() -> None:
    """Run the command line; an error the user can act on is one line on standard error, exit 1.

    SIGTERM ends it as Ctrl-C does: what it started is stopped first.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    except SystemExit:
        raise
    except _cloud_errors() as error:  # looked up only when another error gets here
        _fail(f"the cloud refused: {error}")


if __name__ == "__main__":
    main()
