"""A connection pool that tells a request which was not wholly sent from one that was.

urllib3 swallows a broken pipe while writing and goes on to read, so both look alike afterwards. These connections
note when the whole request has been handed to the socket; until then a failure is `NotSentError`: nothing can have
run, since a server acts on a complete request only. (It may still answer an incomplete one, as with an early 413.)
"""

from __future__ import annotations

from http.client import HTTPException
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

_CONNECTIONS: Final = 16
"""Kept open per host. A Lambda instance works on one request at a time; other drivers on some more."""


class NotSentError(ConnectionError):
    """The connection broke before the whole request was written."""


class _Http(HTTPConnection):
    written = False

    def request(self, *args: Any, **kwargs: Any) -> None:
        self.written = False
        super().request(*args, **kwargs)
        self.written = True

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # urllib3's own override
        try:
            return super().getresponse()
        except (OSError, HTTPException) as error:
            raise error if self.written else NotSentError("broke while the request was being written") from error


class _Https(HTTPSConnection):
    written = False

    def request(self, *args: Any, **kwargs: Any) -> None:
        self.written = False
        super().request(*args, **kwargs)
        self.written = True

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # urllib3's own override
        try:
            return super().getresponse()
        except (OSError, HTTPException) as error:
            raise error if self.written else NotSentError("broke while the request was being written") from error


def connection_pool(url: str) -> urllib3.HTTPConnectionPool:
    """A pool for the host of `url`; connects on first use."""
    pool = urllib3.connection_from_url(url, maxsize=_CONNECTIONS, block=False)
    pool.ConnectionCls = _Https if isinstance(pool, urllib3.HTTPSConnectionPool) else _Http
    return pool
