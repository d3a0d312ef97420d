"""The one kind of error that a command reports without a traceback."""

from __future__ import annotations


class UserError(RuntimeError):
    """Something the user can act on; the message is one line, with the way out."""
