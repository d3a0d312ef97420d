"""What goes wrong in a step of the nightly recheck, as whoever looks at the state machine is to read it.

An error's text becomes the execution's cause, which consoles, alarms and the command line show: so it says what to do,
and nothing of what was captured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from functions.aws.redaction import redacted, trace_of
from functions.batch_ports import BatchError
from functions.nightly_ports import RecheckError
from functions.ports import Log


@contextmanager
def told(function: str, log: Log) -> Iterator[None]:
    """Raises `RecheckError` for whatever goes wrong inside."""
    try:
        yield
    except RecheckError:
        raise
    except BatchError as error:
        raise RecheckError(f"a service did not do its part, run it again: {redacted(error)}") from None
    except Exception as error:
        log.error("unhandled error", extra={"trace": trace_of(error)})
        raise RecheckError(f"an internal error occurred; the log of function {function} says where") from None
