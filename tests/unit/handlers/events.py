"""Events as API Gateway's HTTP API sends them (payload format 2.0), after AWS's documented examples."""

from __future__ import annotations

from tests.unit.core.builders import PATH

IAM = {
    "iam": {
        "accessKey": "ASIAEXAMPLE",
        "accountId": "123456789012",
        "callerId": "AROAEXAMPLE:job",
        "cognitoIdentity": None,
        "principalOrgId": "aws:PrincipalOrgID",
        "userArn": "arn:aws:sts::123456789012:assumed-role/ops-night/job",
        "userId": "AROAEXAMPLE:job",
    }
}
JWT = {"jwt": {"claims": {"client_id": "acme", "sub": "u-1", "exp": "1796000000"}, "scopes": ["infer"]}}
API_KEY = {"lambda": {"key_id": "demo-app"}}


def event(
    path: str = PATH,
    method: str = "POST",
    *,
    body: str | None = '{"text":"hi"}',
    base64: bool = False,
    headers: dict[str, str] | None = None,
    authorizer: dict[str, object] | None = API_KEY,  # type: ignore[assignment]
    stage: str = "$default",
) -> dict[str, object]:
    """One call."""
    context: dict[str, object] = {
        "accountId": "123456789012",
        "apiId": "api-id",
        "domainName": "id.execute-api.us-east-1.amazonaws.com",
        "domainPrefix": "id",
        "http": {
            "method": method,
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": "192.0.2.1",
            "userAgent": "agent",
        },
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "ANY /{proxy+}",
        "stage": stage,
        "time": "30/Nov/2026:12:40:00 +0000",
        "timeEpoch": 1796042400000,
    }
    if authorizer is not None:
        context["authorizer"] = authorizer
    found: dict[str, object] = {
        "version": "2.0",
        "routeKey": "ANY /{proxy+}",
        "rawPath": path,
        "rawQueryString": "",
        "cookies": ["a=1"],
        "headers": {"content-type": "application/json", "accept": "application/json, */*;q=0.1", **(headers or {})},
        "requestContext": context,
        "isBase64Encoded": base64,
    }
    if body is not None:
        found["body"] = body
    return found
