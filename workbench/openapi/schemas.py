"""The JSON bodies that the front door itself writes: problems, the board of lanes, liveness. Fields may be added."""

from __future__ import annotations

import json
from typing import Any, Final

from functions.core.outcome import Kind
from functions.core.problem import Problem
from functions.core.snapshot import BREAKERS, METRICS


def _nullable(kind: str, **more: object) -> dict[str, Any]:
    return {"type": [kind, "null"], **more}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = (), **more: object) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


_ATTEMPT: Final = _object(
    {
        "lane": {"type": "string"},
        "outcome": {"type": "string", "enum": [kind.value for kind in Kind]},
        "duration_ms": {"type": "number", "minimum": 0},
    }
)
_PROBLEM: Final = _object(
    {
        "type": {"type": "string", "pattern": "^urn:inferlane:problem:[a-z]+(-[a-z]+)*$"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "attempts": {"type": "array", "items": {"$ref": "#/components/schemas/Attempt"}},
    },
    description="RFC 9457. Holds no endpoint name, account or trace.",
    examples=[json.loads(Problem(404, "no model has this name").body("Zb9kXhJ2IAMEMVg="))],
)
_LANE: Final = _object(
    {
        "kind": {"type": "string", "enum": ["dedicated", "serverless"]},
        "serving": {"const": True},
        "known": {"type": "boolean", "description": "Whether its metrics are fresh enough to decide on."},
        "load": _nullable("number", minimum=0),
        "in_flight": _nullable("integer", minimum=0),
        "breaker": {"type": "string", "enum": list(BREAKERS)},
        "predicted_p99_ms": _nullable("number", minimum=0),
        "metrics": {
            "type": "object",
            "propertyNames": {"enum": list(METRICS)},
            "additionalProperties": {"type": "number"},
        },
    }
)
_DEFERRED: Final = _object(
    {"kind": {"type": "string"}, "serving": {"const": False}}, description="Not served from here."
)
_BOARD: Final = _object(
    {
        "policy_version": {"type": "string"},
        "snapshot_age_s": _nullable("number", description="Null while nothing was ever read."),
        "models": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "latches": {
                        "type": "object",
                        "additionalProperties": _nullable("boolean", description="Null: unknown."),
                    },
                    "lanes": {
                        "type": "object",
                        "additionalProperties": {
                            "oneOf": [
                                {"$ref": "#/components/schemas/Lane"},
                                {"$ref": "#/components/schemas/DeferredLane"},
                            ]
                        },
                    },
                }
            ),
        },
    }
)

SCHEMAS: Final = {
    "Problem": _PROBLEM,
    "Attempt": _ATTEMPT,
    "Board": _BOARD,
    "Lane": _LANE,
    "DeferredLane": _DEFERRED,
    "Health": _object({"status": {"const": "ok"}}),
    "GatewayRefusal": {
        "type": "object",
        "properties": {"message": {"type": ["string", "null"]}},
        "description": "API Gateway's own answer to what never reaches the router.",
    },
}
