"""Turns a plain mapping (JSON, or YAML read by a tool) into a `Policy`, or says precisely where it is wrong.

Only `schema` and `version` are required. Keys of the language that this version does not execute are "not supported
yet"; anything else unknown is a mistake. A document without tiers has one, `standard`, capped at normal.
"""

from __future__ import annotations

import re
from typing import Final

from functions.core.condition_parser import Names, parse_condition
from functions.core.document import DocumentError, Fields, Path, as_choice, as_list, as_text
from functions.core.latches import WINDOW_S, Signal
from functions.core.patterns import PathPattern
from functions.core.policy import DEFAULT_RULE, SCHEMA, Defaults, Policy, PolicyError, Route, Rule, TenantEntry
from functions.core.request import PRIORITIES, Priority
from functions.core.snapshot import METRICS
from functions.core.topology import LANES
from functions.core.units import duration_s

BUILT_IN_ROUTE: Final = Route(PathPattern.of("/v1/models/{model}/invocations", ()), None)
MAX_DEADLINE_MS: Final = 29_000
"""API Gateway's HTTP API gives up after 30 s; a second is left to answer."""

_KEYS: Final = ("schema", "version", "timezone", "defaults", "routes", "tiers", "tenants", "signals", "rules")
_ORDER: Final = ("dedicated", "serverless")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_STANDARD: Final = {"standard": Priority.NORMAL}


def parse_policy(document: object) -> Policy:
    """Read a policy document. Raises `PolicyError` with the place and the cause."""
    try:
        return _policy(Fields.of(document))
    except DocumentError as error:
        raise PolicyError(error.path, error.cause) from error


def _policy(root: Fields) -> Policy:
    root.schema(SCHEMA)
    root.only((*_KEYS, "objective"), later=("experiments",))
    if root.text_or("objective", "rules") != "rules":
        as_choice(root.get("objective"), root.at("objective"), ("rules", "cost"), "objective")
        raise DocumentError(root.at("objective"), "cost is not supported yet")
    tiers = _tiers(root.fields_or_empty("tiers"))
    signals = _signals(root.fields_or_empty("signals"))
    names = Names(tuple(tiers), tuple(signals))
    rules = tuple(_rule(Fields.of(item, path), names) for item, path in root.items("rules"))
    _unique([rule.id for rule in rules], root.at("rules"))
    return Policy(
        version=root.text("version"),
        timezone=_timezone(root),
        defaults=_defaults(root.fields_or_empty("defaults"), tiers),
        routes=(*(_route(Fields.of(item, path)) for item, path in root.items("routes")), BUILT_IN_ROUTE),
        tiers=tiers,
        tenants=tuple(_tenant(Fields.of(item, path), names) for item, path in root.items("tenants")),
        signals=signals,
        rules=rules,
    )


def _timezone(root: Fields) -> str:
    """Kept for the clock; only its form is checked here, since time zone data is a file."""
    name = root.text_or("timezone", "UTC")
    if not _ZONE.fullmatch(name):
        raise DocumentError(root.at("timezone"), f"{name!r} is no time zone name (such as UTC or Asia/Shanghai)")
    return name


def _defaults(fields: Fields, tiers: dict[str, Priority]) -> Defaults:
    fields.only(("order", "deadline_ms", "within", "tenant", "tier", "unknown"))
    lowest = min(tiers, key=lambda name: tiers[name])
    deadline = fields.integer_or("deadline_ms", 25_000, at_least=1)
    unknown = as_choice(fields.text_or("unknown", "serve"), fields.at("unknown"), ("serve", "refuse"))
    return Defaults(
        order=_order(fields) if fields.get("order") is not None else _ORDER,
        deadline_ms=min(deadline, MAX_DEADLINE_MS),
        within_s=_within(fields) or 3600.0,
        tenant=fields.text_or("tenant", "anonymous"),
        tier=as_choice(fields.text_or("tier", lowest), fields.at("tier"), tuple(tiers), "tier"),
        refuse_unknown=unknown == "refuse",
    )


