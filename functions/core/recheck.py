"""What a recheck finds: the light model's verdicts beside the heavy one's on the same texts, counted pair by pair.

The heavy model is the yardstick, not the truth. One label lets a text pass, all others flag it. A *miss* is a text that
the light model let pass and the heavy one flags; a *false alarm* the reverse. What passed unseen is what an audit is
for, so misses are also told as a share of all that passed.

Pairs come one at a time and nothing of them is kept but counts and the clearest few of either kind, so memory does not
grow with the day. Names beyond a bound (labels, routes, versions) are counted together as `OTHER`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from functions.core.recheck_capture import Verdict
from functions.core.recheck_measures import Estimate, bin_of, kappa, share

OTHER: Final = "(other)"
MOST_LABELS: Final = 12
"""Labels a confusion matrix tells apart; a reader cannot take in more."""
MOST_NAMES: Final = 50
"""Routes, lanes and versions that are told apart."""
EXCERPT: Final = 240
"""Characters of a text that an example shows."""
HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class Pair:
    """One text and what both models said of it."""

    request_id: str
    number: int
    """Which text of its request, from 0."""
    hour: int
    """Of the day in the policy's zone."""
    route: str
    lane: str
    text: str
    light: Verdict
    heavy: Verdict


@dataclass(slots=True)
class Slice:
    """Counts over some of the pairs."""

    verdicts: int = 0
    agreed: int = 0
    light_flagged: int = 0
    heavy_flagged: int = 0
    missed: int = 0
    alarmed: int = 0
    """False alarms."""

    @property
    def agreement(self) -> Estimate | None:
        """Share of the verdicts that are the same."""
        return share(self.agreed, self.verdicts)

    @property
    def missed_of_flagged(self) -> Estimate | None:
        """Share of what the heavy model flags that the light one let pass."""
        return share(self.missed, self.heavy_flagged)

    @property
    def missed_of_passed(self) -> Estimate | None:
        """Share of what the light model let pass that the heavy one flags."""
        return share(self.missed, self.verdicts - self.light_flagged)

    @property
    def alarmed_of_flagged(self) -> Estimate | None:
        """Share of what the light model flags that the heavy one lets pass."""
        return share(self.alarmed, self.light_flagged)


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """A text on which the models disagree; the clearest first: the one who flags it is surest."""

    rank: float
    """Minus the flagging model's score, so that the smallest is the clearest; 0 without one."""
    request_id: str
    number: int
    text: str = field(compare=False)
    light: Verdict = field(compare=False)
    heavy: Verdict = field(compare=False)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the pairs of a day say."""

    total: Slice
    labels: tuple[str, ...]
    """The passing one first, the others by how often either model said them."""
    table: tuple[tuple[int, ...], ...]
    """Pairs by the light model's label (row) and the heavy one's (column)."""
    kappa: Estimate | None
    routes: Mapping[str, Slice]
    lanes: Mapping[str, Slice]
    light_versions: Mapping[str, Slice]
    heavy_versions: Mapping[str, Slice]
    """The most frequent first."""
    hours: tuple[Slice, ...]
    light_scores: Mapping[int, int]
    heavy_scores: Mapping[int, int]
    """Verdicts with a score, by its bin."""
    missed: tuple[Example, ...]
    alarmed: tuple[Example, ...]


class Recheck:
    """Counts pairs."""

    def __init__(self, passing: str, examples: int) -> None:
        """`passing`: the label that lets a text pass. `examples`: how many of either kind to keep."""
        self._passing = passing
        self._examples = examples
        self._total = Slice()
        self._labels: dict[str, int] = {passing: 0}
        self._cells: dict[tuple[str, str], int] = {}
        self._routes: dict[str, Slice] = {}
        self._lanes: dict[str, Slice] = {}
        self._light_versions: dict[str, Slice] = {}
        self._heavy_versions: dict[str, Slice] = {}
        self._hours = tuple(Slice() for _ in range(HOURS))
        self._light_scores: dict[int, int] = {}
        self._heavy_scores: dict[int, int] = {}
        self._missed: list[Example] = []
        self._alarmed: list[Example] = []

    def add(self, pair: Pair) -> None:
        """One more pair."""
        light, heavy = self._label(pair.light), self._label(pair.heavy)
        self._cells[light, heavy] = self._cells.get((light, heavy), 0) + 1
        flags = pair.light.label != self._passing, pair.heavy.label != self._passing
        slices = [
            self._total,
            self._hours[pair.hour],
            _slice(self._routes, pair.route),
            _slice(self._lanes, pair.lane),
            _slice(self._light_versions, pair.light.version or "none"),
            _slice(self._heavy_versions, pair.heavy.version or "none"),
        ]
        for each in slices:
            _count(each, light == heavy, *flags)
        for scores, verdict in ((self._light_scores, pair.light), (self._heavy_scores, pair.heavy)):
            if verdict.score is not None:
                index = bin_of(verdict.score)
                scores[index] = scores.get(index, 0) + 1
        if flags == (False, True):
            self._keep(self._missed, pair, pair.heavy)
        elif flags == (True, False):
            self._keep(self._alarmed, pair, pair.light)

    def findings(self) -> Findings:
        """What they say so far."""
        others = sorted((-count, label) for label, count in self._labels.items() if label != self._passing)
        labels = (self._passing, *(label for _, label in others))
        table = tuple(tuple(self._cells.get((light, heavy), 0) for heavy in labels) for light in labels)
        return Findings(
            total=self._total,
            labels=labels,
            table=table,
            kappa=kappa(table),
            routes=_ordered(self._routes),
            lanes=_ordered(self._lanes),
            light_versions=_ordered(self._light_versions),
            heavy_versions=_ordered(self._heavy_versions),
            hours=self._hours,
            light_scores=dict(sorted(self._light_scores.items())),
            heavy_scores=dict(sorted(self._heavy_scores.items())),
            missed=tuple(self._missed),
            alarmed=tuple(self._alarmed),
        )

    def _label(self, verdict: Verdict) -> str:
        label = _bounded(verdict.label, self._labels, MOST_LABELS)
        self._labels[label] = self._labels.get(label, 0) + 1
        return label

    def _keep(self, kept: list[Example], pair: Pair, flagging: Verdict) -> None:
        rank = -(flagging.score or 0.0)
        text = pair.text if len(pair.text) <= EXCERPT else pair.text[: EXCERPT - 1] + "…"
        insort(kept, Example(rank, pair.request_id, pair.number, text, pair.light, pair.heavy))
        del kept[self._examples :]


def _count(each: Slice, agreed: bool, light_flags: bool, heavy_flags: bool) -> None:
    each.verdicts += 1
    each.agreed += agreed
    each.light_flagged += light_flags
    each.heavy_flagged += heavy_flags
    each.missed += heavy_flags and not light_flags
    each.alarmed += light_flags and not heavy_flags


def _slice(slices: dict[str, Slice], name: str) -> Slice:
    return slices.setdefault(_bounded(name, slices, MOST_NAMES), Slice())


def _bounded(name: str, known: Mapping[str, object], most: int) -> str:
    return name if name in known or len(known) < most else OTHER


def _ordered(slices: Mapping[str, Slice]) -> dict[str, Slice]:
    return dict(sorted(slices.items(), key=lambda item: (-item[1].verdicts, item[0])))
