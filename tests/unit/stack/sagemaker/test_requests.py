"""Asynchronous requests as documents and back."""

from __future__ import annotations

import json

from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.records import Asynchronous
from workbench.stack.sagemaker.runtime.asynchronous import snapshot
from workbench.stack.sagemaker.runtime.asynchronous.request import Ids, accepted


def test_a_request_comes_back_and_its_patience_went_on() -> None:
    """Bytes that are no text and all places are as they were; what it has waited counts in emulated time."""
    config = Asynchronous(output_path="s3://b/answers", failure_path="s3://b/failures")
    parameters = {"ContentType": "application/octet-stream", "RequestTTLSeconds": 600}
    request = accepted("e", parameters, b"\xff\x00", config, Ids("inference", "file"), (1000.0, 5000.0))
    document = json.loads(json.dumps(snapshot.save(request)))
    clock = Clock(60.0, origin=2000.0)
    again = snapshot.load(document, clock, now=1003.0)
    assert (again.body, again.parameters, again.output) == (request.body, request.parameters, request.output)
    assert (again.key, again.ttl_s, again.failure) == ("file", 600, "s3://b/failures/file-error.out")
    assert abs(clock.now() - again.queued - 3.0 * 60) < 1.0
