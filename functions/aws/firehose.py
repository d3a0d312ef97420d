"""Captured requests to Firehose, without an SDK: the router's connections and signatures serve for this as well."""

from __future__ import annotations

import base64
import json
import time
from typing import Final

from functions.aws.direct import Service

_HEADERS: Final = {
    "content-type": "application/x-amz-json-1.1",
    "x-amz-target": "Firehose_20150804.PutRecord",
}


class FirehoseSink:
    """A `CaptureSink` (see `ports`)."""

    def __init__(self, service: Service, stream: str) -> None:
        """`service` is Firehose; `stream` a delivery stream that takes direct puts."""
        self._service = service
        self._stream = stream

    def put(self, record: bytes, timeout_s: float) -> None:
        """One record, once: a record that was taken although the answer got lost would be there twice."""
        data = base64.b64encode(record).decode("ascii")
        body = json.dumps({"DeliveryStreamName": self._stream, "Record": {"Data": data}}).encode()
        self._service.call("POST", "/", _HEADERS, body, ends=time.monotonic() + timeout_s)
