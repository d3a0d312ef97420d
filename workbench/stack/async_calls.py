"""Events and schedules call Lambda functions asynchronously, on the offline stack too: tried again, and not forgotten.

On AWS a function that EventBridge or Scheduler calls is tried three times (unless its configuration says another
number), and the event that failed goes to the destination of the version or alias that was called. MiniStack does so
for other callers; what these two call it tries once and forgets. Here they take the same way, with the configuration of
the alias that they name; the waits between the tries are seconds, not minutes (LAMBDA_ASYNC_RETRY_BASE_SECONDS).

One of the files that know MiniStack's internals: one function is replaced and five are used, which a contract test
holds.
"""

from __future__ import annotations

import json
from typing import Any


def retry_events() -> None:
    """Let functions that events and schedules call be tried again."""
    from ministack.services import eventbridge, lambda_svc

    unknown = eventbridge._dispatch_to_lambda

    def dispatch(arn: str, payload: str) -> None:
        record, config, _ = lambda_svc._get_func_record_for_ref(arn)
        if not record or not config:
            unknown(arn, payload)
            return
        _, qualifier = lambda_svc._lambda_function_name_and_qualifier_from_arn(arn)
        base, _, _ = lambda_svc._get_base_func_record_for_ref(arn)
        called: dict[str, Any] = lambda_svc._execution_record_for_config(record, config)
        called["event_invoke_config"] = lambda_svc._event_invoke_config(base or record, qualifier)
        lambda_svc.invoke_async_with_retry(called, _event(payload))

    eventbridge._dispatch_to_lambda = dispatch


def _event(payload: str) -> Any:
    try:
        return json.loads(payload)
    except ValueError:  # an input that is no JSON, as MiniStack hands it on
        return {"body": payload}
