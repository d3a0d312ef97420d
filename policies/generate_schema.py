"""Writes policies/schema.json, the JSON Schema of the policy language, from the words that the parser itself knows.

    python policies/generate_schema.py            # writes the file beside this script
    python policies/generate_schema.py --print    # prints it

For editors it is JSON Schema 2020-12. It uses only keywords that mean the same in draft-04, the one draft that
AppConfig's inline validators read; for them leave `$schema` out. A schema sees shapes and words, one at a time: names
that must be declared elsewhere, duplicates and unreachable rules are found by `inferlane policy check`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from functions.core.condition_parser import BOUNDS, CLOCK, SECRET_HEADERS, WEEKDAYS
from functions.core.document import LARGEST as LARGEST_FLOAT
from functions.core.policy import MAX_DEADLINE_MS, SCHEMA
from functions.core.policy_parser import LONGEST_PATTERN, OBJECTIVES
from functions.core.redaction import LONGEST as LONGEST_POINTER
from functions.core.request import PRIORITIES
from functions.core.snapshot import BREAKERS, METRICS
from functions.core.topology import LANES
from functions.core.wishes import TOKEN

FILE: Final = Path(__file__).with_name("schema.json")
Schema = dict[str, object]
LARGEST: Final = int(LARGEST_FLOAT)

_QUANTITY: Final = r"[0-9]{1,12}(\.[0-9]{1,9})? ?"
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_NUMBER: Final[Schema] = {"type": "number", "minimum": 0, "maximum": LARGEST}


def schema() -> Schema:
    """The whole schema."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "inferlane policy",
        "description": "Who may ask for what, and which lanes are tried in which order.",
        **_object(
            {
                "schema": {"enum": [SCHEMA]},
                "version": _said("Any text; it stands in every receipt.", _TEXT),
                "timezone": _nullable(_said("Of clock and weekday, such as Asia/Shanghai. Default: UTC.", _TEXT)),
                "defaults": _nullable(_defaults()),
                "routes": _nullable(
                    _list(_ref("route"), "Paths that name a model, besides /v1/models/{model}/invocations.")
                ),
                "tiers": _nullable(_map(_object({"max_priority": _ref("priority")}, ["max_priority"]))),
                "tenants": _nullable(
                    _list(_ref("tenant"), "Whom a proven identity stands for. The first match counts.")
                ),
                "signals": _nullable(_map(_ref("signal"))),
                "rules": _nullable(_list(_ref("rule"), "The first that is true decides; what is unknown is not true.")),
                "experiments": _nullable(_list(_ref("experiment"), "Rules on trial, before all others.")),
                "objective": {"enum": [*OBJECTIVES, None], "description": "cost: try what is left by marginal cost."},
            },
            ["schema", "version"],
        ),
        "definitions": {
            **_words(),
            "condition": _condition(),
            "route": _route(),
            "tenant": _tenant(),
            "signal": _signal(),
            "rule": _rule(),
            "experiment": _experiment(),
        },
    }


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _words() -> Schema:
    """Scalars and small parts that several places use."""
    return {
        "lane": {"enum": list(LANES)},
        "priority": {"enum": list(PRIORITIES)},
        "order": {
            "description": "The lanes to try, one after the other.",
            "type": "array",
            "items": _ref("lane"),
            "minItems": 1,
            "uniqueItems": True,
        },
        "duration": {
            "type": "string",
            "pattern": rf"^\s*{_QUANTITY}(ms|s|m|h|d)\s*$",
            "description": "500ms, 20s, 5m, 1h",
        },
        "size": {
            "anyOf": [
                _NUMBER,
                {"type": "string", "pattern": rf"^\s*{_QUANTITY}(B|[KMG]B|[KMG]iB)\s*$"},
            ],
            "description": "A count of bytes, 2MB (10⁶) or 2MiB (2²⁰).",
        },
        "percent": {
            "type": "string",
            "pattern": r"^\s*0*(100(\.0{1,9})?|[0-9]{1,2}(\.[0-9]{1,9})?) ?%\s*$",
            "description": "From 0% to 100%.",
        },
        "path": {"type": "string", "pattern": "^/", "description": "Literal segments, {name}, *, and ** for the rest."},
        "time": {"type": "string", "pattern": f"^({CLOCK})$", "description": 'In quotes: "22:00".'},
        "milliseconds": {"anyOf": [_NUMBER, _ref("duration")]},
        "fraction": _NUMBER,
    }


def _defaults() -> Schema:
    return _object(
        {
            "order": _nullable(_ref("order")),
            "deadline_ms": _nullable(
                {**_NUMBER, "minimum": 1, "multipleOf": 1, "description": f"Cut to {MAX_DEADLINE_MS}."}
            ),
            "within": _nullable(_ref("duration")),
            "tenant": _nullable(_TEXT),
            "tier": _nullable(_said("Of callers without an entry. Default: the lowest.", _TEXT)),
            "unknown": {"enum": ["serve", "refuse", None], "description": "Callers without an entry."},
        }
    )


