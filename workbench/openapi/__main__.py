"""Write `docs/openapi/openapi.json`, or with `--check` say whether it is up to date.

`--policy FILE` prints a stack's own document instead: the fixed paths and the policy's routes.
"""

from __future__ import annotations

import argparse
import sys

from workbench.errors import UserError
from workbench.openapi.document import text
from workbench.policy.check import load
from workbench.stack.layout import project_root

FILE = project_root() / "docs/openapi/openapi.json"


def main(arguments: list[str] | None = None) -> None:
    """`arguments` None: the command line's. Exits with 1 when the file is out of date, or the policy is none."""
    parser = argparse.ArgumentParser(prog="python -m workbench.openapi", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="change nothing; exit with 1 when the file is out of date")
    what.add_argument("--policy", metavar="FILE", help="print the document of a stack with this policy")
    options = parser.parse_args(arguments)
    if options.policy is not None:
        try:
            _, policy = load(options.policy)
        except UserError as error:
            sys.exit(f"error: {error}")
        sys.stdout.write(text(policy.routes))
    elif options.check:
        if not FILE.is_file() or FILE.read_text(encoding="utf-8") != text():
            sys.exit(f"{FILE.name} is out of date: run `python -m workbench.openapi`")
    else:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
