"""OpenAPI 3.1 of the front door: every path, wish, answer and error, built from the router's own constants.

What the code holds as a value (paths, header names, priorities, kinds of outcome, metrics, limits) is taken from it.
Which status an exhausted request can get is found by asking `failure_of` about every combination of failed attempts.
The rest is words; the e2e fuzz holds that what comes back over HTTP is what is said here.

A policy's own routes differ from stack to stack: with `routes` they are paths of the document, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import chain, combinations
from typing import Any, Final

from functions.core import problem
from functions.core.outcome import FINAL, Kind, failure_of
from functions.core.patterns import PathPattern
from functions.core.policy import MAX_DEADLINE_MS, Route
from functions.core.policy_parser import BUILT_IN_ROUTE
from functions.router import HEALTH_PATH, LANES_PATH
from workbench.openapi import jobs, schemas
from workbench.openapi.headers import WISHES, answer_headers, deferred_headers

VERSION: Final = "1.1.0"
"""Of the contract: a field more raises the second number, a broken promise the first."""
_SHED: Final = {
    400: "A wish in the headers is malformed, the body names no model where the path asks for one, or there is no body "
    "for a job.",
    401: "The call carries no identity that the gateway could prove.",
    403: "The identity may not call this stack.",
    404: "No route has this path, or no model has this name.",
    413: "The body is larger than every lane that could serve the request accepts; the detail names the limit.",
    422: "The `Idempotency-Key` was used before, for another request that became a job.",
    429: "No lane can take the request now; `Retry-After` says when to come back.",
    503: "No lane is available, there is no policy yet that could decide, or a job could not be accepted. In the last "
    "case nothing is promised; should a job exist all the same, its `Idempotency-Key` finds it.",
}
"""What the router answers before any lane is tried."""
_FAULTS: Final = {
    500: "A fault of the router itself; the request id finds it in the logs.",
    502: "Every lane failed, or the model's answer is larger than the gateway can return.",
    504: "No lane answered before the deadline.",
}
_BY_GATEWAY: Final = (401, 403, 413, 429, 500, 503, 504)
"""What API Gateway answers in its own form as well: who is not let in, what Lambda cannot be handed (6 MB, with binary
bodies in Base64) or is too much at a time, and a function that crashed, did not start, or ran out of time."""


def document(routes: Iterable[Route] = ()) -> dict[str, Any]:
    """The document: the fixed paths, then those of `routes` that OpenAPI can express (all but an open `**`)."""
    paths: dict[str, Any] = {
        HEALTH_PATH: {"get": _health()},
        LANES_PATH: {"get": _lanes()},
        **jobs.paths(),
    }
    for route in (BUILT_IN_ROUTE, *routes):
        template, names = _template(route.pattern)
        if template is not None:
            paths.setdefault(template, {"post": _invocation(route, names)})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "inferlane front door",
            "version": VERSION,
            "summary": "Inference requests, each sent to the lane that should serve it.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "https://{api}.execute-api.{region}.amazonaws.com",
                "description": "A stack's HTTP API; `inferlane status` and the Pulumi output `url` tell it.",
                "variables": {"api": {"default": "api"}, "region": {"default": "us-east-1"}},
            }
        ],
        "security": [{"api_key": []}, {"jwt": []}, {"iam": []}],
        "tags": [
            {"name": "inference", "description": "Requests to a model."},
            {"name": "jobs", "description": "What may wait, in stacks with a batch lane."},
            {"name": "operation", "description": "What the router is and believes."},
        ],
        "paths": paths,
        "components": {"schemas": {**schemas.SCHEMAS, **jobs.SCHEMAS}, "securitySchemes": _SECURITY},
    }


def text(routes: Iterable[Route] = ()) -> str:
    """The document as it lies in `docs/openapi/openapi.json`."""
    return json.dumps(document(routes), indent=1, ensure_ascii=False) + "\n"


def failures() -> dict[int, set[str]]:
    """Each status that a request can end with when no lane served it, and the problem types it comes with."""
    failed = [kind for kind in Kind if kind not in FINAL and kind is not Kind.ABANDONED]
    sets = chain.from_iterable(combinations(failed, size) for size in range(len(failed) + 1))
    found: dict[int, set[str]] = {}
    for kinds in sets:
        failure = failure_of(kinds)
        found.setdefault(failure.status, set()).add(failure.slug)
    return found


def _health() -> dict[str, Any]:
    return {
        "operationId": "health",
        "summary": "Liveness, without a key and without detail",
        "tags": ["operation"],
        "security": [],
        "responses": {
            "200": _json_answer("The router runs.", "Health"),
            **_problems([500], by_gateway=[500]),
            **_gateway([429, 503]),
        },
    }


def _lanes() -> dict[str, Any]:
    return {
        "operationId": "lanes",
        "summary": "What the router believes now: load, latches, breakers, predictions, the snapshot's age",
        "tags": ["operation"],
        "responses": {
            "200": _json_answer("Every lane of every model of this stack.", "Board"),
            **_problems([401, 403, 500, 503], by_gateway=[401, 403, 500, 503]),
            **_gateway([429]),
        },
    }


def _invocation(route: Route, names: list[str]) -> dict[str, Any]:
    fixed = route is not BUILT_IN_ROUTE
    words = route.pattern.text.strip("/").replace("{", "").replace("}", "").replace("*", "any")
    return {
        "operationId": "invoke" if not fixed else "invoke_" + "_".join(words.split("/")).replace("-", "_"),
        "summary": f"Ask the model {route.model}" if route.model else "Ask a model",
        "description": _INVOCATION,
        "tags": ["inference"],
        "parameters": [_path_parameter(name) for name in names] + WISHES,
        "requestBody": _body(route),
        "responses": _invocation_answers(),
    }


def _invocation_answers() -> dict[str, Any]:
    opaque: dict[str, Any] = {"*/*": {"schema": {}}}
    answers: dict[str, Any] = {
        "200": {
            "description": "The model's bytes and content type, untouched.",
            "headers": answer_headers(served=True),
            "content": opaque,
        },
        "202": jobs.accepted(deferred_headers()),
        "4XX": {
            "description": "The model's container refused the request: its own status, body and (where it can be told) "
            "content type. Never tried again on another lane.",
            "headers": answer_headers(served=True),
            "content": opaque,
        },
    }
    statuses = sorted({*_SHED, *_FAULTS, *failures()})
    for code, answer in _problems(statuses, by_gateway=_BY_GATEWAY).items():
        if int(code) < HTTPStatus.INTERNAL_SERVER_ERROR:
            answer["content"].update(opaque)  # a container may refuse with the same status and words of its own
        answers[code] = answer
    return answers


def _body(route: Route) -> dict[str, Any]:
    anything: dict[str, Any] = {"description": "What the model's own contract asks for."}
    if route.model_from_body is not None:
        name = {"type": "string", "description": "The model's name in this stack."}
        named = {"type": "object", "required": [route.model_from_body], "properties": {route.model_from_body: name}}
        return {"required": True, "content": {"application/json": {"schema": named}}}
    return {
        "description": "Goes to the model untouched, with its content type. What a model takes is its own affair.",
        "content": {"application/json": {"schema": anything}, "application/octet-stream": {"schema": {}}},
    }


def _problems(statuses: Iterable[int], by_gateway: Iterable[int] = ()) -> dict[str, Any]:
    """Problem answers by status. The gateway has its own form for what never reaches the router."""
    gateway = set(by_gateway)
    answers: dict[str, Any] = {}
    for status in statuses:
        content = {problem.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        if status in gateway:
            content["application/json"] = {"schema": {"$ref": "#/components/schemas/GatewayRefusal"}}
        answers[str(status)] = {
            "description": (_SHED | _FAULTS)[status],
            "headers": answer_headers(served=False, retry_after=status in (429, 503)),
            "content": content,
        }
    return answers


def _gateway(statuses: Iterable[int]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/GatewayRefusal"}}}
    words = "The gateway refused the call before the router saw it."
    return {str(status): {"description": words, "content": content} for status in statuses}


def _json_answer(description: str, schema: str) -> dict[str, Any]:
    return {
        "description": description,
        "headers": {name: header for name, header in answer_headers(served=False).items() if name == "X-Request-Id"},
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _path_parameter(name: str) -> dict[str, Any]:
    words = "The model's name in this stack." if name == "model" else "Any one segment."
    schema = {"type": "string", "minLength": 1, "pattern": "^[^/]+$"}
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _template(pattern: PathPattern) -> tuple[str | None, list[str]]:
    """OpenAPI's form of a path pattern and its parameters, or None for one with an open end."""
    if pattern.open_end:
        return None, []
    segments, names = zip(*_segments(pattern), strict=True)
    return "/" + "/".join(segments), [name for name in names if name]


