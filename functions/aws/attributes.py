"""Values as DynamoDB attribute values. Times are whole milliseconds, as in indexes and cursors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Value = Mapping[str, Any]
"""`{"S": "text"}` and its like, as boto3's client has them."""
Item = Mapping[str, Value]


def millis(seconds: float) -> int:
    """Unix milliseconds of Unix seconds."""
    return round(seconds * 1000)


def stamp(seconds: float) -> dict[str, Any]:
    """A time."""
    return {"N": str(millis(seconds))}


def seconds(value: Value) -> float:
    """The time that `stamp` wrote."""
    return int(value["N"]) / 1000


def text(value: str) -> dict[str, Any]:
    """A text."""
    return {"S": value}


def integer(value: int) -> dict[str, Any]:
    """A whole number."""
    return {"N": str(value)}


def decimal(value: float) -> dict[str, Any]:
    """Any other, to twelve digits: amounts of money and counts need no more."""
    return {"N": f"{value:.12g}"}


def given(**values: Value | None) -> dict[str, Value]:
    """Those that there are."""
    return {name: value for name, value in values.items() if value is not None}


def optional_text(value: str | None) -> dict[str, Any] | None:
    """A text, if there is one."""
    return None if value is None else text(value)


def text_of(item: Item, name: str) -> str | None:
    """The text of that name, if there is one."""
    found = item.get(name)
    return None if found is None else str(found["S"])
