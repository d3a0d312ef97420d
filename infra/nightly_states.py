"""The nightly recheck as a state machine: prepare, transform, wait, report (Amazon States Language, JSONPath).

`prepare` says what the night is about and gives the whole transform job; a job of that name that exists already is as
good as a new one, so an execution may be started again for any day, at any time. What AWS asks to do later is done
later, for hours if need be: it is night. A transform job that fails ends the execution as failed; nothing is reported
of half a day.
"""

from __future__ import annotations

import json
from typing import Final

TIMEOUT_S: Final = 12 * 3600
"""What is not done by noon is looked at by people."""
TRANSFORM: Final = (
    *("TransformJobName", "ModelName", "BatchStrategy", "MaxPayloadInMB", "MaxConcurrentTransforms"),
    *("TransformInput", "TransformOutput", "TransformResources", "Tags"),
)
"""What `prepare` says of the transform job; nothing else reaches SageMaker."""
_LAMBDA_TRIES: Final = {
    "ErrorEquals": [
        *("Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException"),
        *("Lambda.TooManyRequestsException", "States.Timeout"),
    ],
    "IntervalSeconds": 10,
    "BackoffRate": 2.0,
    "MaxAttempts": 3,
}
_THROTTLES: Final = ["SageMaker.ThrottlingException", "SageMaker.SageMakerException"]
_QUOTA: Final = ["SageMaker.ResourceLimitExceededException", "SageMaker.ResourceLimitExceeded"]
_EXISTS: Final = ["SageMaker.ResourceInUseException", "SageMaker.ResourceInUse"]
"""Step Functions names an error after the SDK's exception class; both spellings are in use."""


def definition(prepare_arn: str, report_arn: str, pause_s: int) -> str:
    """The state machine's definition, as JSON; the functions by the ARN of their aliases."""
    states = {
        "Prepare": _function(prepare_arn, "Chosen"),
        "Chosen": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.outcome", "StringEquals": "prepared", "Next": "Start"},
                {"Variable": "$.outcome", "StringEquals": "unchanged", "Next": "Unchanged"},
            ],
            "Default": "NothingCaptured",
        },
        "NothingCaptured": {"Type": "Succeed"},
        "Unchanged": {"Type": "Succeed"},
        "Start": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:createTransformJob",
            "Parameters": {f"{name}.$": f"$.transform.{name}" for name in TRANSFORM},
            "ResultPath": None,
            "Retry": [
                {
                    "ErrorEquals": [*_QUOTA, *_THROTTLES],
                    "IntervalSeconds": 60,
                    "BackoffRate": 1.5,
                    "MaxDelaySeconds": 900,
                    "MaxAttempts": 40,
                }
            ],
            "Catch": [{"ErrorEquals": _EXISTS, "ResultPath": None, "Next": "Pause"}],
            "Next": "Pause",
        },
        "Pause": {"Type": "Wait", "Seconds": pause_s, "Next": "Look"},
        "Look": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:describeTransformJob",
            "Parameters": {"TransformJobName.$": "$.job_name"},
            # The reason of a failure is not always there, and a path to nothing would fail the execution.
            "ResultSelector": {"status.$": "$.TransformJobStatus"},
            "ResultPath": "$.job",
            "Retry": [{"ErrorEquals": _THROTTLES, "IntervalSeconds": 30, "BackoffRate": 1.5, "MaxAttempts": 20}],
            "Next": "Ended",
        },
        "Ended": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.job.status", "StringEquals": "Completed", "Next": "Report"},
                *(
                    {"Variable": "$.job.status", "StringEquals": status, "Next": "TransformFailed"}
                    for status in ("Failed", "Stopped")
                ),
            ],
            "Default": "Pause",
        },
        "TransformFailed": {
            "Type": "Fail",
            "Error": "TransformFailed",
            "CausePath": "States.Format('transform job {} has {}', $.job_name, $.job.status)",
        },
        "Report": _function(report_arn, "Reported"),
        "Reported": {"Type": "Succeed"},
    }
    document = {
        "Comment": "Rechecks a day's captured requests by a heavier model",
        "StartAt": "Prepare",
        "TimeoutSeconds": TIMEOUT_S,
        "States": states,
    }
    return json.dumps(document, sort_keys=True)


def _function(arn: str, then: str) -> dict[str, object]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": arn, "Payload.$": "$"},
        "OutputPath": "$.Payload",
        "Retry": [_LAMBDA_TRIES],
        "Next": then,
    }
