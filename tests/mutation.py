"""How much of functions/core its unit tests hold: mutmut changes one thing at a time, and some test must notice.

`python -m tests.mutation [MODULE …]` makes every mutant of the core, or of the modules named, in a copy below
build/mutation, runs the example tests that reach it, prints killed/total by module, writes build/mutation.json, and
ends with 1 when fewer than 90 % are killed. A mutant counts as killed when a test fails on it or never ends.
Property tests are left out (see `[tool.mutmut]`): an example that states the right value says more of a survivor, and
the score is the same in every run. `--survivors` runs nothing: it names what the last run left alive.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

BUDGET: Final = 0.9
"""The part of all mutants that must be killed."""
CORE: Final = "functions.core."
ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / "build/mutation"
RESULT: Final = ROOT / "build/mutation.json"
COPIED: Final = (
    *("pyproject.toml", "functions", "policies", "tests/__init__.py", "tests/conftest.py"),
    *("tests/unit/__init__.py", "tests/unit/core"),
)
"""What the unit tests of the core need, and nothing else: the copy is what is imported, never the checkout."""
MUTMUT: Final = Path(sys.executable).with_name("mutmut")
KILLED: Final = frozenset({"killed", "timeout"})


class MutationError(Exception):
    """The mutants could not be made or judged."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One module's mutants."""

    killed: int
    total: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float:
        """The part that is killed; all of none."""
        return self.killed / self.total if self.total else 1.0


def tally(lines: Iterable[str]) -> dict[str, Tally]:
    """By module, from what `mutmut results` prints: a line `functions.core.MODULE.FUNCTION__mutmut_N: STATUS` each.

    Mutants that were not run are left out. Raises `MutationError` on a line of another form.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        name, separator, status = line.strip().partition(": ")
        if not separator or not name.startswith(CORE):
            raise MutationError(f"mutmut printed {line!r}, which is no mutant of {CORE[:-1]}")
        if status != "not checked":
            found.setdefault(name.removeprefix(CORE).split(".")[0], []).append((name, status))
    return {module: _counted(mutants) for module, mutants in sorted(found.items())}


def _counted(mutants: Sequence[tuple[str, str]]) -> Tally:
    alive = [(name, status) for name, status in mutants if status not in KILLED]
    named = tuple(name if status == "survived" else f"{name} ({status})" for name, status in alive)
    return Tally(len(mutants) - len(alive), len(mutants), named)


def whole(tallies: Iterable[Tally]) -> Tally:
    """All modules together."""
    each = tuple(tallies)
    survivors = tuple(name for one in each for name in one.survivors)
    return Tally(sum(one.killed for one in each), sum(one.total for one in each), survivors)


def report(tallies: dict[str, Tally]) -> str:
    """The table, a module a line, the weakest first and the whole last."""
    rows = [*sorted(tallies.items(), key=lambda item: item[1].share), ("all", whole(tallies.values()))]
    return "\n".join(f"{name:<20}{one.killed:>5}/{one.total:<5}{one.share:>7.1%}" for name, one in rows)


def run(modules: Sequence[str], children: int) -> None:
    """Make the mutants in a fresh copy and try them. Raises `MutationError`."""
    unknown = sorted(set(modules) - {file.stem for file in (ROOT / "functions/core").glob("*.py")})
    if unknown:
        raise MutationError(f"functions/core has no module {', '.join(unknown)}")
    shutil.rmtree(WORK, ignore_errors=True)
    for name in COPIED:
        (WORK / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, WORK / name)
    command = [str(MUTMUT), "run", "--max-children", str(children), *(f"{CORE}{name}.*" for name in modules)]
    log = WORK / "log"
    with log.open("wb") as out:
        shown = None if sys.stdout.isatty() else out
        code = subprocess.run(command, cwd=WORK, stdout=shown, stderr=shown, check=False).returncode
    if code:
        raise MutationError(f"mutmut ended with {code}" + ("" if shown is None else f"; its output is in {log}"))


def results() -> dict[str, Tally]:
    """What the last run found. Raises `MutationError`."""
    if not WORK.exists():
        raise MutationError("nothing was run yet: `make mutation`")
    command = [str(MUTMUT), "results", "--all", "true"]
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MutationError(f"mutmut results ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    found = tally(done.stdout.splitlines())
    if not found:
        raise MutationError("not one mutant was run")
    return found


def main() -> None:
    """Run, print, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="of functions/core, such as latches; all if none")
    parser.add_argument("--survivors", action="store_true", help="run nothing; name what the last run left alive")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="tried at once; a core each")
    options = parser.parse_args()
    try:
        if options.survivors:
            print("\n".join(whole(results().values()).survivors))
            print(f"\nTo see one: cd {WORK.relative_to(ROOT)} && {MUTMUT} show NAME", file=sys.stderr)
            return
        run(options.modules, options.children)
        tallies = results()
    except MutationError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    total = whole(tallies.values())
    about = {"python": platform.python_version(), "mutmut": version("mutmut"), "at": datetime.now(UTC).isoformat()}
    modules = {name: asdict(one) for name, one in tallies.items()}
    document = {**about, "killed": total.killed, "total": total.total, "budget": BUDGET, "modules": modules}
    RESULT.write_text(json.dumps(document, indent=1) + "\n")
    print(report(tallies))
    if total.share < BUDGET:
        sys.exit(f"error: {total.share:.1%} of the mutants are killed, {BUDGET:.0%} must be; `--survivors` names them")


if __name__ == "__main__":
    main()
