"""What survives the process: JSON documents by kind and name, in one SQLite file. Knows nothing of what they say.

State is kept as a whole (`keep`), requests one by one (`put`, `drop`), for there can be many of them at a time.

Why SQLite: a transaction is there or it is not, whatever kills the process and when, without a format, a compaction and
a recovery of our own. Write-ahead log, synchronous NORMAL: a killed process loses nothing, because what it wrote is in
the system's hands; a power cut can lose the last changes, never half of one, and no event loop waits for a disk. The
file is locked for as long as it is open, so two emulators cannot share a state folder.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1
"""Of the documents' form: another one is not read."""
Key = tuple[str, str]
"""Kind and name."""


_NONE = object()


class JournalError(Exception):
    """The file cannot be used; the message says why, with the way out."""


class Row(NamedTuple):
    """One document."""

    kind: str
    name: str
    document: Any


class Journal:
    """An open journal."""

    def __init__(self, path: Path) -> None:
        """Raises `JournalError`."""
        self._path = path
        try:
            # The lock's owner is who opened the file: nobody waits for it.
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise JournalError(f"cannot open {path}: {error}; choose another --state-dir") from error
        try:
            self._open()
        except BaseException:
            self._database.close()
            raise

    def _open(self) -> None:
        try:
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise JournalError(f"{self._path} is of another version of the emulator ({version}): remove it")
            with self._transaction():
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS documents (kind TEXT, name TEXT, document TEXT, "
                    "PRIMARY KEY (kind, name))"
                )
                self._database.execute(f"PRAGMA user_version={VERSION}")
                self._database.execute("CREATE TABLE IF NOT EXISTS requests (name TEXT PRIMARY KEY, document TEXT)")
            rows = self._database.execute("SELECT kind, name, document FROM documents ORDER BY rowid").fetchall()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                folder = self._path.parent
                raise JournalError(f"another emulator uses {folder}: end it, or choose another --state-dir") from error
            raise JournalError(f"cannot use {self._path}: {error}; choose another --state-dir") from error
        except sqlite3.DatabaseError as error:
            raise JournalError(f"cannot read {self._path}: {error}; remove it to start without its state") from error
        try:
            self._kept = {(kind, name): json.loads(document) for kind, name, document in rows}
        except ValueError as error:
            raise JournalError(f"cannot read {self._path}: {error}; remove it to start without its state") from error

    def rows(self) -> Iterator[Row]:
        """Every document, oldest first."""
        for (kind, name), document in self._kept.items():
            yield Row(kind, name, document)

    def keep(self, documents: Mapping[Key, Any]) -> bool:
        """Make these, and only these, what survives, in one transaction. Whether anything had to be written.

        They are kept to be compared with the next ones, so the caller must not change them afterwards. Raises
        `JournalError`, and then nothing has changed on disk.
        """
        # Comparing is several times cheaper than writing them all out as JSON to compare texts.
        changed = [(*key, json.dumps(given)) for key, given in documents.items() if self._kept.get(key, _NONE) != given]
        gone = [key for key in self._kept if key not in documents]
        if not changed and not gone:
            return False
        try:
            with self._transaction():
                self._database.executemany("DELETE FROM documents WHERE kind = ? AND name = ?", gone)
                self._database.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?) "
                    "ON CONFLICT (kind, name) DO UPDATE SET document = excluded.document",
                    changed,
                )
        except sqlite3.Error as error:
            raise JournalError(f"cannot write {self._path}: {error}") from error
        self._kept = dict(documents)
        return True

    def requests(self) -> list[Any]:
        """What was put and not dropped, oldest first."""
        rows = self._database.execute("SELECT document FROM requests ORDER BY rowid").fetchall()
        return [json.loads(document) for (document,) in rows]

    def put(self, name: str, document: Any) -> None:
        """A document that comes and goes by itself, beside those of `keep`. Raises `JournalError`."""
        self._write("INSERT INTO requests VALUES (?, ?)", name, json.dumps(document))

    def drop(self, name: str) -> None:
        """One that was put is over. Raises `JournalError`."""
        self._write("DELETE FROM requests WHERE name = ?", name)

    def _write(self, statement: str, *values: str) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise JournalError(f"cannot write {self._path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _transaction(self) -> sqlite3.Connection:
        """Commits at the end of the block, or takes everything back."""
        self._database.execute("BEGIN IMMEDIATE")
        return self._database
