"""Reads rules and experiments: a condition, the lanes to try, and perhaps the share of requests that it takes."""

from __future__ import annotations

from typing import Final

from functions.core.condition_parser import Names, parse_condition
from functions.core.conditions import Always, Condition
from functions.core.document import DocumentError, Fields, Path, as_choice, as_list, as_text
from functions.core.policy import DEFAULT_RULE, Experiment, Guard, Rule
from functions.core.topology import LANES
from functions.core.units import duration_s, percent

_ANY: Final[Condition] = Always()
_LANE: Final = ("dedicated",)
_GUARDS: Final = ("max_error_rate", "max_late_rate")


def read_rule(fields: Fields, names: Names) -> Rule:
    """A rule with `order`, or with `split: {share, order}`. Errors within it are noted in `names.problems`."""
    attempt = names.problems.attempt
    names.problems.only(fields, ("id", "when", "order", "split", "within", "hedge"))
    rule_id = attempt("", read_id, fields)
    when = attempt(_ANY, parse_condition, fields.get("when"), fields.at("when"), names)
    share: float | None = None
    if "split" not in fields.values:
        order = attempt(_LANE, read_order, fields)
    else:
        if "order" in fields.values:
            names.problems.add(fields.at("order"), "a rule has either order or split")
        split = attempt(Fields({"share": "0%", "order": _LANE}, fields.path), fields.fields, "split")
        names.problems.only(split, ("share", "order"))
        share = attempt(0.0, _percent, split, "share")
        order = attempt(_LANE, read_order, split)
    return Rule(
        rule_id, when, order, attempt(None, read_within, fields), share=share, hedge=attempt(False, _hedge, fields)
    )


def read_experiment(fields: Fields, names: Names) -> Experiment:
    """An experiment; it needs a share and a guard."""
    attempt = names.problems.attempt
    names.problems.only(fields, ("id", "when", "share", "order", "within", "hedge", "guard"))
    trial_id = attempt("", read_id, fields)
    rule = Rule(
        id=f"experiment/{trial_id}",
        when=attempt(_ANY, parse_condition, fields.get("when"), fields.at("when"), names),
        order=attempt(_LANE, read_order, fields),
        within_s=attempt(None, read_within, fields),
        share=attempt(0.0, _percent, fields, "share"),
        hedge=attempt(False, _hedge, fields),
    )
    return Experiment(trial_id, rule, attempt(Guard(None, None), _guard, fields))


def read_id(fields: Fields) -> str:
    """The id; it must not look like another kind of rule in a decision."""
    found = as_text(fields.require("id"), fields.at("id"))
    if found == DEFAULT_RULE or "/" in found:
        raise DocumentError(fields.at("id"), f"{found[:60]!r} is reserved")
    return found


def read_order(fields: Fields) -> tuple[str, ...]:
    """The lanes to try, each once."""
    path = fields.at("order")
    lanes = as_list(fields.require("order"), path)
    order: list[str] = []
    for i, lane in enumerate(lanes):
        name = as_choice(lane, (*path, i), LANES, "lane")
        if name in order:
            raise DocumentError((*path, i), f"{name!r} is given twice")
        order.append(name)
    if not order:
        raise DocumentError(path, "expected at least one lane")
    return tuple(order)


def read_within(fields: Fields) -> float | None:
    """The time within which a batch answer is due, seconds."""
    value = fields.get("within")
    return None if value is None else duration_s(value, fields.at("within"))


def _percent(fields: Fields, key: str) -> float:
    return percent(fields.require(key), fields.at(key))


def _hedge(fields: Fields) -> bool:
    return _flag(fields.get("hedge"), fields.at("hedge"))


def _flag(value: object, path: Path) -> bool:
    if value is not None and not isinstance(value, bool):
        raise DocumentError(path, "expected true or false")
    return bool(value)


def _guard(fields: Fields) -> Guard:
    guard = fields.fields("guard")
    for error in guard.unknown(_GUARDS):
        raise error
    if not guard.values:
        raise DocumentError(guard.path, f"expected one of {', '.join(_GUARDS)}")
    error_rate, late_rate = (_percent(guard, key) if key in guard.values else None for key in _GUARDS)
    return Guard(error_rate, late_rate)