def _order(fields: Fields) -> tuple[str, ...]:
    path = fields.at("order")
    lanes = as_list(fields.require("order"), path)
    order = tuple(as_choice(lane, (*path, i), LANES, "lane") for i, lane in enumerate(lanes))
    if not order:
        raise DocumentError(path, "expected at least one lane")
    _unique(list(order), path)
    return order


def _within(fields: Fields) -> float | None:
    value = fields.get("within")
    return None if value is None else duration_s(value, fields.at("within"))


def _route(fields: Fields) -> Route:
    fields.only(("path", "model", "within"), later=("prefer",))
    pattern = PathPattern.of(fields.require("path"), fields.at("path"))
    model = None if fields.get("model") is None else fields.text("model")
    if model is None and "model" not in pattern.names:
        raise DocumentError(fields.path, "key 'model' is missing, and the path has no {model} segment")
    return Route(pattern, model, _within(fields))


def _tiers(fields: Fields) -> dict[str, Priority]:
    found: dict[str, Priority] = {}
    for name in fields.values:
        tier = fields.fields(name)
        tier.only(("max_priority",))
        place = tier.at("max_priority")
        found[name] = Priority.of(as_choice(tier.require("max_priority"), place, PRIORITIES, "priority"))
    return found or dict(_STANDARD)


def _tenant(fields: Fields, names: Names) -> TenantEntry:
    fields.only(("identity", "claim", "api_key", "tenant", "tier", "cost_center"))
    given = [key for key in ("identity", "claim", "api_key") if key in fields.values]
    if len(given) != 1:
        raise DocumentError(fields.path, f"expected exactly one of identity, claim, api_key, found {len(given)}")
    claims: tuple[tuple[str, str], ...] = ()
    if given == ["claim"]:
        claim = fields.fields("claim")
        claims = tuple((name, claim.text(name)) for name in claim.values)
        if not claims:
            raise DocumentError(claim.path, "expected a claim's name and the value it must have")
    return TenantEntry(
        tenant=fields.text("tenant"),
        tier=as_choice(fields.require("tier"), fields.at("tier"), names.tiers, "tier"),
        cost_center=None if fields.get("cost_center") is None else fields.text("cost_center"),
        identity=fields.text("identity") if given == ["identity"] else None,
        claims=claims,
        api_key=fields.text("api_key") if given == ["api_key"] else None,
    )


def _signals(fields: Fields) -> dict[str, Signal]:
    return {name: _signal(fields.fields(name)) for name in fields.values}


def _signal(fields: Fields) -> Signal:
    fields.only(("lane", "metric", "above", "for", "until_below", "until_for"))
    above = fields.number("above")
    for_s = duration_s(fields.require("for"), fields.at("for"), at_most_s=WINDOW_S)
    until_below = above if fields.get("until_below") is None else fields.number("until_below")
    if until_below > above:
        raise DocumentError(fields.at("until_below"), f"{until_below:g} must not exceed above ({above:g})")
    until_for = fields.get("until_for")
    return Signal(
        lane=as_choice(fields.require("lane"), fields.at("lane"), LANES, "lane"),
        metric=as_choice(fields.require("metric"), fields.at("metric"), METRICS, "metric"),
        above=above,
        for_s=for_s,
        until_below=until_below,
        until_for_s=for_s if until_for is None else duration_s(until_for, fields.at("until_for"), at_most_s=WINDOW_S),
    )


def _rule(fields: Fields, names: Names) -> Rule:
    fields.only(("id", "when", "order", "within"), later=("split", "hedge"))
    rule_id = as_text(fields.require("id"), fields.at("id"))
    if rule_id == DEFAULT_RULE or "/" in rule_id:
        raise DocumentError(fields.at("id"), f"{rule_id!r} is reserved")
    when = parse_condition(fields.get("when"), fields.at("when"), names)
    return Rule(rule_id, when, _order(fields), _within(fields))


def _unique(names: list[str], path: Path) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DocumentError((*path, i), f"{name!r} is given twice")
