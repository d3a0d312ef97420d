"""Turns a plain mapping (JSON, or YAML read by a tool) into a `Policy`, or says precisely where it is wrong.

Only `schema` and `version` are required; an unknown key is a mistake. A document without tiers has one, `standard`,
capped at normal. `problems` finds every error in one look, `parse_policy` raises the first.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, tzinfo
from typing import Final

from functions.core.condition_parser import Names
from functions.core.document import DocumentError, Fields, Problems, as_choice
from functions.core.latches import WINDOW_S, Signal
from functions.core.patterns import PathPattern
from functions.core.policy import MAX_DEADLINE_MS, SCHEMA, Capture, Defaults, Policy, PolicyError, Route, TenantEntry
from functions.core.policy_checks import check_ids, check_reachable, check_routes, check_tenants
from functions.core.redaction import read_pointer
from functions.core.request import PRIORITIES, Priority
from functions.core.rule_parser import read_experiment, read_order, read_rule, read_within
from functions.core.snapshot import METRICS
from functions.core.topology import LANES
from functions.core.units import duration_s, percent

KEYS: Final = (
    *("schema", "version", "timezone", "defaults", "routes", "tiers", "tenants", "signals", "rules", "experiments"),
    "objective",
)
OBJECTIVES: Final = ("rules", "cost")
LONGEST_PATTERN: Final = 1024
"""Of an identity: a role's ARN has at most some 600 characters."""
BUILT_IN_ROUTE: Final = Route(PathPattern.of("/v1/models/{model}/invocations", ()), None)

_ORDER: Final = ("dedicated", "serverless")
_DEFAULT_DEADLINE_MS: Final = 25_000
_DEFAULT_WITHIN_S: Final = 3600.0
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_STANDARD: Final = {"standard": Priority.NORMAL}
_NO_SIGNAL: Final = Signal("dedicated", "cpu_percent", 0.0, 1.0, 0.0, 1.0)


def parse_policy(document: object) -> Policy:
    """Read a policy document. Raises `PolicyError` with the place and the cause of the first error in it."""
    policy, found = _read(document)
    if policy is None or found:
        raise found[0]
    return policy


def problems(document: object) -> list[PolicyError]:
    """Every error of a policy document, in the document's order; none: it can be used."""
    return _read(document)[1]


def _read(document: object) -> tuple[Policy | None, list[PolicyError]]:
    """The policy, worth something only without errors, and the errors."""
    notes = Problems()
    policy = None
    try:
        root = Fields.of(document)
        root.schema(SCHEMA)
    except DocumentError as error:
        notes.found.append(error)
    else:
        policy = _policy(root, notes)
    return policy, [PolicyError(error.path, error.cause) for error in notes.in_order_of(document)]


def _policy(root: Fields, notes: Problems) -> Policy:
    notes.only(root, KEYS)
    none = Fields({}, ())
    tiers = _tiers(notes.attempt(none, root.fields_or_empty, "tiers"), notes)
    signals = notes.attempt(none, root.fields_or_empty, "signals")
    names = Names(tuple(tiers), tuple(signals.values), notes)
    routes = notes.each(notes.attempt([], root.items, "routes"), lambda fields: _route(fields, notes))
    tenants = notes.each(notes.attempt([], root.items, "tenants"), lambda fields: _tenant(fields, names))
    rules = notes.each(notes.attempt([], root.items, "rules"), lambda fields: read_rule(fields, names))
    trials = notes.each(notes.attempt([], root.items, "experiments"), lambda fields: read_experiment(fields, names))
    check_ids(root, notes)
    check_routes(routes, notes)
    check_tenants(tenants, notes)
    check_reachable(rules, notes)
    zone_name, zone = notes.attempt(("UTC", UTC), _timezone, root)
    objective = notes.attempt("rules", root.text_or, "objective", "rules")
    notes.attempt("", as_choice, objective, root.at("objective"), OBJECTIVES, "objective")
    return Policy(
        version=notes.attempt("", root.text, "version"),
        timezone=zone_name,
        zone=zone,
        defaults=_defaults(notes.attempt(none, root.fields_or_empty, "defaults"), tiers, notes),
        routes=(*(route for _, route in routes), BUILT_IN_ROUTE),
        tiers=tiers,
        tenants=tuple(tenant for _, tenant in tenants),
        signals={name: notes.attempt(_NO_SIGNAL, _signal, signals, name, notes) for name in signals.values},
        rules=tuple(rule for _, rule in rules),
        experiments=tuple(trial for _, trial in trials),
        by_cost=objective == "cost",
    )


