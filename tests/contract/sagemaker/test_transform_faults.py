"""Faults of transform jobs over HTTP: each is seen as the service shows it, and ends when it is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import Aws, Emulator
from tests.contract.sagemaker.test_transform import Jobs, summing  # noqa: F401 - a fixture


@pytest.fixture
def jobs(summing: Emulator, aws: Aws, request: pytest.FixtureRequest) -> Iterator[Jobs]:  # noqa: F811
    """Jobs under the test's own name, over three objects; faults end with the test."""
    made = Jobs(summing, aws, request.node.name.removeprefix("test_").replace("_", "-"))
    made.put(a_csv=b"1,2\n", b_csv=b"3,4\n", c_csv=b"5,6\n")
    yield made
    summing.admin("DELETE", "/faults")


def fault(jobs: Jobs, kind: str, **params: float) -> str:
    """Put a fault on the test's jobs; returns its id."""
    made = jobs.emulator.admin("POST", "/faults", {"jobs": f"{jobs.name}-*", "kind": kind, "params": params})
    return str(made["id"])


def test_the_service_fails(jobs: Jobs) -> None:
    """An internal error after one object: its output stays, the reason is the service's; the next job is well."""
    fault(jobs, "internal", after_files=1, times=1)
    seen = jobs.done(jobs.create("first"))
    assert seen["TransformJobStatus"] == "Failed"
    assert seen["FailureReason"] == "InternalServerError: We encountered an internal error.  Please try again."
    assert jobs.stored("first") == {"a.csv.out": b"3\n"}
    assert jobs.done(jobs.create("second"))["TransformJobStatus"] == "Completed"


def test_no_capacity(jobs: Jobs) -> None:
    """A job without instances is Failed and has never started."""
    listed = fault(jobs, "capacity")
    seen = jobs.done(jobs.create("job"))
    assert (seen["TransformJobStatus"], "TransformStartTime" in seen) == ("Failed", False)
    assert seen["FailureReason"].startswith("CapacityError: Unable to provision requested ML compute capacity.")
    (row,) = jobs.emulator.admin("GET", "/faults")["faults"]
    assert (row["id"], row["met"]) == (listed, [f"{jobs.name}-job"])
    assert jobs.emulator.admin("DELETE", f"/faults/{listed}") == {"cleared": [listed]}


def test_objects_by_the_models_fault(jobs: Jobs) -> None:
    """Objects that fail by the model have no output, and the job says how many failed and which was the first."""
    fault(jobs, "algorithm")
    seen = jobs.done(jobs.create("job"))
    assert seen["FailureReason"].startswith("AlgorithmError: See job logs for more information.")
    assert "3 of 3 objects failed" in seen["FailureReason"]
    assert jobs.stored("job") == {}


def test_somebody_stops_it(jobs: Jobs) -> None:
    """A job that is stopped is Stopped, and keeps what was through."""
    fault(jobs, "stop", after_files=2)
    seen = jobs.done(jobs.create("job"))
    assert (seen["TransformJobStatus"], "FailureReason" in seen) == ("Stopped", False)
    assert set(jobs.stored("job")) == {"a.csv.out", "b.csv.out"}


def test_predictions_fail(jobs: Jobs) -> None:
    """A prediction that fails is tried again as often as the job has it; one that goes on failing fails its object."""
    fault(jobs, "errors", percent=100, status=503, times=1)
    options: dict[str, Any] = {"ModelClientConfig": {"InvocationsMaxRetries": 1}}
    seen = jobs.done(jobs.create("first", **options))
    assert "Bad HTTP status received from algorithm: 503" in seen["FailureReason"]
    assert jobs.done(jobs.create("second", **options))["TransformJobStatus"] == "Completed"


def test_no_room(jobs: Jobs) -> None:
    """CreateTransformJob finds the quota used up, in the quota's own words; after so many times it does not."""
    fault(jobs, "limit", times=1)
    with pytest.raises(ClientError) as refused:
        jobs.create("job")
    error = refused.value.response["Error"]
    assert error["Code"] == "ResourceLimitExceeded"
    assert "'ml.m5.large for transform job usage'" in error["Message"]
    assert jobs.done(jobs.create("job"))["TransformJobStatus"] == "Completed"


def test_calls_are_throttled(jobs: Jobs) -> None:
    """A throttled call is tried again by the SDK, so that a few of them go unseen."""
    fault(jobs, "throttle", times=2)
    assert jobs.done(jobs.create("job"))["TransformJobStatus"] == "Completed"
    (row,) = jobs.emulator.admin("GET", "/faults")["faults"]
    assert row["met"] == [f"{jobs.name}-job"]


def test_slow(jobs: Jobs) -> None:
    """Predictions take as much longer as is asked for."""
    fault(jobs, "slow", ms=400)
    seen = jobs.done(jobs.create("job", MaxConcurrentTransforms=1))
    assert (seen["TransformEndTime"] - seen["TransformStartTime"]).total_seconds() > 1.2