def _route() -> Schema:
    from_body = _object({"from_body": _TEXT}, ["from_body"])
    return _object(
        {
            "path": _ref("path"),
            "model": {
                "anyOf": [_TEXT, from_body, {"type": "null"}],
                "description": "A name, or the JSON body's key that names it; else the path has {model}.",
            },
            "prefer": {"enum": ["async", None]},
            "within": _nullable(_ref("duration")),
            "capture": _nullable(_capture()),
        },
        ["path"],
    )


def _capture() -> Schema:
    pointer: Schema = {"type": "string", "pattern": "^(/([^/~]|~[01])*)+$", "maxLength": LONGEST_POINTER}
    pointers = {"type": "array", "items": pointer, "minItems": 1}
    redact = {"anyOf": [pointers, {"enum": ["body", None]}], "description": "body, or JSON pointers."}
    return _said(
        "The share of answered requests that is kept for the nightly recheck, and what is taken out of them first.",
        _object({"share": _ref("percent"), "redact": redact}, ["share"]),
    )


def _tenant() -> Schema:
    pattern = {**_TEXT, "maxLength": LONGEST_PATTERN}
    claims = {"type": "object", "additionalProperties": pattern, "minProperties": 1}
    whom = {"identity": pattern, "claim": claims, "api_key": pattern}
    entry = _object({**whom, "tenant": _TEXT, "tier": _TEXT, "cost_center": _nullable(_TEXT)}, ["tenant", "tier"])
    return {**entry, "oneOf": [{"required": [key]} for key in whom]}


def _signal() -> Schema:
    return _object(
        {
            "lane": _ref("lane"),
            "metric": {"enum": list(METRICS)},
            "above": {**_NUMBER, "minimum": -LARGEST},
            "for": _ref("duration"),
            "until_below": _nullable({**_NUMBER, "minimum": -LARGEST}),
            "until_for": _nullable(_ref("duration")),
        },
        ["lane", "metric", "above", "for"],
    )


def _rule() -> Schema:
    split = _object({"share": _ref("percent"), "order": _ref("order")}, ["share", "order"])
    rule = _object({**_chosen(), "split": split}, ["id"])
    return {**rule, "oneOf": [{"required": ["order"]}, {"required": ["split"]}]}


def _experiment() -> Schema:
    guard = {**_object({"max_error_rate": _ref("percent"), "max_late_rate": _ref("percent")}), "minProperties": 1}
    return _object({**_chosen(), "share": _ref("percent"), "guard": guard}, ["id", "share", "order", "guard"])


def _chosen() -> Schema:
    """What rules and experiments have in common."""
    return {
        "id": {"type": "string", "pattern": "^[^/]+$", "not": {"enum": ["default"]}},
        "when": _nullable(_ref("condition")),
        "order": _ref("order"),
        "within": _nullable(_ref("duration")),
        "hedge": {"type": ["boolean", "null"], "description": "After the first lane's P95, also try the next."},
    }


def _condition() -> Schema:
    several = {"type": "array", "items": _nullable(_ref("condition")), "minItems": 1}
    lane: Schema = {"lane": _ref("lane")}
    return _said(
        "Every key must hold. No key always holds.",
        _object(
            {
                "path": _ref("path"),
                "model": _TEXT,
                "tenant": _TEXT,
                "tier": _TEXT,
                "priority": {"anyOf": [_ref("priority"), _bounds("priority")]},
                "deadline_ms": _bounds("milliseconds"),
                "bytes": _bounds("size"),
                "content_type": {"type": "string", "pattern": "^[^;]+$", "description": "A pattern such as image/*."},
                "header": {
                    "type": "object",
                    "patternProperties": {
                        "|".join(map(_any_case, SECRET_HEADERS)): {"not": {}},
                        f"^{TOKEN}$": _TEXT,
                    },
                    "additionalProperties": False,
                    "minProperties": 1,
                },
                "clock": _object({"from": _ref("time"), "to": _ref("time")}, ["from", "to"]),
                "weekday": {"type": "array", "items": {"enum": list(WEEKDAYS)}, "minItems": 1},
                "load": _bounds("fraction", beside=lane),
                "signal": _TEXT,
                "breaker": _object({**lane, "is": {"enum": list(BREAKERS)}}, ["lane", "is"]),
                "all": several,
                "any": several,
                "not": _nullable(_ref("condition")),
            }
        ),
    )


def _bounds(what: str, *, beside: Schema | None = None) -> Schema:
    """Limits on a number, at least one."""
    bounds = _object({**(beside or {}), **{bound: _ref(what) for bound in BOUNDS}}, list(beside or {}))
    return {**bounds, "minProperties": 1 + len(beside or {})}


def _any_case(name: str) -> str:
    return "^" + "".join(f"[{c.upper()}{c}]" if c.isalpha() else c for c in name) + "$"


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _said(description: str, found: Schema) -> Schema:
    return {"description": description, **found}


def _nullable(found: Schema) -> Schema:
    """The same, or nothing: `rules:` with nothing after it is the same as no rules."""
    if "$ref" in found:
        return {"anyOf": [found, {"type": "null"}]}
    return {**found, "type": [found["type"], "null"]}


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text())
    else:
        FILE.write_text(text(), encoding="utf-8")
