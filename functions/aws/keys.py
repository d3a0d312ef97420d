"""DynamoDB as a `KeyStore`: one strongly consistent read of the row whose key is the API key's hash."""

from __future__ import annotations

from typing import Final

from functions.aws.direct import Items
from functions.ports import KeyRecord

_NO: Final = {"BOOL": False}


class KeyTableError(Exception):
    """A row of the keys table is malformed."""


class DynamoKeys:
    """API keys in one table (see `settings.AuthorizerSettings`)."""

    def __init__(self, items: Items, table: str) -> None:
        """Nothing is asked before the first look-up."""
        self._items = items
        self._table = table

    def find(self, key_hash: str) -> KeyRecord | None:
        """The key (see `ports.KeyStore`). A consistent read, so that a disabled key stops at once."""
        asked = {"TableName": self._table, "Key": {"key_hash": {"S": key_hash}}, "ConsistentRead": True}
        row = self._items.get_item(**asked).get("Item")
        if row is None:
            return None
        key_id = row.get("key_id", {}).get("S")
        if not key_id:
            raise KeyTableError("a row of the keys table has no key_id")
        # Written by hand in another type, or as anything else, it still means that somebody wants the key to stop.
        return KeyRecord(key_id, row.get("disabled", _NO) not in (_NO, {"NULL": True}))