def _timezone(root: Fields) -> tuple[str, tzinfo]:
    """The zone with its data, loaded here so that deciding never reads a file and an unknown zone is an error now."""
    name = root.text_or("timezone", "UTC")
    if name == "UTC":
        return name, UTC
    if not _ZONE.fullmatch(name):
        raise DocumentError(root.at("timezone"), f"{name[:60]!r} is no time zone name (such as UTC or Asia/Shanghai)")
    from zoneinfo import ZoneInfo  # most policies are in UTC, and a cold start should not pay for the others

    try:
        return name, ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DocumentError(root.at("timezone"), f"unknown time zone {name[:60]!r}") from None


def _defaults(fields: Fields, tiers: dict[str, Priority], notes: Problems) -> Defaults:
    notes.only(fields, ("order", "deadline_ms", "within", "tenant", "tier", "unknown"))
    lowest = min(tiers, key=lambda name: tiers[name])
    deadline_ms = notes.attempt(
        _DEFAULT_DEADLINE_MS, fields.integer_or, "deadline_ms", _DEFAULT_DEADLINE_MS, at_least=1
    )
    unknown = notes.attempt("serve", fields.text_or, "unknown", "serve")
    tier = notes.attempt(lowest, fields.text_or, "tier", lowest)
    return Defaults(
        order=_ORDER if fields.get("order") is None else notes.attempt(_ORDER, read_order, fields),
        deadline_ms=min(deadline_ms, MAX_DEADLINE_MS),
        within_s=notes.attempt(None, read_within, fields) or _DEFAULT_WITHIN_S,
        tenant=notes.attempt("", fields.text_or, "tenant", "anonymous"),
        tier=notes.attempt(lowest, as_choice, tier, fields.at("tier"), tuple(tiers), "tier"),
        refuse_unknown=notes.attempt("serve", as_choice, unknown, fields.at("unknown"), ("serve", "refuse"))
        == "refuse",
    )


def _route(fields: Fields, notes: Problems) -> Route:
    notes.only(fields, ("path", "model", "prefer", "within", "capture"))
    pattern = PathPattern.of(fields.require("path"), fields.at("path"))
    model, from_body = notes.attempt(("", None), _route_model, fields)
    if model is None and from_body is None and "model" not in pattern.names:
        notes.add(fields.path, "key 'model' is missing, and the path has no {model} segment")
    prefer = notes.attempt("", fields.text_or, "prefer", "")
    if prefer:
        notes.attempt("", as_choice, prefer, fields.at("prefer"), ("async",), "preference")
    return Route(
        pattern,
        model,
        notes.attempt(None, read_within, fields),
        model_from_body=from_body,
        prefer_async=bool(prefer),
        capture=notes.attempt(None, _capture, fields, notes),
    )


def _capture(route: Fields, notes: Problems) -> Capture | None:
    if route.get("capture") is None:
        return None
    fields = route.fields("capture")
    notes.only(fields, ("share", "redact"))
    share = notes.attempt(0.0, percent, fields.require("share"), fields.at("share"))
    redacted = fields.get("redact")
    if redacted is None:
        return Capture(share)
    if isinstance(redacted, str):
        as_choice(redacted, fields.at("redact"), ("body",), "redaction")
        return Capture(share, bodies=False)
    pointers = [notes.attempt(("",), read_pointer, item, path) for item, path in fields.items("redact")]
    if not pointers:
        raise DocumentError(fields.at("redact"), "expected body, or at least one JSON pointer such as /user/email")
    return Capture(share, tuple(pointers))


