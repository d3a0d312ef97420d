"""What may be logged of an AWS error: its text without account ids, at a readable length."""

from __future__ import annotations

import re
from typing import Final

_ACCOUNT: Final = re.compile(r"(?<!\d)\d{12}(?!\d)", re.ASCII)
_LONGEST: Final = 300


def redacted(error: object) -> str:
    """The error's text with every account id masked."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    return _ACCOUNT.sub("<account>", text)[:_LONGEST]
