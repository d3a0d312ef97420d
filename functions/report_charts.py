"""The charts of a recheck's report, as SVG that scales with the page and reads without colours.

Each has a title and a description for those who do not see it; its figures stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from functions.core.recheck import Slice
from functions.core.recheck_measures import BINS, Estimate
from functions.markup import Markup, joined, tag

WIDTH: Final = 400
_LEFT, _RIGHT = 44, 8
GROUPS: Final = 20
"""Groups of bins that a distribution is drawn with."""
LONGEST_NAME: Final = 42
"""Characters of a name in a chart."""
LOWEST: Final = 0.0005
"""Share at the bottom of a distribution's logarithmic scale: what is rarer, or absent, lies there."""


def hours_chart(hours: Sequence[Slice]) -> Markup:
    """How many verdicts there were each hour, and under them the misses (up) and false alarms (down)."""
    step = (WIDTH - _LEFT - _RIGHT) / len(hours)
    volume_top, volume_base, middle, reach = 16, 84, 156, 48
    busiest = max(each.verdicts for each in hours)
    most = max(1, *(max(each.missed, each.alarmed) for each in hours))
    parts: list[Markup] = [
        _label(_LEFT - 6, volume_top + 8, _short(busiest), "end"),
        _label(_LEFT - 6, volume_base, "0", "end"),
        _label(_LEFT - 6, middle - reach + 10, _short(most), "end"),
        _label(_LEFT - 6, middle + 4, "0", "end"),
        _label(_LEFT - 6, middle + reach, _short(most), "end"),
        _label(_LEFT, volume_top - 5, "verdicts", "start"),
        _label(_LEFT, middle - reach - 5, "misses, upward", "start"),
        _label(_LEFT, middle + reach + 13, "false alarms, downward", "start"),
        _line(_LEFT, volume_base, WIDTH - _RIGHT, volume_base, "axis"),
        _line(_LEFT, middle, WIDTH - _RIGHT, middle, "axis"),
    ]
    for hour, each in enumerate(hours):
        x = _LEFT + hour * step + 1
        width = step - 2
        parts.append(
            _bar(x, volume_base, width, -(volume_base - volume_top) * each.verdicts / max(1, busiest), "volume")
        )
        parts.append(_bar(x, middle, width, -reach * each.missed / most, "missed"))
        parts.append(_bar(x, middle, width, reach * each.alarmed / most, "alarmed"))
        if hour % 6 == 0:
            parts.append(_label(x + width / 2, middle + reach + 30, f"{hour:02d}:00", "middle"))
    said = f"The busiest hour has {busiest} verdicts; the most misses or false alarms in an hour are {most}."
    return _chart("hours", "Verdicts, misses and false alarms by hour of the day", said, middle + reach + 38, parts)


def scores_chart(curves: Mapping[str, tuple[str, Mapping[int, int]]]) -> Markup:
    """Distributions of scores: by class of its curve, what a curve is called and its histogram. Logarithmic shares."""
    top = 14 * len(curves) + 12
    base = top + 156
    width = WIDTH - _LEFT - _RIGHT
    parts: list[Markup] = []
    share = 1.0
    while share > LOWEST:
        y = _height(share, top, base)
        parts += [_line(_LEFT, y, WIDTH - _RIGHT, y, "grid"), _label(_LEFT - 6, y + 4, f"{share * 100:g} %", "end")]
        share /= 10
    parts.append(_line(_LEFT, base, WIDTH - _RIGHT, base, "axis"))
    parts += [
        _label(_LEFT + width * tenth / 10, base + 16, f"{tenth / 10:g}", "middle") for tenth in (0, 2, 4, 6, 8, 10)
    ]
    parts.append(_label(_LEFT + width / 2, base + 32, "score", "middle"))
    for place, (kind, (called, histogram)) in enumerate(curves.items()):
        points = " ".join(
            f"{_LEFT + width * end / GROUPS:.1f},{_height(share, top, base):.1f}"
            for group, share in enumerate(grouped(histogram))
            for end in (group, group + 1)
        )
        parts.append(tag("polyline", points=points, class_=f"curve {kind}"))
        y = 8 + 14 * place
        parts += [_line(_LEFT, y, _LEFT + 26, y, f"curve {kind}"), _label(_LEFT + 32, y + 4, _cut(called), "start")]
    said = "Share of the verdicts in each twentieth of the scores, on a logarithmic scale from 0.05 % to 100 %."
    return _chart("scores", "Scores of " + ", ".join(called for called, _ in curves.values()), said, base + 38, parts)


def grouped(histogram: Mapping[int, int]) -> list[float]:
    """Share of a histogram's counts in each of `GROUPS` groups of bins."""
    total = sum(histogram.values())
    counts = [0] * GROUPS
    for index, count in histogram.items():
        counts[index * GROUPS // BINS] += count
    return [count / total if total else 0.0 for count in counts]


def interval_bar(estimate: Estimate) -> Markup:
    """A share from 0 to 1 with its interval, as wide as its cell."""
    low, at, high = (4 + 152 * value for value in (estimate.low, estimate.value, estimate.high))
    said = f"{estimate.value:.1%}, between {estimate.low:.1%} and {estimate.high:.1%}"
    return tag(
        "svg",
        tag("title", said),
        tag("rect", x=4, y=7, width=152, height=2, class_="track"),
        _line(low, 8, high, 8, "interval"),
        tag("circle", cx=f"{at:.1f}", cy=8, r=4, class_="point"),
        viewBox="0 0 160 16",
        role="img",
        aria_label=said,
    )


def _chart(key: str, title: str, said: str, height: float, parts: Sequence[Markup]) -> Markup:
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", said, id=f"{key}-desc"),
        joined(*parts),
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        id=f"chart-{key}",
    )


def _height(share: float, top: float, base: float) -> float:
    span = math.log10(LOWEST)
    return top + (base - top) * math.log10(max(LOWEST, share)) / span


def _bar(x: float, base: float, width: float, height: float, kind: str) -> Markup:
    if height == 0:
        return Markup("")
    y = base + min(0.0, height)
    return tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{abs(height):.1f}", class_=kind)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _label(x: float, y: float, text: str, anchor: str) -> Markup:
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _cut(name: str) -> str:
    """A name that fits beside its line."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _short(count: int) -> str:
    """A count in few characters: 950, 12k, 3.4M."""
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)
