"""Our signature equals botocore's, over random requests, credentials, hosts and days."""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping
from urllib.parse import quote

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from functions.aws.signing import Signer

NAMES = st.from_regex(r"x-[a-z0-9-]{1,12}", fullmatch=True) | st.sampled_from(["content-type", "accept"])
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
HOSTS = st.sampled_from(
    ["runtime.sagemaker.us-east-1.amazonaws.com", "127.0.0.1:8080", "runtime.sagemaker.cn-north-1.amazonaws.com.cn"]
)
SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
SEGMENTS = st.text("abcXYZ019-._~%", min_size=1, max_size=20).filter(lambda text: text.strip("."))
CREDENTIALS = st.builds(ReadOnlyCredentials, st.just("AKIDEXAMPLE"), SECRETS, st.none() | SECRETS)


def botocores(
    host: str, path: str, body: bytes, headers: Mapping[str, str], credentials: ReadOnlyCredentials
) -> tuple[dict[str, str], float]:
    """What botocore sends, and when it signed."""
    request = AWSRequest("POST", f"https://{host}{path}", data=body, headers=dict(headers))
    SigV4Auth(credentials, "sagemaker", "eu-central-1").add_auth(request)
    sent = {name.lower(): value for name, value in request.headers.items()}
    return sent, calendar.timegm(time.strptime(sent["x-amz-date"], "%Y%m%dT%H%M%SZ"))


@given(HOSTS, SEGMENTS, st.binary(max_size=200), st.dictionaries(NAMES, VALUES, max_size=6), CREDENTIALS)
def test_it_signs_as_botocore_does(
    host: str, name: str, body: bytes, headers: dict[str, str], credentials: ReadOnlyCredentials
) -> None:
    """Every header that is sent, the signature among them."""
    path = f"/endpoints/{name}/invocations"
    theirs, now = botocores(host, path, body, headers, credentials)
    ours = Signer("sagemaker", "eu-central-1", host).sign(path, body, headers, credentials, now + 0.5)
    assert ours == theirs


@given(SEGMENTS.map(lambda text: text.replace("%", "")).filter(bool), st.binary(max_size=200), CREDENTIALS)
def test_it_signs_for_s3_as_botocore_does(name: str, body: bytes, credentials: ReadOnlyCredentials) -> None:
    """The body's digest is a header, and the path, encoded already, is not encoded again."""
    host, path = "bucket.s3.eu-central-1.amazonaws.com", f"/batch/{quote(name)}%20x"
    request = AWSRequest("PUT", f"https://{host}{path}", data=body, headers={"content-type": "text/plain"})
    S3SigV4Auth(credentials, "s3", "eu-central-1").add_auth(request)
    theirs = {name.lower(): value for name, value in request.headers.items()}
    now = calendar.timegm(time.strptime(theirs["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    signer = Signer("s3", "eu-central-1", host)
    assert signer.sign(path, body, {"content-type": "text/plain"}, credentials, now, method="PUT") == theirs


def test_the_days_key_is_made_anew_with_the_day_and_the_credentials() -> None:
    """A signer that lives on: rotated credentials and midnight both change the signature as they should."""
    signer = Signer("sagemaker", "us-east-1", "h")
    first, second = (ReadOnlyCredentials("A", secret, None) for secret in ("one", "two"))
    midnight = 1_796_083_200.0
    found = [
        signer.sign("/", b"", {}, credentials, at)["authorization"]
        for credentials, at in ((first, midnight - 1), (second, midnight - 1), (first, midnight), (first, midnight - 1))
    ]
    fresh = [
        Signer("sagemaker", "us-east-1", "h").sign("/", b"", {}, credentials, at)["authorization"]
        for credentials, at in ((first, midnight - 1), (second, midnight - 1), (first, midnight), (first, midnight - 1))
    ]
    assert found == fresh
    assert len(set(found)) == 3
