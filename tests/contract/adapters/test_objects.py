"""The Objects contract, against the fake and against S3 through moto."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from moto import mock_aws

from functions.aws.objects import S3Objects
from functions.batch_ports import BusyError, Objects, UnavailableError
from tests.contract.adapters.batch_tables import client_of, hasty_client_of
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.fakes import FakeObjects
from tests.unit.batch.weather import Weather

__all__ = ["_credentials"]
BUCKET = "inferlane-test-data"


@pytest.fixture(params=["fake", "s3"])
def objects(request: pytest.FixtureRequest) -> Iterator[Objects]:
    if request.param == "fake":
        yield FakeObjects(Weather())
        return
    with mock_aws():
        client = client_of("s3")
        client.create_bucket(Bucket=BUCKET)
        yield S3Objects(client, BUCKET)


def test_what_was_put_is_got(objects: Objects) -> None:
    """To the byte; written over when put again; None where there is nothing."""
    objects.put("batch/a", b"\x00\xff", "image/png")
    objects.put("batch/b", b"")
    assert (objects.get("batch/a"), objects.get("batch/b"), objects.get("batch/c")) == (b"\x00\xff", b"", None)
    objects.put("batch/a", b"other")
    assert objects.get("batch/a") == b"other"


def test_many_at_a_time(objects: Objects) -> None:
    """All of them written; of those asked for, the ones there are."""
    bodies = {f"batch/x/{number:03}": str(number).encode() for number in range(40)}
    objects.put_all(bodies, "text/plain")
    objects.put_all({})
    assert objects.get_all([*bodies, "batch/x/nothing", "batch/x/000"]) == bodies
    assert objects.get_all([]) == {}


def test_sizes_are_of_what_lies_under_the_prefix(objects: Objects) -> None:
    """And of nothing beside it."""
    objects.put_all({"batch/r/in/a": b"1", "batch/r/in/b": b"22", "batch/r/index/a": b"333", "batch/r2/in/c": b""})
    assert objects.sizes("batch/r/in/") == {"batch/r/in/a": 1, "batch/r/in/b": 2}
    assert objects.sizes("batch/none/") == {}


def test_a_key_has_a_uri(objects: Objects) -> None:
    """By which SageMaker reads it."""
    assert objects.uri("batch/r/in/").startswith("s3://")
    assert objects.uri("batch/r/in/").endswith("/batch/r/in/")


# What is S3's alone.


def test_listings_go_on_over_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand keys each."""
    page = (
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>{more}</IsTruncated>{next}'
        "<Contents><Key>{key}</Key><Size>{size}</Size></Contents></ListBucketResult>"
    )
    first = page.format(more="true", next="<NextContinuationToken>t</NextContinuationToken>", key="p/a", size=1)
    last = page.format(more="false", next="", key="p/b", size=2)
    with Stub(Reply(200, first.encode()), Reply(200, last.encode())) as stub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
        assert S3Objects(client_of("s3"), BUCKET).sizes("p/") == {"p/a": 1, "p/b": 2}
        assert "continuation-token=t" in stub.received[1].path


def test_a_link_reads_one_object_for_a_while() -> None:
    """Signature version 4, with the time it was made and how long it works."""
    parts = urlsplit(S3Objects(client_of("s3"), BUCKET).link("batch/results/x", 900))
    query = parse_qs(parts.query)
    assert parts.scheme == "https"
    assert "/batch/results/x" in parts.path
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["900"]
    made = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - made).total_seconds()) < 60


def test_errors_are_busy_or_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the bucket is not there, or when an object breaks off half-way."""

    def s3(url: str) -> S3Objects:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        return S3Objects(hasty_client_of("s3"), BUCKET)

    def error(code: str) -> bytes:
        return f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode()

    cases: list[tuple[Reply, type[Exception]]] = [
        (Reply(503, error("SlowDown")), BusyError),
        (Reply(404, error("NoSuchBucket")), UnavailableError),
        (Reply(403, error("AccessDenied")), UnavailableError),
        (Reply(200, b"x" * 100, ending="short"), UnavailableError),
    ]
    for reply, kind in cases:
        with Stub(reply) as stub, pytest.raises(kind):
            s3(stub.url).get("k")
    with Stub(Reply(503, error("SlowDown"))) as stub, pytest.raises(BusyError):
        s3(stub.url).put_all({"a": b"1", "b": b"2"})
    with pytest.raises(UnavailableError):
        s3(unused_url()).sizes("p/")


def test_the_object_keeps_its_type() -> None:
    """A link hands it out as what it is."""
    with mock_aws():
        client: Any = client_of("s3")
        client.create_bucket(Bucket=BUCKET)
        S3Objects(client, BUCKET).put("k", b"x", "image/png")
        assert client.head_object(Bucket=BUCKET, Key="k")["ContentType"] == "image/png"
