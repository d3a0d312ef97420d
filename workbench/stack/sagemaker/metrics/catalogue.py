"""The CloudWatch metrics that lanes and jobs publish: namespace, name, unit, dimensions, resolution.

As the developer guide has them ("Monitor with CloudWatch", "Monitor a serverless endpoint", "Monitor an asynchronous
endpoint"), also where it errs in spelling (InvocationsProcesssed). Not here, for what they measure is not emulated:
multi-model endpoints, inference components, explanations, detailed observability.
"""

from __future__ import annotations

from dataclasses import dataclass

INFERENCE = "AWS/SageMaker"
HARDWARE = "/aws/sagemaker/Endpoints"
TRANSFORM = "/aws/sagemaker/TransformJobs"
VARIANT = ("EndpointName", "VariantName")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    namespace: str
    name: str
    unit: str
    dimensions: tuple[str, ...] = VARIANT
    high_resolution: bool = False
    """Published every ten seconds, whatever the period of the others."""


def _inference(name: str, unit: str = "None") -> Metric:
    return Metric(INFERENCE, name, unit)


def _hardware(name: str) -> Metric:
    return Metric(HARDWARE, name, "Percent")


def _job(name: str) -> Metric:
    return Metric(TRANSFORM, name, "Percent", ("Host",))


def _endpoint(name: str, unit: str) -> Metric:
    return Metric(INFERENCE, name, unit, ("EndpointName",))


INVOCATIONS = _inference("Invocations")
INVOCATIONS_PER_INSTANCE = _inference("InvocationsPerInstance")
ERRORS_4XX = _inference("Invocation4XXErrors")
ERRORS_5XX = _inference("Invocation5XXErrors")
MODEL_ERRORS = _inference("InvocationModelErrors")
MODEL_LATENCY = _inference("ModelLatency", "Microseconds")
OVERHEAD_LATENCY = _inference("OverheadLatency", "Microseconds")
MODEL_SETUP_TIME = _inference("ModelSetupTime", "Microseconds")
CONCURRENT_REQUESTS = Metric(INFERENCE, "ConcurrentRequestsPerModel", "None", high_resolution=True)

SERVERLESS_UTILIZATION = _inference("ServerlessConcurrentExecutionsUtilization")
PROVISIONED_EXECUTIONS = _inference("ServerlessProvisionedConcurrencyExecutions", "Count")
PROVISIONED_UTILIZATION = _inference("ServerlessProvisionedConcurrencyUtilization")
PROVISIONED_INVOCATIONS = _inference("ServerlessProvisionedConcurrencyInvocations", "Count")
SPILLOVER_INVOCATIONS = _inference("ServerlessProvisionedConcurrencySpilloverInvocations", "Count")

CPU = _hardware("CPUUtilization")
MEMORY = _hardware("MemoryUtilization")
DISK = _hardware("DiskUtilization")
GPU = _hardware("GPUUtilization")
GPU_MEMORY = _hardware("GPUMemoryUtilization")

JOB_CPU = _job("CPUUtilization")
JOB_MEMORY = _job("MemoryUtilization")
JOB_GPU = _job("GPUUtilization")
JOB_GPU_MEMORY = _job("GPUMemoryUtilization")

BACKLOG = _endpoint("ApproximateBacklogSize", "Count")
BACKLOG_PER_INSTANCE = _endpoint("ApproximateBacklogSizePerInstance", "Count")
OLDEST_REQUEST = _endpoint("ApproximateAgeOfOldestRequest", "Seconds")
BACKLOG_WITHOUT_CAPACITY = _endpoint("HasBacklogWithoutCapacity", "Count")
PROCESSED = _inference("InvocationsProcesssed", "Count")
DOWNLOAD_FAILURES = _inference("RequestDownloadFailures", "Count")
UPLOAD_FAILURES = _inference("ResponseUploadFailures", "Count")
NOTIFICATION_FAILURES = _inference("NotificationFailures", "Count")
EXPIRED_REQUESTS = _inference("ExpiredRequests", "Count")
INVOCATION_FAILURES = _inference("InvocationFailures", "Count")
DOWNLOAD_LATENCY = _inference("RequestDownloadLatency", "Microseconds")
UPLOAD_LATENCY = _inference("ResponseUploadLatency", "Microseconds")
TIME_IN_BACKLOG = _inference("TimeInBacklog", "Milliseconds")
TOTAL_PROCESSING_TIME = _inference("TotalProcessingTime", "Milliseconds")
