"""Events of AWS's own services on the offline bus: what a service publishes, and no customer may.

MiniStack refuses PutEvents with a source `aws.*`, as AWS does of customers, and lets only its own services publish such
events. Our SageMaker emulator is one more of them: it marks its calls with the header `X-Inferlane-Service`, and a call
that is marked passes as a service's. One of the files that know MiniStack's internals: one function is wrapped, which a
contract test holds.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

HEADER = b"x-inferlane-service"
_marked: ContextVar[bool] = ContextVar("marked", default=False)


def admit_services(app: Any) -> Any:
    """MiniStack's ASGI app, with marked calls taken for a service's."""
    from ministack.services import eventbridge

    put_events = eventbridge._put_events

    def put(data: Any, allow_aws_source: bool = False) -> Any:
        return put_events(data, allow_aws_source or _marked.get())

    eventbridge._put_events = put

    async def marking(scope: Any, receive: Any, send: Any) -> None:
        headers = scope.get("headers", ()) if scope["type"] == "http" else ()
        token = _marked.set(any(name.lower() == HEADER for name, _ in headers))
        try:
            await app(scope, receive, send)
        finally:
            _marked.reset(token)

    return marking
