"""The HTTP API in front of the router: who may come in, how fast, and what is written down about it.

`GET /healthz` is open and answers nothing but liveness; everything else needs a signed request (`iam`), an
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
from infra.alarms import Alarm, Bell, Metric, Share
from infra.components.key_auth import KeyAuth
from infra.components.lambda_function import LambdaFunction
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


JOB_ROUTES = {
    "list": "ANY /v1/jobs",
    "one": "ANY /v1/jobs/{id}",
    "batches": "ANY /v1/models/{model}/batches",
}
"""What the `jobs` function answers (docs/openapi); of any method, so that it can say which are served."""


@dataclass(frozen=True)
class _Guard:
    """Who vouches for the callers of a route, and what must stand before it does."""

    kind: str
    authorizer: aws.apigatewayv2.Authorizer | None = None
    first: tuple[pulumi.Resource, ...] = ()


_OPEN = _Guard("NONE")


@dataclass(frozen=True)
class FrontDoorArgs:
    """What stands behind the door and who opens it."""

    stack: str
    route: LambdaFunction
    jobs: LambdaFunction | None
    """Who answers for jobs; None: the router does, by saying that there are none."""
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
        target = self._target(f"{name}-integration", api, args.route)
        guarded = self._guard(f"{name}-proxy", api, args.guard)
        made: list[pulumi.Resource] = [
            self._route(f"{name}-healthz", api, "GET /healthz", target, _OPEN),
            self._route(f"{name}-proxy", api, "ANY /{proxy+}", target, guarded),
            args.route.may_be_called(f"{name}-calls-route", pulumi.Output.concat(api.execution_arn, "/*/*")),
        ]
        if args.jobs:
            made += self._jobs(f"{name}-jobs", api, args.jobs, guarded)
        stage = self._stage(name, api, args, made)
        self._alarm(api, args)
        self.url = stage.invoke_url.apply(lambda url: url.rstrip("/"))
        self.register_outputs({"url": self.url})

    def _target(self, name: str, api: aws.apigatewayv2.Api, function: LambdaFunction) -> pulumi.Output[str]:
        integration = aws.apigatewayv2.Integration(
            name,
            api_id=api.id,
            integration_type="AWS_PROXY",
            integration_method="POST",
            integration_uri=function.alias.invoke_arn,
            payload_format_version="2.0",
            timeout_milliseconds=INTEGRATION_TIMEOUT_MS,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return pulumi.Output.concat("integrations/", integration.id)

    def _jobs(
        self, name: str, api: aws.apigatewayv2.Api, function: LambdaFunction, guarded: _Guard
    ) -> list[pulumi.Resource]:
        """What the gateway finds more exactly than the router's `/{proxy+}`."""
        target = self._target(f"{name}-integration", api, function)
        routes = [self._route(f"{name}-{what}", api, key, target, guarded) for what, key in JOB_ROUTES.items()]
        source = pulumi.Output.concat(api.execution_arn, "/*/*")
        return [*routes, function.may_be_called(f"{name}-calls-jobs", source)]

    def _route(
        self, name: str, api: aws.apigatewayv2.Api, key: str, target: pulumi.Output[str], guard: _Guard
    ) -> aws.apigatewayv2.Route:
        return aws.apigatewayv2.Route(
            name,
            api_id=api.id,
            route_key=key,
            authorization_type=guard.kind,
            authorizer_id=guard.authorizer.id if guard.authorizer else None,
            target=target,
            opts=pulumi.ResourceOptions(parent=self, depends_on=guard.first),
        )

    def _guard(self, name: str, api: aws.apigatewayv2.Api, guard: KeyAuth | JwtConfig | None) -> _Guard:
        match guard:
            case None:
                return _Guard("AWS_IAM")
            case JwtConfig():
                return _Guard("JWT", self._token_authorizer(name, api, guard))
            case KeyAuth():
                authorizer = self._key_authorizer(name, api, guard)
                source = pulumi.Output.concat(api.execution_arn, "/authorizers/", authorizer.id)
                return _Guard("CUSTOM", authorizer, (guard.authorize.may_be_called(f"{name}-calls-authorize", source),))

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

    def _alarm(self, api: aws.apigatewayv2.Api, args: FrontDoorArgs) -> None:
        limit = args.alarms.errors_percent
        calls, failed = (
            (id_, Metric("AWS/ApiGateway", name, {"ApiId": api.id}, "Sum"))
            for id_, name in (("calls", "Count"), ("failed", "5xx"))
        )
        Bell(args.stack, args.alarms, args.tags, self).hang(
            Alarm(
                name="front-door-errors",
                says=f"More than {limit} % of all calls end in a 5xx, whether or not the router ran",
                measured=Share(calls, failed, "calls that end in a 5xx, %"),
                line=limit,
            )
        )
