"""How the list calls filter, order and page. Pure.

A page's token names the last item's sort key, so that items created or deleted between two pages neither repeat nor
hide others. Defaults are AWS's: newest first, 10 a page for SageMaker.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from workbench.stack.sagemaker.api.wire import Document, invalid

Item = TypeVar("Item")


def select(
    items: Sequence[Item],
    request: Document,
    *,
    name: Callable[[Item], str],
    created: Callable[[Item], float],
    modified: Callable[[Item], float] | None = None,
    status: Callable[[Item], str] | None = None,
) -> tuple[list[Item], str | None]:
    """One page of `items` as a List… request asks for it, and the next page's token."""
    kept = [i for i in items if request.get("NameContains", "").lower() in name(i).lower()]
    kept = _between(kept, request, "CreationTime", created)
    if modified is not None:
        kept = _between(kept, request, "LastModifiedTime", modified)
    if status is not None and "StatusEquals" in request:
        kept = [i for i in kept if status(i) == request["StatusEquals"]]
    keys: dict[str, Callable[[Item], Any]] = {"Name": name, "CreationTime": created}
    if status is not None:
        keys["Status"] = status
    chosen = keys[request.get("SortBy", "CreationTime")]
    descending = request.get("SortOrder", "Descending") == "Descending"
    return page(
        kept,
        key=lambda i: [chosen(i), name(i)],
        size=int(request.get("MaxResults", 10)),
        token=request.get("NextToken"),
        descending=descending,
    )


def page(
    items: Sequence[Item],
    *,
    key: Callable[[Item], list[Any]],
    size: int,
    token: str | None,
    descending: bool = False,
) -> tuple[list[Item], str | None]:
    """The `size` items after `token`'s in the order of `key`, and the next token (None on the last page)."""
    ordered = sorted(items, key=key, reverse=descending)
    if token:
        last = _decode(token)
        try:
            ordered = [i for i in ordered if (key(i) < last if descending else key(i) > last)]
        except TypeError as error:
            raise invalid("The NextToken belongs to another request.") from error
    head = ordered[:size]
    more = len(ordered) > size
    return head, _encode(key(head[-1])) if more else None


def _between(items: list[Item], request: Document, field: str, at: Callable[[Item], float]) -> list[Item]:
    after, before = request.get(f"{field}After"), request.get(f"{field}Before")
    if after is not None:
        limit = _epoch(after)
        # botocore on CreationTimeAfter: "greater than or equal to the specified time".
        items = [i for i in items if at(i) >= limit]
    if before is not None:
        limit = _epoch(before)
        items = [i for i in items if at(i) < limit]
    return items


def _epoch(value: float | str) -> float:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError as error:
            raise invalid(f"{value!r} is not a timestamp.") from error
    return float(value)


def _encode(key: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _decode(token: str) -> list[Any]:
    try:
        key = json.loads(base64.urlsafe_b64decode(token.encode()))
    except ValueError as error:
        raise invalid("The NextToken is invalid.") from error
    if not isinstance(key, list):
        raise invalid("The NextToken is invalid.")
    return key
