"""The HTTP API in front of the router: who may come in, how fast, and what is written down about it.

Two routes: `GET /healthz` is open and answers nothing but liveness; everything else needs a signed request (`iam`), an
API key (`api_key`) or a token of the configured issuer (`jwt`). There is no open mode. Access logs name the call, its
outcome and its times; neither keys, tokens nor signatures, addresses nor headers.

An alarm watches the share of calls that end in a 5xx, as the gateway counts them. The router's own count
(`observability`) has names for what failed, but a function that does not start, runs out of time, is throttled or has
no policy counts nothing at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import naming
from infra.components.key_auth import KeyAuth
from infra.components.lambda_function import LambdaFunction
from infra.components.observability import BAD_PERIODS, FEWEST_REQUESTS, PERIOD_S, PERIODS
from infra.config import AlarmsConfig, JwtConfig, ThrottleConfig

INTEGRATION_TIMEOUT_MS = 30_000
"""An HTTP API's limit, not adjustable."""
KEY_CACHE_S = 60
"""How long a looked-up key is believed, and so how long a withdrawn one still works."""
ACCESS_LOG = {
    "request_id": "$context.requestId",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "response_bytes": "$context.responseLength",
    "latency_ms": "$context.responseLatency",
    "integration_ms": "$context.integrationLatency",
    "integration_error": "$context.integrationErrorMessage",
    "authorizer_error": "$context.authorizer.error",
}


@dataclass(frozen=True)
class FrontDoorArgs:
    """What stands behind the door and who opens it."""

    stack: str
    route: LambdaFunction
    guard: KeyAuth | JwtConfig | None
    """Who vouches for a caller: a table of keys, an issuer of tokens, or AWS itself (None: signed requests)."""
    throttle: ThrottleConfig
    alarms: AlarmsConfig
    log_retention_days: int
    tags: Mapping[str, str]


