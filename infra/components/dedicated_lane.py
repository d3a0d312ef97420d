"""The dedicated lane: a real-time endpoint on instances of its own, scaled by demand, updated behind a guardrail.

It grows with what is asked of the model, not with what it happens to be given: its own concurrency counts requests
that wait and not those that were spilled, so it overshoots (docs/decisions/0005-scaling-on-demand.md).

An update brings a second fleet up beside the old one. From two instances on, half of the new fleet takes traffic
first (a canary may be at most half the fleet, so one instance cannot have one); if the rollback alarm rings while the
new fleet bakes, SageMaker returns to the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import metrics, naming
from infra.components.model_package import ModelPackage
from infra.components.served_model import ServedModel, ServedModelArgs
from infra.config import DedicatedConfig
from infra.images import Image

TARGET_USE = 0.7
"""Scale out at 70 % of the slots: a new instance takes minutes, and what arrives meanwhile needs the rest."""
BUSY_SLOTS = "IF(calls > 0, demand / PERIOD(demand) * shares / calls, 0)"
"""Slots that the demand on the model would keep busy on each instance.

`shares / calls` is 1/N: SageMaker counts 1 in Invocations and 1/N in InvocationsPerInstance for each request that one
of N instances takes, and publishes no number of instances. Zeros come from an idle endpoint too, so one that is given
nothing shrinks; a minute with calls but no demand (no service time known yet) says nothing, and moves nothing."""
SCALE_OUT_COOLDOWN_S = 60
SCALE_IN_COOLDOWN_S = 300
"""Application Auto Scaling's own default; an instance that just started is not taken away at once."""
ROLLBACK_ERROR_SHARE = 0.05
"""A new fleet that answers more than one request in twenty with a 5xx is worse than the old one."""
CANARY_PERCENT = 50
STARTUP_TIMEOUT_S = 600
"""For the artifact's download and for the first good `/ping`; a broken container fails the update, not the hour."""


@dataclass(frozen=True)
class DedicatedLaneArgs:
    """A model's package and the instances it runs on."""

    stack: str
    model: str
    config: DedicatedConfig
    package: ModelPackage
    image: Image
    log_retention_days: int
    tags: Mapping[str, str]


