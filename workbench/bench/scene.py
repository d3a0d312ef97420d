"""What the measurements measure on: one model with two lanes, a busy hour of metrics, a policy that takes its time.

The payload is a chat request of about a kilobyte and its answer a chat completion, since that is what every router
compared here can carry, LiteLLM's proxy included.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

MODEL: Final = "moderation"
PATH: Final = f"/v1/models/{MODEL}/invocations"
ENDPOINT: Final = "inferlane-bench-moderation-dedicated"
VERSION: Final = "bench"
BEARER: Final = "sk-bench-4f1c3a7e9d2b8056"
"""What the HTTP callers send along; LiteLLM does not start without a key. It opens nothing but a run of its own."""
_POINTS: Final = 60
_MINUTE_S: Final = 60

PAYLOAD: Final = json.dumps(
    {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Say whether the text is fit to be published, in one word."},
            {"role": "user", "content": "The parcel came two days late, and nobody told us. " * 16},
        ],
        "temperature": 0,
        "max_tokens": 8,
    }
)
ANSWER: Final = json.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 190, "completion_tokens": 1, "total_tokens": 191},
    }
)


def policy(rules: int) -> dict[str, Any]:
    """A policy document with so many rules, of every kind, none of which is true here: the longest way through."""
    never: list[dict[str, Any]] = [
        {"path": "/realtime/chat"},
        {"all": [{"priority": "low"}, {"signal": "hot"}]},
        {"bytes": {"above": "2MB"}},
        {"content_type": "image/*"},
        {"load": {"lane": "dedicated", "above": 0.8}},
    ]
    hot = {"above": 85, "for": "5m", "until_below": 70, "until_for": "3m"}
    return {
        "schema": "inferlane/policy/v1",
        "version": VERSION,
        "defaults": {"order": ["dedicated", "serverless"]},
        "tiers": {"standard": {"max_priority": "normal"}},
        "tenants": [{"api_key": "demo-*", "tenant": "demo", "tier": "standard", "cost_center": "demo"}],
        "signals": {"hot": {"lane": "dedicated", "metric": "cpu_percent", **hot}},
        "rules": [
            {"id": f"r{i}", "when": {"all": [never[i % len(never)], {"tenant": f"t{i}"}]}, "order": ["serverless"]}
            for i in range(rules)
        ],
    }


def topology() -> dict[str, Any]:
    """A topology document: the growth stage's two lanes."""
    dedicated = {
        "kind": "dedicated",
        "endpoint": ENDPOINT,
        "variant": "AllTraffic",
        "instance_type": "ml.g5.xlarge",
        "vcpus": 4,
        "gpus": 1,
        "min_instances": 1,
        "max_instances": 4,
        "slots_per_instance": 4,
        "max_bytes": 6291456,
        "timeout_s": 60,
        "usd_per_instance_hour": 1.408,
    }
    serverless = {
        "kind": "serverless",
        "endpoint": "inferlane-bench-moderation-serverless",
        "memory_mb": 4096,
        "max_concurrency": 20,
        "max_bytes": 4194304,
        "timeout_s": 60,
        "usd_per_s": 0.00008,
    }
    lanes = {"dedicated": dedicated, "serverless": serverless}
    return {"schema": "inferlane/topology/v1", "region": "us-east-1", "models": {MODEL: {"lanes": lanes}}}


def minutes(now: float) -> list[float]:
    """The stamps of the last hour's finished one-minute points, oldest first."""
    newest = now // _MINUTE_S * _MINUTE_S - _MINUTE_S
    return [newest - _MINUTE_S * back for back in reversed(range(_POINTS))]


def cpu_percent(index: int) -> float:
    """A load that keeps the signal busy without turning it."""
    return 60.0 + 20.0 * (index % 2)


def snapshot(now: float) -> dict[str, Any]:
    """A snapshot document of that hour."""
    points = [[_iso(stamp), cpu_percent(index)] for index, stamp in enumerate(minutes(now))]
    lane = {"series": {"cpu_percent": points}, "instances": 1, "in_flight": 1, "breaker": "closed"}
    document = {"taken_at": _iso(now - 5), "models": {MODEL: {"lanes": {"dedicated": lane}}}}
    return {"schema": "inferlane/snapshot/v1", **document}


def request() -> dict[str, Any]:
    """A request document with a wish."""
    return {
        "schema": "inferlane/request/v1",
        "id": "r-1",
        "method": "POST",
        "path": PATH,
        "headers": {"x-inferlane-priority": "low"},
        "content_type": "application/json",
        "bytes": len(PAYLOAD),
        "identity": {"kind": "api_key", "key_id": "demo-app"},
    }


def event() -> dict[str, Any]:
    """The same request as the gateway hands it to Lambda (HTTP API, payload format 2.0)."""
    headers = {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "content-length": str(len(PAYLOAD)),
        "content-type": "application/json",
        "host": "id.execute-api.us-east-1.amazonaws.com",
        "user-agent": "bench/1",
        "x-amzn-trace-id": "Root=1-65000000-000000000000000000000000",
        "x-forwarded-for": "192.0.2.1",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
        "x-inferlane-priority": "low",
    }
    http = {"method": "POST", "path": PATH, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "bench/1"}
    return {
        "version": "2.0",
        "routeKey": "ANY /{proxy+}",
        "rawPath": PATH,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "id",
            "authorizer": {"lambda": {"key_id": "demo-app"}},
            "domainName": "id.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "id",
            "http": http,
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /{proxy+}",
            "stage": "$default",
            "time": "30/Nov/2026:12:40:00 +0000",
            "timeEpoch": 1796042400000,
        },
        "body": PAYLOAD,
        "isBase64Encoded": False,
    }


def _iso(stamp: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))
