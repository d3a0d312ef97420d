"""The nightly recheck and capture as deployed: states, roles, clock, and where captures lie."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.nightly_settings import read_nightly
from functions.settings import read_router
from infra import nightly_states
from tests.infra.capture import REGION, Program, arn
from tests.infra.conftest import named, of_type, statements
from tests.infra.test_batch import DATA, granted, unlocks

NIGHTLY_JOBS = f"arn:aws:sagemaker:{REGION}:*:transform-job/inferlane-mature-nightly-*"
STATES: dict[str, Any] = json.loads(nightly_states.definition("prepare", "report", 30))["States"]


def leads_to(state: dict[str, Any]) -> set[str]:
    """The states that may follow one."""
    after = {state.get("Next"), state.get("Default")}
    after |= {each["Next"] for key in ("Choices", "Catch") for each in state.get(key, [])}
    return {name for name in after if name}


def test_every_state_is_reached_and_ends() -> None:
    """From the first state all others can be reached; each leads on to one that exists, or ends."""
    reached, ahead = set(), {"Prepare"}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= leads_to(STATES[name]) - reached

    assert reached == set(STATES)
    ends = {name for name, state in STATES.items() if not leads_to(state)}
    assert {STATES[name]["Type"] for name in ends} == {"Succeed", "Fail"}


def test_what_prepare_says_decides() -> None:
    """Nothing captured and nothing new end well, at once; a prepared day is transformed."""
    choices = {each["StringEquals"]: each["Next"] for each in STATES["Chosen"]["Choices"]}

    assert choices == {"prepared": "Start", "unchanged": "Unchanged"}
    assert STATES["Chosen"]["Default"] == "NothingCaptured"


def test_a_job_that_exists_is_waited_for() -> None:
    """An execution that is started again finds its transform job by name, and goes on as if it had begun it."""
    start = STATES["Start"]

    assert start["Parameters"]["TransformJobName.$"] == "$.transform.TransformJobName"
    (caught,) = start["Catch"]
    assert caught["ErrorEquals"][0] == "SageMaker.ResourceInUseException"
    assert (caught["Next"], caught["ResultPath"], start["ResultPath"]) == ("Pause", None, None)


def test_a_quota_is_waited_for_and_a_failure_is_not() -> None:
    """At the account's quota the job is asked for again for hours; a failed job ends the execution as failed."""
    (again,) = STATES["Start"]["Retry"]

    assert "SageMaker.ResourceLimitExceededException" in again["ErrorEquals"]
    assert again["MaxAttempts"] * again["MaxDelaySeconds"] > 4 * 3600
    ended = {each["StringEquals"]: each["Next"] for each in STATES["Ended"]["Choices"]}
    assert ended == {"Completed": "Report", "Failed": "TransformFailed", "Stopped": "TransformFailed"}
    assert STATES["Ended"]["Default"] == "Pause"
    assert STATES["TransformFailed"]["Type"] == "Fail"


def test_report_is_given_all_of_it() -> None:
    """The report's function sees the whole state, and its answer is the execution's."""
    for name, arn_ in (("Prepare", "prepare"), ("Report", "report")):
        assert STATES[name]["Parameters"] == {"FunctionName": arn_, "Payload.$": "$"}
        assert STATES[name]["OutputPath"] == "$.Payload"
    assert STATES["Look"]["ResultPath"] == "$.job"


def test_the_machine_calls_the_aliases(programs: dict[str, Program]) -> None:
    """The deployed definition names both functions by their alias, and says in a tag where the reports lie."""
    machine = named(programs["mature"], "nightly-machine")
    prepare, report = (arn("lambda", f"function:inferlane-mature-{name}:live") for name in ("prepare", "report"))

    assert json.loads(machine["definition"]) == json.loads(nightly_states.definition(prepare, report, 30))
    assert machine["tags"]["inferlane:bucket"] == "inferlane-mature-data-0a1b2c3"
    assert granted(programs["mature"], "nightly-grants") == {
        "lambda:InvokeFunction": {prepare, report},
        "sagemaker:CreateTransformJob": {
            NIGHTLY_JOBS,
            arn("sagemaker", f"model/{named(programs['mature'], 'moderation-heavy-batch-model')['name']}"),
        },
        "sagemaker:AddTags": {NIGHTLY_JOBS},
        "sagemaker:DescribeTransformJob": {NIGHTLY_JOBS},
    }


def test_prepare_reads_captures_and_report_writes_reports(programs: dict[str, Program]) -> None:
    """Each may write its own folder only; both may look at the night's transform jobs."""
    program = programs["mature"]
    prepare, report = granted(program, "prepare-grants"), granted(program, "report-grants")

    assert prepare["s3:GetObject"] == {f"{DATA}/capture/*", f"{DATA}/nightly/*"}
    assert prepare["s3:PutObject"] == {f"{DATA}/nightly/runs/*"}
    assert report["s3:GetObject"] == {f"{DATA}/nightly/*"}
    assert report["s3:PutObject"] == {f"{DATA}/nightly/reports/*"}
    assert prepare["sagemaker:DescribeTransformJob"] == report["sagemaker:DescribeTransformJob"] == {NIGHTLY_JOBS}
    assert "sns:Publish" not in report
    assert "sns:Publish" in granted(programs["mature-told"], "report-grants")


