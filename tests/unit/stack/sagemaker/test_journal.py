"""The journal: what was kept is there again, whatever ended the process; what cannot be read is told."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from workbench.stack.sagemaker.journal import Journal, JournalError, Row

KILLED = """
import os, signal, sys
from pathlib import Path
from workbench.stack.sagemaker.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(50):
    journal.keep({("thing", str(n)): {"n": n} for n in range(number + 1)})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def test_a_killed_process_loses_nothing(file: Path) -> None:
    """Every document kept before SIGKILL is there afterwards, in the order in which it came."""
    ended = subprocess.run([sys.executable, "-c", KILLED, str(file)], env=dict(os.environ), timeout=30, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(Journal(file).rows()) == [Row("thing", str(n), {"n": n}) for n in range(50)]


def test_only_what_differs_is_written(file: Path) -> None:
    """The same documents again are no write; a changed one keeps its place, a missing one goes."""
    journal = Journal(file)
    assert journal.keep({("a", "x"): 1, ("a", "y"): 2})
    assert not journal.keep({("a", "y"): 2, ("a", "x"): 1})
    assert journal.keep({("a", "y"): 2, ("a", "x"): 3})
    assert journal.keep({("a", "x"): 3})
    journal.close()
    assert list(Journal(file).rows()) == [Row("a", "x", 3)]


def test_requests_come_and_go_by_themselves(file: Path) -> None:
    """What was put is there until it is dropped, in its order, whatever becomes of the state."""
    journal = Journal(file)
    for name in ("one", "two", "three"):
        journal.put(name, {"name": name})
    journal.drop("two")
    journal.keep({("a", "x"): 1})
    journal.keep({})
    journal.close()
    with pytest.raises(JournalError, match="cannot write"):
        journal.put("late", {})
    assert Journal(file).requests() == [{"name": "one"}, {"name": "three"}]


def test_a_failed_write_changes_nothing(file: Path) -> None:
    """When the file cannot be written that is said, and the next try writes everything."""
    journal = Journal(file)
    journal.keep({("a", "x"): 1})
    journal._database.execute("PRAGMA max_page_count=1")
    with pytest.raises(JournalError, match=r"cannot write .*full"):
        journal.keep({("a", "x"): 2, ("a", "y"): "y" * 100_000})
    journal._database.execute("PRAGMA max_page_count=100000")
    assert journal.keep({("a", "x"): 2})
    journal.close()
    assert list(Journal(file).rows()) == [Row("a", "x", 2)]


def test_one_process_at_a_time(file: Path) -> None:
    """A second emulator on the same folder is refused, and the first goes on."""
    journal = Journal(file)
    with pytest.raises(JournalError, match=r"another emulator uses .*--state-dir"):
        Journal(file)
    assert journal.keep({("a", "x"): 1})


def test_a_file_that_is_none(file: Path) -> None:
    """What is not a journal is told by its path and left as it is."""
    file.write_bytes(b"something else entirely" * 100)
    with pytest.raises(JournalError, match=r"cannot read .*state\.db.*remove it"):
        Journal(file)
    assert file.read_bytes().startswith(b"something else")


def test_a_document_that_is_none(file: Path) -> None:
    """A row that is not JSON is told like a file that is no database."""
    Journal(file).close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO documents VALUES ('a', 'x', '{')")
    with pytest.raises(JournalError, match=r"cannot read .*remove it"):
        Journal(file)


def test_another_version(file: Path) -> None:
    """A journal of another form is refused."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA user_version=99")
    with pytest.raises(JournalError, match=r"another version .*99.*remove it"):
        Journal(file)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A path that cannot be opened is told."""
    with pytest.raises(JournalError, match=r"cannot open .*--state-dir"):
        Journal(tmp_path / "none" / "state.db")
