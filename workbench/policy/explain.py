"""What the policy decides for a request, and why: the router's own `decide`, over files instead of a cloud."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from functions.core.decision import Decision
from functions.core.document import DocumentError, as_time
from functions.core.request import Request
from workbench.errors import UserError
from workbench.policy.document import one_line

NOW = "now"


def moment(text: str) -> float:
    """Unix seconds of an ISO 8601 time with its zone, or of this moment for `now`. Raises `UserError`."""
    if text == NOW:
        return time.time()
    try:
        return as_time(text, ("--at",))
    except DocumentError as error:
        raise UserError(one_line(f"{error}; or say `now`")) from None


def describe(decision: Decision, request: Request, at: float) -> str:
    """The decision for a person: who, which rule, each lane with its place or the reason against it."""
    lines = [f"{request.method} {request.path}  ({request.id}, {request.bytes} bytes, {_stamp(at)})"]
    if decision.tenant is not None:
        lines.append(f"  caller    {decision.tenant}, tier {decision.tier}{_priority(decision)}{_deadline(decision)}")
    hedged = ", hedged" if decision.hedge else ""
    lines.append(f"  rule      {decision.rule} of policy {decision.policy_version}{hedged}")
    if decision.unknown:
        lines.append(f"  unknown   {', '.join(decision.unknown)}: the metrics they ask for are missing or too old")
    for number, lane in enumerate(decision.order, 1):
        lines.append(f"  {number}. {lane:10} {_predicted(decision, lane)}".rstrip())
    lines += [f"  -  {item.lane:10} {item.reason}" for item in decision.rejected]
    if decision.shed is not None:
        again = "" if decision.shed.retry_after_s is None else f"; again after {decision.shed.retry_after_s} s"
        lines.append(f"  answered  {decision.shed.status}: {decision.shed.reason}{again}")
    if decision.latches:
        lines.append("  signals   " + ", ".join(f"{name} {_state(on)}" for name, on in decision.latches.items()))
    return "\n".join(one_line(line) for line in lines)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _priority(decision: Decision) -> str:
    if decision.granted is None:
        return ""
    if decision.asked is None or decision.asked == decision.granted:
        return f", priority {decision.granted.word}"
    return f", priority {decision.granted.word} ({decision.asked.word} asked)"


def _deadline(decision: Decision) -> str:
    if decision.async_:
        return f", answer within {decision.within_s:.0f} s" if decision.within_s is not None else ""
    return "" if decision.deadline_ms is None else f", deadline {decision.deadline_ms} ms"


def _predicted(decision: Decision, lane: str) -> str:
    found = decision.predicted.get(lane)
    if found is None:
        return ""
    p99 = "P99 unknown" if found.p99_ms is None else f"P99 {found.p99_ms:.0f} ms"
    return p99 if found.cost_usd is None else f"{p99}, ${found.cost_usd:.6f}"


def _state(on: bool | None) -> str:
    return "unknown" if on is None else "on" if on else "off"