@pytest.mark.parametrize(("name", "memory_mb", "disk_mb"), [("prepare", 1024, 2048), ("report", 512, None)])
def test_the_functions_know_their_models(
    programs: dict[str, Program], name: str, memory_mb: int, disk_mb: int | None
) -> None:
    """Which model rechecks which, in which time zone, from which bucket; a day's captures fit on prepare's disk."""
    function = named(programs["mature"], f"{name}-function")
    read = read_nightly(function["environment"]["variables"] | {"AWS_REGION": REGION})

    assert (read.light_model, read.heavy_model, read.time_zone) == ("moderation", "moderation-heavy", "Asia/Shanghai")
    assert read.data_bucket == "inferlane-mature-data-0a1b2c3"
    assert (function["memorySize"], function["timeout"]) == (memory_mb, 900)
    assert function.get("ephemeralStorage", {}).get("size") == disk_mb


def test_the_night_begins_in_the_policys_time_zone(programs: dict[str, Program]) -> None:
    """At one in the morning there, by a role that may start this machine only."""
    program = programs["mature"]
    schedule = named(program, "nightly-schedule")

    assert (schedule["scheduleExpression"], schedule["scheduleExpressionTimezone"]) == (
        *("cron(0 1 * * ? *)", "Asia/Shanghai"),
    )
    machine = arn("states", "stateMachine:inferlane-mature-nightly")
    assert (schedule["target"]["arn"], schedule["target"]["input"]) == (machine, "{}")
    assert statements(program, "nightly-schedule-grants") == [
        {"Action": ["states:StartExecution"], "Resource": [machine]}
    ]


def test_the_stack_says_where_the_night_is(programs: dict[str, Program]) -> None:
    """What `inferlane nightly` asks a stack for."""
    assert programs["mature"]["exports"]["nightly"] == {
        "state_machine": arn("states", "stateMachine:inferlane-mature-nightly"),
        "bucket": "inferlane-mature-data-0a1b2c3",
        "models": ["moderation"],
        "timezone": "Asia/Shanghai",
    }


def test_captures_lie_by_model_and_day(programs: dict[str, Program]) -> None:
    """Firehose reads each line's model; days are the policy's; all of it is encrypted with the stack's key."""
    stream = named(programs["mature"], "capture-stream")
    s3 = stream["extendedS3Configuration"]

    assert s3["prefix"] == (
        "capture/model=!{partitionKeyFromQuery:model}/date=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/"
    )
    assert s3["errorOutputPrefix"].startswith("capture-errors/!{firehose:error-output-type}/")
    assert (s3["customTimeZone"], s3["bufferingInterval"], s3["compressionFormat"]) == ("Asia/Shanghai", 300, "GZIP")
    assert s3["dynamicPartitioningConfiguration"] == {"enabled": True}
    (processor,) = s3["processingConfiguration"]["processors"]
    assert {each["parameterName"]: each["parameterValue"] for each in processor["parameters"]} == {
        "JsonParsingEngine": "JQ-1.6",
        "MetadataExtractionQuery": "{model:.model}",
    }
    key = arn("kms", "key/key-1")
    assert stream["serverSideEncryption"]["keyArn"] == s3["kmsKeyArn"] == key


def test_firehose_may_write_captures_only(programs: dict[str, Program]) -> None:
    """Its role: both of its folders, and its own log; assumed for this stream only."""
    program = programs["mature"]

    assert granted(program, "capture-grants")["s3:PutObject"] == {f"{DATA}/capture/*", f"{DATA}/capture-errors/*"}
    assert unlocks(program, "capture-grants") == {"s3": {"kms:Decrypt", "kms:GenerateDataKey"}}
    (trust,) = json.loads(named(program, "capture-role")["assumeRolePolicy"])["Statement"]
    stream = f"arn:aws:firehose:{REGION}:*:deliverystream/inferlane-mature-capture"
    assert trust["Condition"] == {"ArnLike": {"aws:SourceArn": stream}}


def test_the_router_hands_over(programs: dict[str, Program]) -> None:
    """It knows the stream and may put single records there; without capture it knows none."""
    streams = {}
    for case in ("mature", "mature-plain"):
        variables = named(programs[case], "route-function")["environment"]["variables"]
        streams[case] = read_router(variables | {"AWS_REGION": REGION}).capture_stream

    assert streams == {"mature": "inferlane-mature-capture", "mature-plain": None}
    assert granted(programs["mature"], "route-grants")["firehose:PutRecord"] == {
        arn("firehose", "deliverystream/inferlane-mature-capture")
    }
    assert of_type(programs["mature-plain"], "FirehoseDeliveryStream") == []