class FrontDoor(pulumi.ComponentResource):
    """The HTTP API."""

    url: pulumi.Output[str]
    """Without a trailing slash."""

    def __init__(self, name: str, args: FrontDoorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:FrontDoor", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        api = aws.apigatewayv2.Api(
            f"{name}-api",
            name=f"{naming.PROJECT}-{args.stack}",
            description="Routes each inference request to the lane that should serve it",
            protocol_type="HTTP",
            tags=args.tags,
            opts=here,
        )
        integration = aws.apigatewayv2.Integration(
            f"{name}-integration",
            api_id=api.id,
            integration_type="AWS_PROXY",
            integration_method="POST",
            integration_uri=args.route.alias.invoke_arn,
            payload_format_version="2.0",
            timeout_milliseconds=INTEGRATION_TIMEOUT_MS,
            opts=here,
        )
        target = pulumi.Output.concat("integrations/", integration.id)
        routes = [
            aws.apigatewayv2.Route(
                f"{name}-healthz",
                api_id=api.id,
                route_key="GET /healthz",
                authorization_type="NONE",
                target=target,
                opts=here,
            ),
            self._guarded_route(f"{name}-proxy", api, target, args.guard),
        ]
        permission = args.route.may_be_called(f"{name}-calls-route", pulumi.Output.concat(api.execution_arn, "/*/*"))
        stage = self._stage(name, api, args, [*routes, permission])
        self._alarm(name, api, args)
        self.url = stage.invoke_url.apply(lambda url: url.rstrip("/"))
        self.register_outputs({"url": self.url})

    def _guarded_route(
        self, name: str, api: aws.apigatewayv2.Api, target: pulumi.Output[str], guard: KeyAuth | JwtConfig | None
    ) -> aws.apigatewayv2.Route:
        authorizer: aws.apigatewayv2.Authorizer | None = None
        first: list[pulumi.Resource] = []
        match guard:
            case None:
                kind = "AWS_IAM"
            case JwtConfig():
                kind, authorizer = "JWT", self._token_authorizer(name, api, guard)
            case KeyAuth():
                kind, authorizer = "CUSTOM", self._key_authorizer(name, api, guard)
                source = pulumi.Output.concat(api.execution_arn, "/authorizers/", authorizer.id)
                first = [guard.authorize.may_be_called(f"{name}-calls-authorize", source)]
        return aws.apigatewayv2.Route(
            name,
            api_id=api.id,
            route_key="ANY /{proxy+}",
            authorization_type=kind,
            authorizer_id=authorizer.id if authorizer else None,
            target=target,
            opts=pulumi.ResourceOptions(parent=self, depends_on=first),
        )

    def _key_authorizer(self, name: str, api: aws.apigatewayv2.Api, guard: KeyAuth) -> aws.apigatewayv2.Authorizer:
        return aws.apigatewayv2.Authorizer(
            f"{name}-authorizer",
            api_id=api.id,
            name="api-key",
            authorizer_type="REQUEST",
            authorizer_uri=guard.authorize.alias.invoke_arn,
            authorizer_payload_format_version="2.0",
            enable_simple_responses=True,
            identity_sources=["$request.header.x-api-key"],
            authorizer_result_ttl_in_seconds=KEY_CACHE_S,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _token_authorizer(self, name: str, api: aws.apigatewayv2.Api, guard: JwtConfig) -> aws.apigatewayv2.Authorizer:
        """The gateway itself checks signature, issuer, audience and times; the router only sees proven claims."""
        return aws.apigatewayv2.Authorizer(
            f"{name}-authorizer",
            api_id=api.id,
            name="jwt",
            authorizer_type="JWT",
            identity_sources=["$request.header.Authorization"],
            jwt_configuration={"issuer": guard.issuer, "audiences": guard.audience},
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _stage(
        self, name: str, api: aws.apigatewayv2.Api, args: FrontDoorArgs, first: list[pulumi.Resource]
    ) -> aws.apigatewayv2.Stage:
        logs = aws.cloudwatch.LogGroup(
            f"{name}-access-logs",
            # Under /aws/vendedlogs/ the account's log resource policy does not grow with every API.
            name=f"/aws/vendedlogs/apigateway/{naming.PROJECT}-{args.stack}",
            retention_in_days=args.log_retention_days,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return aws.apigatewayv2.Stage(
            f"{name}-stage",
            api_id=api.id,
            name="$default",
            auto_deploy=True,
            access_log_settings={"destination_arn": logs.arn, "format": json.dumps(ACCESS_LOG)},
            default_route_settings={
                "throttling_rate_limit": args.throttle.requests_per_s,
                "throttling_burst_limit": args.throttle.burst,
            },
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=first),
        )

    def _alarm(self, name: str, api: aws.apigatewayv2.Api, args: FrontDoorArgs) -> aws.cloudwatch.MetricAlarm:
        limit, told = args.alarms.errors_percent, [args.alarms.topic] if args.alarms.topic else []
        counts: list[aws.cloudwatch.MetricAlarmMetricQueryArgsDict] = [
            {
                "id": id_,
                "metric": {
                    "namespace": "AWS/ApiGateway",
                    "metric_name": metric,
                    "dimensions": {"ApiId": api.id},
                    "stat": "Sum",
                    "period": PERIOD_S,
                },
            }
            for id_, metric in (("calls", "Count"), ("failed", "5xx"))
        ]
        share: aws.cloudwatch.MetricAlarmMetricQueryArgsDict = {
            "id": "share",
            "expression": f"IF(calls >= {FEWEST_REQUESTS}, 100 * failed / calls, 0)",
            "label": "calls that end in a 5xx, %",
            "return_data": True,
        }
        return aws.cloudwatch.MetricAlarm(
            f"{name}-errors",
            name=naming.stack_name(args.stack, "front-door-errors"),
            alarm_description=f"More than {limit} % of all calls end in a 5xx, whether or not the router ran",
            metric_queries=[*counts, share],
            comparison_operator="GreaterThanThreshold",
            threshold=limit,
            evaluation_periods=PERIODS,
            datapoints_to_alarm=BAD_PERIODS,
            treat_missing_data="notBreaching",
            alarm_actions=told,
            ok_actions=told,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
