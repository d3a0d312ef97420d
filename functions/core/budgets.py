"""How much extra work may be sent to lanes that are in trouble already: a share of the requests, saved up a little.

Every request that could need it deposits `share`; every extra attempt takes 1. So over any n requests at most
n × share + `most` extra attempts are made, whatever fails and however often: retries cannot become a storm, and hedges
cannot double the load of a lane that has merely become slow. A new instance has saved nothing: it starts with none,
since a thousand cold starts would otherwise grant a thousand hedges.
"""

from __future__ import annotations

from typing import Final

HEDGE_SHARE: Final = 0.05
"""By definition of P95 one request in twenty is slower; more than that means that the lane itself is slow, and then
the remedy is another order, not another copy."""
RETRY_SHARE: Final = 0.2
"""One in five: a pool of connections that died at once is replaced within a few requests, and a lane whose every
connection breaks sees at most a fifth more."""
_MOST: Final = 10.0
_EPSILON: Final = 1e-9
"""Rounding: twenty deposits of 0.05 are one."""


class Budget:
    """One budget of one process. Not locked: deposits and withdrawals are made by the thread that serves a request."""

    def __init__(self, share: float, most: float = _MOST, *, saved: float = 0.0) -> None:
        """`share` extra attempts a request; at most `most` are saved up for later; `saved` to begin with."""
        self._share = share
        self._most = most
        self._saved = saved

    def deposit(self) -> None:
        """A request came by."""
        self._saved = min(self._most, self._saved + self._share)

    def take(self) -> bool:
        """Whether one extra attempt may be made; it is then spent."""
        if self._saved < 1 - _EPSILON:
            return False
        self._saved = max(0.0, self._saved - 1)
        return True

    @property
    def saved(self) -> float:
        """Extra attempts that could be made now."""
        return self._saved
