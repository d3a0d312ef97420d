"""API Gateway v2 (HTTP and WebSocket APIs). Ids are the gateway's own, so replacements stand before their predecessors
go.

A stage's `invokeUrl` is the path form `{endpoint}/_aws/execute-api/{api}/{stage}`, which LocalStack-compatible
endpoints serve on their one port; AWS's own host names would not resolve to it.
"""

from __future__ import annotations

from workbench.stack.deployer.row import Call, Row, Step, Tags, Templates

_API: Templates = {"ApiId": "{in.apiId}"}
_API_ARN = "arn:aws:apigateway:{region}::/apis"


def _child(
    type_: str,
    noun: str,
    id_name: str,
    changeable: tuple[str, ...],
    *,
    identity: tuple[str, ...] = (),
    rename: dict[str, str | None] | None = None,
) -> Row:
    """A part of an API that the gateway numbers."""
    by_id: Templates = {**_API, id_name: "{id}"}
    return Row(
        type=type_,
        service="apigatewayv2",
        create=Call(f"create_{noun}", rename=rename or {}),
        id=f"{{out.{id_name}}}",
        steps=(Step(changeable, Call(f"update_{noun}", params=by_id, rename=rename or {}), at="update"),),
        identity=identity,
        read=Call(f"get_{noun}", params=by_id),
        delete=Call(f"delete_{noun}", params=by_id),
    )


ROWS = (
    Row(
        type="aws:apigatewayv2/api:Api",
        service="apigatewayv2",
        create=Call("create_api"),
        id="{out.ApiId}",
        outputs={
            "name": "{in.name}",
            "apiEndpoint": "{out.ApiEndpoint}",
            "arn": _API_ARN + "/{id}",
            "executionArn": "arn:aws:execute-api:{region}:{account}:{id}",
        },
        auto_name="name",
        steps=(
            Step(
                (
                    "name",
                    "description",
                    "corsConfiguration",
                    "disableExecuteApiEndpoint",
                    "routeSelectionExpression",
                    "apiKeySelectionExpression",
                    "version",
                    "ipAddressType",
                ),
                Call("update_api", params={"ApiId": "{id}"}),
                at="update",
            ),
        ),
        tags=Tags("tag_resource", "untag_resource", "ResourceArn"),
        read=Call("get_api", params={"ApiId": "{id}"}),
        delete=Call("delete_api", params={"ApiId": "{id}"}),
    ),
    _child(
        "aws:apigatewayv2/integration:Integration",
        "integration",
        "IntegrationId",
        (
            "connectionId",
            "connectionType",
            "contentHandlingStrategy",
            "credentialsArn",
            "description",
            "integrationMethod",
            "integrationType",
            "integrationUri",
            "passthroughBehavior",
            "payloadFormatVersion",
            "requestParameters",
            "requestTemplates",
            "templateSelectionExpression",
            "timeoutMilliseconds",
            "tlsConfig",
        ),
        rename={"timeoutMilliseconds": "TimeoutInMillis"},
    ),
    _child(
        "aws:apigatewayv2/route:Route",
        "route",
        "RouteId",
        (
            "apiKeyRequired",
            "authorizationScopes",
            "authorizationType",
            "authorizerId",
            "modelSelectionExpression",
            "operationName",
            "requestModels",
            "routeKey",
            "target",
        ),
    ),
    _child(
        "aws:apigatewayv2/authorizer:Authorizer",
        "authorizer",
        "AuthorizerId",
        (
            "authorizerCredentialsArn",
            "authorizerPayloadFormatVersion",
            "authorizerResultTtlInSeconds",
            "authorizerType",
            "authorizerUri",
            "enableSimpleResponses",
            "identitySources",
            "jwtConfiguration",
            "name",
        ),
    ),
    Row(
        type="aws:apigatewayv2/stage:Stage",
        service="apigatewayv2",
        create=Call("create_stage", rename={"name": "StageName"}),
        id="{in.name}",
        outputs={
            "name": "{in.name}",
            "arn": _API_ARN + "/{in.apiId}/stages/{in.name}",
            "executionArn": "arn:aws:execute-api:{region}:{account}:{in.apiId}/{in.name}",
            "invokeUrl": "{endpoint}/_aws/execute-api/{in.apiId}/{in.name}",
        },
        auto_name="name",
        steps=(
            Step(
                (
                    "accessLogSettings",
                    "autoDeploy",
                    "clientCertificateId",
                    "defaultRouteSettings",
                    "deploymentId",
                    "description",
                    "stageVariables",
                ),
                Call("update_stage", params={**_API, "StageName": "{in.name}"}),
                at="update",
            ),
        ),
        tags=Tags("tag_resource", "untag_resource", "ResourceArn"),
        identity=("apiId", "name"),
        read=Call("get_stage", params={**_API, "StageName": "{in.name}"}),
        delete=Call("delete_stage", params={**_API, "StageName": "{in.name}"}),
    ),
)