def _route_model(fields: Fields) -> tuple[str | None, str | None]:
    """The model's name, and the key of the body that names it; at most one of them."""
    value = fields.get("model")
    if value is None:
        return None, None
    if isinstance(value, str):
        return fields.text("model"), None
    source = fields.fields("model")
    for error in source.unknown(("from_body",)):
        raise error
    return None, source.text("from_body")


def _tiers(fields: Fields, notes: Problems) -> dict[str, Priority]:
    return {name: notes.attempt(Priority.LOW, _cap, fields, name, notes) for name in fields.values} or dict(_STANDARD)


def _cap(fields: Fields, name: str, notes: Problems) -> Priority:
    tier = fields.fields(name)
    notes.only(tier, ("max_priority",))
    place = tier.at("max_priority")
    return Priority.of(as_choice(tier.require("max_priority"), place, PRIORITIES, "priority"))


def _tenant(fields: Fields, names: Names) -> TenantEntry:
    attempt = names.problems.attempt
    names.problems.only(fields, ("identity", "claim", "api_key", "tenant", "tier", "cost_center"))
    given = [key for key in ("identity", "claim", "api_key") if key in fields.values]
    if len(given) != 1:
        names.problems.add(fields.path, f"expected exactly one of identity, claim, api_key, found {len(given)}")
        given = [""]
    return TenantEntry(
        tenant=attempt("", fields.text, "tenant"),
        tier=attempt("", _tier, fields, names),
        cost_center=attempt("", fields.text_or, "cost_center", "") or None,
        identity=attempt("", _pattern, fields, "identity") if given == ["identity"] else None,
        claims=attempt((), _claims, fields) if given == ["claim"] else (),
        api_key=attempt("", _pattern, fields, "api_key") if given == ["api_key"] else None,
    )


def _tier(fields: Fields, names: Names) -> str:
    return as_choice(fields.require("tier"), fields.at("tier"), names.tiers, "tier")


def _claims(fields: Fields) -> tuple[tuple[str, str], ...]:
    claim = fields.fields("claim")
    if not claim.values:
        raise DocumentError(claim.path, "expected a claim's name and the value it must have")
    return tuple((name, _pattern(claim, name)) for name in claim.values)


def _pattern(fields: Fields, key: str) -> str:
    found = fields.text(key)
    if len(found) > LONGEST_PATTERN:
        raise DocumentError(fields.at(key), f"longer than {LONGEST_PATTERN} characters")
    return found


def _signal(signals: Fields, name: str, notes: Problems) -> Signal:
    fields = signals.fields(name)
    notes.only(fields, ("lane", "metric", "above", "for", "until_below", "until_for"))
    above = notes.attempt(math.inf, fields.number, "above")
    for_s = notes.attempt(1.0, _duration, fields, "for")
    until_below = notes.attempt(above, fields.number_or, "until_below", above)
    if until_below > above:
        notes.add(fields.at("until_below"), f"{until_below:g} must not exceed above ({above:g})")
    return Signal(
        lane=notes.attempt("", _choice, fields, "lane", LANES),
        metric=notes.attempt("", _choice, fields, "metric", METRICS),
        above=above,
        for_s=for_s,
        until_below=until_below,
        until_for_s=for_s if fields.get("until_for") is None else notes.attempt(1.0, _duration, fields, "until_for"),
    )


def _duration(fields: Fields, key: str) -> float:
    return duration_s(fields.require(key), fields.at(key), at_most_s=WINDOW_S)


def _choice(fields: Fields, key: str, known: tuple[str, ...]) -> str:
    return as_choice(fields.require(key), fields.at(key), known, key)
