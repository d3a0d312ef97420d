"""The full disk of a model process, in a process of its own: what it refuses and what it lets pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import errno, os, sys, tempfile
from pathlib import Path
from workbench.stack.sagemaker.model import disk

folder = Path(sys.argv[1])
(folder / "there").write_text("text")
open_already = (folder / "open").open("w")
disk.fill(True)
tries = {
    "open": lambda: (folder / "new").open("w"),
    "append": lambda: (folder / "there").open("a"),
    "os.open": lambda: os.open(folder / "new", os.O_CREAT | os.O_RDWR),
    "mkdir": lambda: (folder / "folder").mkdir(),
    "temporary": lambda: tempfile.NamedTemporaryFile(dir=folder),
}
for name, attempt in tries.items():
    try:
        attempt()
    except OSError as error:
        assert error.errno == errno.ENOSPC, (name, error)
    else:
        raise AssertionError(name)
assert (folder / "there").read_text() == "text"
open(os.devnull, "w").close()
os.close(os.dup(open_already.fileno()))
disk.fill(False)
(folder / "new").write_text("x")
"""


def test_writing_is_refused_and_nothing_else(tmp_path: Path) -> None:
    """Files and folders cannot be made or opened to write, with ENOSPC; reading, devices and what is open go on."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
