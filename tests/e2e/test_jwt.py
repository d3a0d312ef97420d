"""Tokens at the door: a stack with `auth: jwt` and an issuer of the test's own, over HTTP.

The issuer is a tiny OpenID provider on loopback: a discovery document and the public keys. Only the issuer's address,
the audience and who is who by a claim are configured; signature, issuer, audience and times are checked by the gateway.
"""

from __future__ import annotations

import base64
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import urllib3
import yaml
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from tests.e2e.conftest import MODEL, PATH
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root

STACK = "tokens"
AUDIENCE = "inferlane"
KEY_ID = "key-1"
LOG_LIMIT_S = 15.0
HTTP = urllib3.PoolManager(retries=False, timeout=40)


@dataclass(frozen=True)
class Issuer:
    """An OpenID provider: its address and the key it signs with."""

    url: str
    key: rsa.RSAPrivateKey

    def token(self, *, key: rsa.RSAPrivateKey | None = None, alg: str = "RS256", **claims: object) -> str:
        """A token as a client would get it, some claims changed; None takes a claim out."""
        now = int(time.time())
        stated: dict[str, object] = {"iss": self.url, "aud": AUDIENCE, "sub": "s-1", "iat": now - 5, "exp": now + 300}
        payload = {name: value for name, value in (stated | claims).items() if value is not None}
        head = {"alg": alg, "typ": "JWT", "kid": KEY_ID}
        signed = f"{_encoded(json.dumps(head).encode())}.{_encoded(json.dumps(payload).encode())}"
        if alg == "none":
            return f"{signed}."
        return f"{signed}.{_encoded((key or self.key).sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """The provider, serving its discovery document and its one public key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_numbers()
    jwk = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "n": _number(public.n), "e": _number(public.e)}
    documents: dict[str, object] = {"/keys": {"keys": [jwk]}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = documents.get(self.path)
            body = json.dumps(found).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a test's requests are no news."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        documents["/.well-known/openid-configuration"] = {"issuer": url, "jwks_uri": f"{url}/keys"}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Issuer(url, key)
        server.shutdown()


def serverless_project(folder: Path, stack: str, policy: str, changes: Mapping[str, object]) -> Path:
    """A project of the test's own, whose policy it may write: one stack like `local`, but serverless only."""
    for name in ("infra", "policies"):
        shutil.copytree(project_root() / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("functions", "models"):
        (folder / name).symlink_to(project_root() / name)
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    file = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())
    file["config"] |= {"inferlane:stage": "prototype", "inferlane:policy": f"policies/{stack}.yaml", **changes}
    for deferring in ("inferlane:batch", "inferlane:capture", "inferlane:nightly"):
        file["config"].pop(deferring, None)
    file["config"]["inferlane:models"].pop("moderation-heavy")
    for lane in ("dedicated", "batch"):
        file["config"]["inferlane:models"][MODEL].pop(lane, None)
    (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(file))
    (folder / f"policies/{stack}.yaml").write_text(policy)
    return folder


POLICY = """\
schema: inferlane/policy/v1
version: tokens.1
tiers: {vip: {max_priority: high}, standard: {max_priority: normal}}
tenants:
  - {claim: {client_id: "acme"}, tenant: acme, tier: vip, cost_center: growth}
  - {claim: {client_id: "shop-*"}, tenant: shop, tier: standard, cost_center: retail}
defaults: {order: [serverless], unknown: refuse}
"""


@pytest.fixture(scope="module")
def guarded(
    issuer: Issuer, cloud: Cloud, layout: Layout, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """A stack whose door the issuer guards and whose policy knows two kinds of clients."""
    jwt = {"issuer": issuer.url, "audience": ["other", AUDIENCE]}
    changes = {"inferlane:auth": "jwt", "inferlane:jwt": jwt}
    project = serverless_project(tmp_path_factory.mktemp(STACK), STACK, POLICY, changes)
    yield deployment.run("up", STACK, cloud=cloud, layout=layout, project=project)
    deployment.run("destroy", STACK, cloud=cloud, layout=layout, project=project)


def call(url: str, token: str | None, **headers: str) -> urllib3.BaseHTTPResponse:
    """A request to the model, with the token as a bearer's."""
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    sent = {"Content-Type": "application/json", **bearer, **headers}
    return HTTP.request("POST", url + PATH, body=json.dumps({"text": "hello"}).encode(), headers=sent)


def decision(client: Callable[[str], Any], request_id: str) -> Any:
    """The decision in the receipt of a request, from the function's log."""
    logs, group = client("logs"), f"/aws/lambda/inferlane-{STACK}-route"
    deadline = time.monotonic() + LOG_LIMIT_S
    while time.monotonic() < deadline:
        for event in logs.filter_log_events(logGroupName=group)["events"]:
            if request_id in event["message"] and '"receipt"' in event["message"]:
                line = event["message"]
                return json.loads(line[line.index("{") :])["receipt"]["decision"]
        time.sleep(0.2)
    raise AssertionError(f"no receipt of {request_id} after {LOG_LIMIT_S:.0f} s")


def test_a_valid_token_is_its_clients(guarded: Deployment, issuer: Issuer, client: Callable[[str], Any]) -> None:
    """Answered by the model; tenant, tier and cost center come from the token's claim."""
    answer = call(guarded.url, issuer.token(client_id="acme"), **{"X-Inferlane-Priority": "high"})

    assert answer.status == 200, answer.data
    made = decision(client, answer.headers["x-request-id"])
    assert (made["tenant"], made["tier"], made["cost_center"]) == ("acme", "vip", "growth")
    assert made["priority"] == {"asked": "high", "granted": "high"}
    assert made["claims_refused"] == []


def test_a_wish_beyond_the_tier_is_granted_at_its_cap(
    guarded: Deployment, issuer: Issuer, client: Callable[[str], Any]
) -> None:
    """A forged priority, and headers that claim another tenant or tier, change nothing: the token alone counts."""
    forged = {"X-Inferlane-Priority": "high", "X-Inferlane-Tier": "vip", "X-Inferlane-Tenant": "acme"}
    answer = call(guarded.url, issuer.token(client_id="shop-7"), **forged)

    assert answer.status == 200, answer.data
    made = decision(client, answer.headers["x-request-id"])
    assert (made["tenant"], made["tier"], made["cost_center"]) == ("shop", "standard", "retail")
    assert made["priority"] == {"asked": "high", "granted": "normal"}
    assert set(made["claims_refused"]) == {"priority", "tier", "tenant"}


def test_any_of_the_audiences_will_do(guarded: Deployment, issuer: Issuer) -> None:
    """A token meant for several is let in when one of them is ours."""
    assert call(guarded.url, issuer.token(client_id="acme", aud=["elsewhere", AUDIENCE])).status == 200


def test_a_client_the_policy_does_not_know_is_refused(guarded: Deployment, issuer: Issuer) -> None:
    """A good token of a stranger is 403 where the policy says so, as a problem document of the router."""
    answer = call(guarded.url, issuer.token(client_id="stranger"))

    assert answer.status == 403
    assert answer.headers["content-type"] == "application/problem+json"


BAD: dict[str, Callable[[Issuer], str]] = {
    "expired": lambda issuer: issuer.token(client_id="acme", exp=int(time.time()) - 60),
    "not yet valid": lambda issuer: issuer.token(client_id="acme", nbf=int(time.time()) + 600),
    "another audience": lambda issuer: issuer.token(client_id="acme", aud="elsewhere"),
    "another issuer": lambda issuer: issuer.token(client_id="acme", iss="https://login.example.com"),
    "another key": lambda issuer: issuer.token(
        client_id="acme", key=rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ),
    "no signature": lambda issuer: issuer.token(client_id="acme", alg="none"),
    "none with a signature": lambda issuer: issuer.token(client_id="acme", alg="none") + _encoded(b"x" * 256),
    "claims exchanged": lambda issuer: _exchanged(issuer.token(client_id="shop-7"), issuer.token(client_id="acme")),
    "not a token": lambda _: "a.b.c",
}


def _exchanged(signed: str, wished: str) -> str:
    head, _, signature = signed.split(".")
    return f"{head}.{wished.split('.')[1]}.{signature}"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_does_not_reach_the_router(guarded: Deployment, issuer: Issuer, name: str) -> None:
    """Turned away at the gateway, whatever is wrong with it."""
    answer = call(guarded.url, BAD[name](issuer))

    assert answer.status in (401, 403), answer.data
    assert "x-inferlane-rule" not in answer.headers


def test_no_token_no_entry(guarded: Deployment) -> None:
    """Neither without a token nor with an API key; liveness stays open."""
    assert call(guarded.url, None).status == 401
    assert call(guarded.url, None, **{"X-Api-Key": "il_" + "x" * 43}).status == 401
    assert HTTP.request("GET", guarded.url + "/healthz").status == 200


def test_the_offline_cloud_listens_on_loopback_only(cloud: Cloud, layout: Layout) -> None:
    """The library that verifies tokens would also have the cloud open a broker's port to the world: it is off."""
    record = layout.read_record()
    if record is None:
        pytest.skip(f"{cloud.endpoint_url} is not a stack of ours")
    processes = [psutil.Process(process.pid) for process in record.processes]
    family = [one for process in processes for one in (process, *process.children(recursive=True))]
    listening = [
        connection.laddr
        for process in family
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]

    assert listening
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert 8883 not in {address.port for address in listening}