def _segments(pattern: PathPattern) -> Iterator[tuple[str, str]]:
    for index, (segment, name) in enumerate(zip(pattern.segments, pattern.names, strict=True)):
        found = name or (f"segment_{index}" if segment == "*" else "")
        yield (f"{{{found}}}", found) if found else (segment, "")


_SECURITY: Final = {
    "api_key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Api-Key",
        "description": "Stacks with `auth: api_key`. `inferlane keys create` makes one; only its hash is stored.",
    },
    "jwt": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "Stacks with `auth: jwt`: a token of the configured issuer and audience.",
    },
    "iam": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "Stacks with `auth: iam`: AWS Signature Version 4 for the service `execute-api`.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
}
_DESCRIPTION: Final = (
    "One door to every lane a model has. A request says what it wants in headers; who it comes from is what the "
    "gateway proved, and decides what of that is granted. Each answer names the lane, the rule and the policy that "
    "led there. Errors are problem documents (RFC 9457). Any other method on these paths is 405 with `Allow`, and any "
    "other path 404, both as problem documents. A policy's routes add paths that behave as invocations do. What may "
    "wait becomes a job: 202, and the answer is fetched later by the tenant that asked, and by no other."
)
_INVOCATION: Final = (
    "The body's bytes go to the model untouched; its bytes and content type come back. All request headers named here "
    f"are wishes. A deadline beyond {MAX_DEADLINE_MS} ms is cut to it. Lambda is handed 6 MB at most, and what is not "
    "text in Base64: some 4.5 MB of binary, whatever a lane itself would take. When a lane fails without "
    "having served, the next one is tried while the deadline allows."
)
