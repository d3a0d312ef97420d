"""The event stream in which InvokeEndpointWithResponseStream answers: `application/vnd.amazon.eventstream`. Pure.

A message is a prelude (total length, length of the headers, both big-endian 32-bit, and their CRC-32), headers, a
payload, and the CRC-32 of all that came before. A header is its name (one byte of length), a type byte (7: string) and
its value (two bytes of length). What a message is, its headers say: `:message-type` event, with `:event-type`, or
exception, with `:exception-type`. The members of ResponseStream are botocore's: PayloadPart (its payload is the bytes
themselves), ModelStreamError and InternalStreamFailure (JSON).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Literal

CONTENT_TYPE = "application/vnd.amazon.eventstream"
StreamErrorCode = Literal["ModelInvocationTimeExceeded", "StreamBroken"]
_STRING = 7
_CRC_BYTES = 4


def payload_part(content: bytes) -> bytes:
    """A part of the model's answer."""
    headers = {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}
    return message(headers, content)


def model_stream_error(code: StreamErrorCode, text: str) -> bytes:
    """The model's answer has ended too early; nothing follows."""
    return _exception("ModelStreamError", {"Message": text, "ErrorCode": code})


def internal_stream_failure(text: str) -> bytes:
    """The stream has ended for no fault of the model's; nothing follows."""
    return _exception("InternalStreamFailure", {"Message": text})


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message."""
    encoded = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", 2 * 4 + _CRC_BYTES + len(encoded) + len(payload) + _CRC_BYTES, len(encoded))
    head = lengths + struct.pack("!I", zlib.crc32(lengths)) + encoded
    return head + payload + struct.pack("!I", zlib.crc32(payload, zlib.crc32(head)))


def _exception(name: str, members: Mapping[str, str]) -> bytes:
    headers = {":message-type": "exception", ":exception-type": name, ":content-type": "application/json"}
    return message(headers, json.dumps(members).encode())


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + struct.pack("!BH", _STRING, len(text)) + text
