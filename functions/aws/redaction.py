"""What may be logged of an error: an AWS error's text without account ids; of any other, its kind and its way.

The text of an error that nobody foresaw may hold whatever was being handled: a payload, a header, a token.
"""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath
from typing import Final

_ACCOUNT: Final = re.compile(r"(?<!\d)\d{12}(?!\d)", re.ASCII)
_LONGEST: Final = 300


def redacted(error: object) -> str:
    """The error's text with every account id masked."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    return _ACCOUNT.sub("<account>", text)[:_LONGEST]


def trace_of(error: BaseException) -> str:
    """Kind of the error and the lines it came through, innermost first, without any value: `KeyError at a.py:3 f`."""
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    way = " < ".join(f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    kind = f"{type(error).__name__} at {way}"
    return kind if cause is None else f"{kind}; of {trace_of(cause)}"
