"""A full disk, the `disk` fault: what model code makes or opens to write is refused with ENOSPC.

An audit hook of Python's, since a disk that is really full takes rights that nobody should need here. So it sees what
Python code opens and makes, in any library, but not what native code opens by itself, nor writes to files that are open
already. Reading goes on, and so does writing to devices. Hooks cannot be removed: this one is made when it is first
needed.
"""

from __future__ import annotations

import errno
import os
import sys

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_NO_DISK = ("/dev/", "/proc/")


class _Disk:
    full = False
    hooked = False


def fill(full: bool) -> None:
    """Have the disk full from now on, or not any more."""
    if full and not _Disk.hooked:
        sys.addaudithook(_refuse)
        _Disk.hooked = True
    _Disk.full = full


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if not _Disk.full or event not in ("open", "os.mkdir"):
        return
    path = arguments[0]
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
        return
    if not isinstance(path, str | bytes | os.PathLike):  # a descriptor: it is open already
        return
    name = os.fsdecode(path)
    if not name.startswith(_NO_DISK):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
