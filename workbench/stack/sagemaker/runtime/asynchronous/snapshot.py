"""Asynchronous requests as documents and back: what outlives the process. Pure.

A request that was taken is served, if not by this process then by the next: one that was being served when the process
ended is served again from its beginning, so its model may see it twice. Time goes on meanwhile, and with it a request's
patience.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.runtime.asynchronous.request import Request


def save(request: Request) -> Mapping[str, Any]:
    """As JSON."""
    body = None if request.body is None else base64.b64encode(request.body).decode()
    return {**asdict(request), "body": body, "queued": None}


def load(document: Mapping[str, Any], clock: Clock, now: float) -> Request:
    """The request of `save`; `now` is the wall clock's time."""
    body = None if document["body"] is None else base64.b64decode(document["body"])
    waited = (now - document["received"]) * clock.scale
    return Request(**{**document, "body": body, "queued": clock.now() - waited})
