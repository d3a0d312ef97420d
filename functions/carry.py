"""Carries latches from one reading of the metrics to the next, since a reading reaches back one hour only.

Whoever reads anew replays the signals over what was known before and writes the states into the new snapshot, as the
states at its window's start. They are the states *now*, not of an hour ago, and that makes no difference: the last
turn within the window, if there is one, is made by a run of points whatever the state before it, and without one the
state has not changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from functions.core.latches import Signal, replay
from functions.core.snapshot import ModelState, Snapshot


def carried(fresh: Snapshot, previous: Snapshot | None, signals: Mapping[str, Signal], now: float) -> Snapshot:
    """`fresh` with every signal's state for every model, begun from what `previous` carried."""
    if not signals:
        return fresh
    before = previous or Snapshot(None)
    models: dict[str, ModelState] = {}
    for model in {**before.models, **fresh.models}:
        state = fresh.models.get(model, ModelState())
        found = {
            name: replay(
                signal, fresh.lane(model, signal.lane).series.get(signal.metric), before.latch(model, name), now
            )
            for name, signal in signals.items()
        }
        models[model] = replace(state, latches=found)
    return replace(fresh, models=models)