class DedicatedLane(pulumi.ComponentResource):
    """A real-time endpoint with its alarm and its autoscaling."""

    endpoint: aws.sagemaker.Endpoint

    def __init__(self, name: str, args: DedicatedLaneArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:DedicatedLane", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        endpoint_name = naming.endpoint_name(args.stack, args.model, "dedicated")
        served = ServedModel(
            name,
            ServedModelArgs(
                endpoint=endpoint_name,
                package=args.package,
                image=args.image,
                workers=args.config.slots_per_instance,
                max_queue_ms=args.config.max_queue_ms,
                log_retention_days=args.log_retention_days,
                tags=args.tags,
            ),
            opts=here,
        )
        alarm = _error_alarm(f"{name}-errors", endpoint_name, args.tags, here)
        variant = _variant(args.config)
        configuration = aws.sagemaker.EndpointConfiguration(
            f"{name}-config",
            name=served.model_name.apply(lambda model: naming.hashed_name(endpoint_name, {**variant, "model": model})),
            production_variants=[{**variant, "model_name": served.model_name}],
            tags=args.tags,
            opts=here,
        )
        self.endpoint = aws.sagemaker.Endpoint(
            f"{name}-endpoint",
            name=endpoint_name,
            endpoint_config_name=configuration.name,
            deployment_config=_guardrail(args.config, alarm),
            tags=args.tags,
            opts=here,
        )
        self._scale(name, args, here)
        self.register_outputs({"endpoint": self.endpoint.name})

    def _scale(self, name: str, args: DedicatedLaneArgs, opts: pulumi.ResourceOptions) -> None:
        target = aws.appautoscaling.Target(
            f"{name}-scaling",
            service_namespace="sagemaker",
            scalable_dimension="sagemaker:variant:DesiredInstanceCount",
            resource_id=pulumi.Output.concat("endpoint/", self.endpoint.name, "/variant/", naming.VARIANT),
            min_capacity=args.config.min_instances,
            max_capacity=args.config.max_instances,
            tags=args.tags,
            opts=opts,
        )
        aws.appautoscaling.Policy(
            f"{name}-scaling-policy",
            name=f"{naming.endpoint_name(args.stack, args.model, 'dedicated')}-demand",
            policy_type="TargetTrackingScaling",
            service_namespace=target.service_namespace,
            scalable_dimension=target.scalable_dimension,
            resource_id=target.resource_id,
            target_tracking_scaling_policy_configuration={
                "customized_metric_specification": {"metrics": _busy_slots(args)},
                "target_value": round(args.config.slots_per_instance * TARGET_USE, 2),
                "scale_out_cooldown": SCALE_OUT_COOLDOWN_S,
                "scale_in_cooldown": SCALE_IN_COOLDOWN_S,
            },
            opts=opts,
        )


_Query = aws.appautoscaling.PolicyTargetTrackingScalingPolicyConfigurationCustomizedMetricSpecificationMetricArgsDict


def _busy_slots(args: DedicatedLaneArgs) -> list[_Query]:
    """The queries behind `BUSY_SLOTS`; only the expression itself is tracked."""
    endpoint = naming.endpoint_name(args.stack, args.model, "dedicated")
    variant = {"EndpointName": endpoint, "VariantName": naming.VARIANT}
    return [
        _sum("demand", metrics.NAMESPACE, metrics.DEMAND_S, metrics.of_model(args.stack, args.model)),
        _sum("calls", "AWS/SageMaker", "Invocations", variant),
        _sum("shares", "AWS/SageMaker", "InvocationsPerInstance", variant),
        {"id": "busy", "expression": BUSY_SLOTS, "label": "busy slots an instance", "return_data": True},
    ]


def _sum(id_: str, namespace: str, metric: str, dimensions: Mapping[str, str]) -> _Query:
    return {
        "id": id_,
        "metric_stat": {
            "metric": {
                "namespace": namespace,
                "metric_name": metric,
                "dimensions": [{"name": name, "value": value} for name, value in sorted(dimensions.items())],
            },
            "stat": "Sum",
        },
        "return_data": False,
    }


def _variant(config: DedicatedConfig) -> aws.sagemaker.EndpointConfigurationProductionVariantArgsDict:
    """The production variant, all but its model."""
    return {
        "variant_name": naming.VARIANT,
        "instance_type": config.instance_type,
        "initial_instance_count": config.min_instances,
        "initial_variant_weight": 1,
        "container_startup_health_check_timeout_in_seconds": STARTUP_TIMEOUT_S,
        "model_data_download_timeout_in_seconds": STARTUP_TIMEOUT_S,
        "routing_configs": [{"routing_strategy": "LEAST_OUTSTANDING_REQUESTS"}],
    }


def _error_alarm(
    name: str, endpoint_name: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> aws.cloudwatch.MetricAlarm:
    """Speaks of the endpoint by its stable name, so that it stands before the endpoint that names it."""
    return aws.cloudwatch.MetricAlarm(
        name,
        name=f"{endpoint_name}-errors",
        alarm_description=f"More than {ROLLBACK_ERROR_SHARE:.0%} of the answers of {endpoint_name} are 5xx",
        namespace="AWS/SageMaker",
        metric_name="Invocation5XXErrors",
        dimensions={"EndpointName": endpoint_name, "VariantName": naming.VARIANT},
        statistic="Average",  # 0 or 1 per request: the average is the share of errors
        comparison_operator="GreaterThanThreshold",
        threshold=ROLLBACK_ERROR_SHARE,
        period=60,
        evaluation_periods=2,
        treat_missing_data="notBreaching",
        tags=tags,
        opts=opts,
    )


def _guardrail(
    config: DedicatedConfig, alarm: aws.cloudwatch.MetricAlarm
) -> aws.sagemaker.EndpointDeploymentConfigArgsDict:
    """Blue/green, bake time, rollback. A canary's limit: developer guide, deployment-guardrails-blue-green-canary."""
    traffic: aws.sagemaker.EndpointDeploymentConfigBlueGreenUpdatePolicyTrafficRoutingConfigurationArgsDict = {
        "type": "ALL_AT_ONCE",
        "wait_interval_in_seconds": config.bake_s,
    }
    if config.min_instances > 1:
        traffic["type"] = "CANARY"
        traffic["canary_size"] = {"type": "CAPACITY_PERCENT", "value": CANARY_PERCENT}
    return {
        "auto_rollback_configuration": {"alarms": [{"alarm_name": alarm.name}]},
        "blue_green_update_policy": {
            "traffic_routing_configuration": traffic,
            "termination_wait_in_seconds": config.bake_s,
            # The fleet's start-up and both waits, with room to roll back.
            "maximum_execution_timeout_in_seconds": 3 * STARTUP_TIMEOUT_S + 2 * config.bake_s,
        },
    }
