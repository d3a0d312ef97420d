"""Data sets: only under the prefixes that the stack opens to the tenant, however the URI is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.datasets import Asked, DatasetError, read_asked
from functions.core.job import Dataset

PREFIXES = ("s3://data/tenants/{tenant}", "s3://shared/")
OUT = "s3://shared/out/"


def read(asked: object, tenant: str = "acme", prefixes: tuple[str, ...] = PREFIXES) -> Asked:
    return read_asked(json.dumps(asked).encode(), prefixes, tenant)


def refused(asked: object, tenant: str = "acme", prefixes: tuple[str, ...] = PREFIXES) -> tuple[int, str]:
    with pytest.raises(DatasetError) as caught:
        read(asked, tenant, prefixes)
    return caught.value.status, str(caught.value)


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        ("s3://data/tenants/acme/in/", "s3://data/tenants/acme/in/"),
        ("s3://data/tenants/acme/in/day=1/part-0.jsonl", "s3://data/tenants/acme/in/day=1/part-0.jsonl"),
        ("s3://data/tenants/acme/in/..x/.hidden", "s3://data/tenants/acme/in/..x/.hidden"),
        ("s3://data/tenants/acme", "s3://data/tenants/acme/"),
        ("s3://data/tenants/acme/", "s3://data/tenants/acme/"),
        ("s3://shared/a b".replace(" ", "+"), "s3://shared/a+b"),
    ],
)
def test_what_lies_under_a_prefix_is_taken(uri: str, kept: str) -> None:
    """As it is; the prefix itself gets its slash, so that it means nobody who is named alike."""
    assert read({"input": uri, "output": OUT}).dataset == Dataset(kept, OUT)


def test_types_may_be_given() -> None:
    """JSON Lines unless said otherwise."""
    asked = {"input": "s3://shared/in/", "output": OUT}
    assert read(asked) == Asked(Dataset("s3://shared/in/", OUT), "application/jsonlines", None)
    typed = {**asked, "content_type": "text/csv", "accept": "application/jsonlines"}
    assert read(typed) == Asked(Dataset("s3://shared/in/", OUT), "text/csv", "application/jsonlines")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://data/tenants/vip/in/",
        "s3://data/tenants/acme-2/in/",
        "s3://data/tenants/acm",
        "s3://data/tenants/ACME/in/",
        "s3://data/tenants/",
        "s3://data/",
        "s3://data/tenants",
        "s3://data.tenants/acme/in/",
        "s3://other/tenants/acme/in/",
        "s3://shared-2/in/",
        "s3://data/x/tenants/acme/in/",
    ],
)
def test_what_lies_elsewhere_is_403(uri: str) -> None:
    """Another tenant's, another bucket's, one that only begins alike: for the input as for the output."""
    for asked in ({"input": uri, "output": OUT}, {"input": "s3://shared/in/", "output": uri}):
        status, message = refused(asked)
        assert status == 403
        assert "lies outside" in message


@pytest.mark.parametrize(
    "uri",
    [
        *("https://data/tenants/acme/in", "S3://data/tenants/acme/in", "/data/tenants/acme/in", "s3:/data/x", "s3://"),
        *(
            "s3://data",
            "s3:///tenants/acme/in",
            "s3://Data/x",
            "s3://d/x",
            "s3://data:80/x",
            "s3://u@data/tenants/acme",
        ),
        *("s3://-data/x", "s3://data-/x", f"s3://{'d' * 64}/x", "s3://arn:aws:s3:::data/tenants/acme/in"),
        *("s3://data/tenants/acme/../vip/", "s3://data/tenants/acme/./in", "s3://data/tenants/acme//in"),
        *("s3://data/tenants/acme/..", "s3://data//tenants/acme/in", "s3://data/tenants/acme/in//"),
        *("s3://data/tenants/acme/%2e%2e/vip/", "s3://data/tenants/acme/in?x", "s3://data/tenants/acme/in#x"),
        *("s3://data/tenants/acme/a\\b", "s3://data/tenants/acme/a\nb", "s3://data/tenants/acme/a\x00", " s3://data/x"),
        *("s3://data/tenants/acme/é", "s3://data/tenants/acme/in\n", f"s3://shared/{'x' * 1024}"),
    ],
)
def test_what_is_no_plain_uri_is_400(uri: str) -> None:
    """Nothing that somebody might resolve or decode is even compared."""
    assert refused({"input": uri, "output": OUT})[0] == 400


@pytest.mark.parametrize(
    "asked",
    [
        *([], 7, "s3://shared/in/", {}, {"input": "s3://shared/in/"}, {"input": 7, "output": OUT}),
        {"input": "s3://shared/in/", "output": OUT, "instance_type": "ml.p4d.24xlarge"},
        {"input": "s3://shared/in/", "output": OUT, "content_type": "a\r\nb"},
        {"input": "s3://shared/in/", "output": OUT, "accept": "x" * 257},
        {"input": "s3://shared/in/", "output": OUT, "accept": 7},
    ],
)
def test_what_cannot_be_read_is_400(asked: object) -> None:
    """Not the two URIs, or more than may be said."""
    assert refused(asked)[0] == 400


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_400(body: bytes) -> None:
    """With an example in the message."""
    with pytest.raises(DatasetError) as caught:
        read_asked(body, PREFIXES, "acme")
    assert caught.value.status == 400
    assert str(caught.value) == 'The body must be JSON such as {"input": "s3://…", "output": "s3://…"}.'


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"input": 7}, "The body cannot be read: input: expected text, found a number."),
        ({"accept": "é"}, "accept must be printable ASCII of at most 256 characters."),
        ({"content_type": "x" * 257}, "content_type must be printable ASCII of at most 256 characters."),
        ({"input": "s3://shared//"}, "input must be s3://bucket/prefix, of plain segments."),
        ({"output": "s3://shared//"}, "output must be s3://bucket/prefix, of plain segments."),
        ({"input": "s3://vip/"}, "input lies outside the prefixes that this stack opens to you."),
        ({"output": "s3://vip/"}, "output lies outside the prefixes that this stack opens to you."),
    ],
)
def test_a_refusal_says_which_member_and_what_would_be_right(more: dict[str, object], message: str) -> None:
    """The message is for the caller."""
    assert refused({"input": "s3://shared/in/", "output": OUT, **more})[1] == message


def test_the_longest_key_is_s3s() -> None:
    """A URI of 1,024 characters is the longest that is taken."""
    longest = f"s3://shared/{'x' * 1012}"
    assert read({"input": longest, "output": OUT}).dataset.input == longest
    assert refused({"input": longest + "x", "output": OUT})[0] == 400


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://shared/a/", "s3://shared/a/"),
        ("s3://shared/a/", "s3://shared/a/out/"),
        ("s3://shared/a/in/", "s3://shared/a/"),
        ("s3://shared/a", "s3://shared/ab"),
    ],
)
def test_output_within_input_is_400(one: str, other: str) -> None:
    """In either direction, as S3 compares prefixes: the next run would read it."""
    for asked in ({"input": one, "output": other}, {"input": other, "output": one}):
        assert refused(asked) == (400, "input and output must not lie within each other.")


@pytest.mark.parametrize("tenant", ["a/b", "..", ".", "", "*", "acme/../vip", "a b", "{tenant}", "é", "anonymous~5f"])
def test_a_tenant_whose_name_is_no_word_has_no_prefix_of_its_own(tenant: str) -> None:
    """Nothing in a name can lead elsewhere; what is shared is open to it all the same."""
    uri = f"s3://data/tenants/{tenant}/in"
    assert refused({"input": uri, "output": OUT}, tenant)[0] in (400, 403)
    assert read({"input": "s3://shared/in", "output": OUT}, tenant).dataset.input == "s3://shared/in"


def test_without_prefixes_nothing_is_open() -> None:
    """The default."""
    assert refused({"input": "s3://shared/in/", "output": OUT}, prefixes=())[0] == 403


@given(st.text(alphabet="acmevip/.{}-2~%", max_size=30), st.sampled_from(["acme", "vip", "acme-2"]))
def test_no_uri_leads_to_another_tenant(rest: str, tenant: str) -> None:
    """Whatever follows, what is taken lies in the caller's own place."""
    try:
        found = read({"input": f"s3://data/tenants/{rest}", "output": OUT}, tenant).dataset.input
    except DatasetError:
        return
    assert found.startswith(f"s3://data/tenants/{tenant}/")
