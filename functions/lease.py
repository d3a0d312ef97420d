"""The lease by which one collector works at a time: short, and kept while its holder lives.

A collector that is killed does not give it back. So it lasts less than the minute after which the next one comes, or
deadlines that near would be missed for as long as the killed one might have lived. Who cannot tell whether the lease is
still its own goes on: nothing but thrift depends on it.
"""

from __future__ import annotations

from typing import Final

from functions.batch_ports import BatchError, BatchPorts

LEASE_S: Final = 50.0
_KEEP_S: Final = 15.0
"""It is made longer so often: a write a quarter of a minute, and only of a collector that has much to do."""


class Lease:
    """One turn's."""

    def __init__(self, ports: BatchPorts, owner: str) -> None:
        """`owner` is nobody else's name."""
        self._ports = ports
        self._owner = owner
        self._kept_at = 0.0
        self._ours = False

    def taken(self) -> bool:
        """Whether it could be had. Raises `BatchError`."""
        now = self._ports.clock.now()
        self._ours = self._ports.runs.lease(self._owner, now, now + LEASE_S)
        self._kept_at = now
        return self._ours

    def kept(self) -> bool:
        """Whether it is still ours, as far as can be told; made longer where that is due."""
        if self._ours and self._ports.clock.now() - self._kept_at >= _KEEP_S:
            try:
                return self.taken()
            except BatchError:
                return True
        return self._ours

    def given_back(self) -> None:
        """Done with it. Raises `BatchError`."""
        self._ports.runs.release(self._owner)
