"""The request document, field by field, and the words of a refusal."""

from __future__ import annotations

import pytest

from functions.core.request import ANONYMOUS, Identity, Priority, Request, RequestError, claim_text

BASE = {"schema": "inferlane/request/v1", "path": "/x"}


def test_everything_a_request_may_say_is_read() -> None:
    """Header names lose their case, the method gains it."""
    assert Request.from_json(
        {
            **BASE,
            "id": "r-7",
            "method": "put",
            "headers": {"X-Canary": "Yes"},
            "content_type": "Text/Plain",
            "bytes": 12,
            "identity": {"kind": "iam", "arn": "arn:aws:iam::1:role/x"},
            "model": "m",
        }
    ) == Request(
        id="r-7",
        method="PUT",
        path="/x",
        headers={"x-canary": "Yes"},
        content_type="Text/Plain",
        bytes=12,
        identity=Identity("iam", arn="arn:aws:iam::1:role/x", key_id=None, claims={}),
        model="m",
    )


def test_a_path_is_enough() -> None:
    """A POST without headers, body and identity, called r-0."""
    assert Request.from_json(BASE) == Request("r-0", "POST", "/x", {}, None, 0, ANONYMOUS, None)
    assert Identity("anonymous") == ANONYMOUS


def test_the_content_type_is_taken_from_the_headers_unless_said() -> None:
    """The field comes first."""
    headers = {"Content-Type": "text/plain"}
    assert Request.from_json({**BASE, "headers": headers}).content_type == "text/plain"
    assert Request.from_json({**BASE, "headers": headers, "content_type": "image/png"}).content_type == "image/png"


@pytest.mark.parametrize(
    ("identity", "found"),
    [
        ({"kind": "api_key", "key_id": "k"}, Identity("api_key", key_id="k")),
        ({"kind": "jwt", "claims": {"sub": "s"}}, Identity("jwt", claims={"sub": "s"})),
        ({"kind": "anonymous"}, ANONYMOUS),
        (None, ANONYMOUS),
    ],
)
def test_each_kind_of_identity(identity: object, found: Identity) -> None:
    """Its own field and no other."""
    assert Request.from_json({**BASE, "identity": identity}).identity == found


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"schema": "x"}, "schema: expected 'inferlane/request/v1', found 'x'"),
        ({"path": ""}, "path: expected text, found an empty one"),
        ({"id": 7}, "id: expected text, found a number"),
        ({"method": 7}, "method: expected text, found a number"),
        ({"headers": []}, "headers: expected a mapping, found a list"),
        ({"headers": {"X-A": 7}}, "headers.X-A: expected text, found a number"),
        ({"content_type": 7}, "content_type: expected text, found a number"),
        ({"bytes": -1}, "bytes: must be at least 0, found -1"),
        ({"model": 7}, "model: expected text, found a number"),
        ({"identity": []}, "identity: expected a mapping, found a list"),
        ({"identity": {}}, "identity: key 'kind' is missing"),
        (
            {"identity": {"kind": "cookie"}},
            "identity.kind: unknown kind 'cookie' (known: iam, jwt, api_key, anonymous)",
        ),
        ({"identity": {"kind": "iam"}}, "identity: key 'arn' is missing"),
        ({"identity": {"kind": "api_key"}}, "identity: key 'key_id' is missing"),
        ({"identity": {"kind": "jwt"}}, "identity: key 'claims' is missing"),
        ({"identity": {"kind": "jwt", "claims": []}}, "identity.claims: expected a mapping, found a list"),
    ],
)
def test_what_is_no_request_is_refused_in_these_words(parts: dict[str, object], message: str) -> None:
    """Place and cause."""
    with pytest.raises(RequestError) as refused:
        Request.from_json({**BASE, **parts})
    assert str(refused.value) == message


def test_what_is_no_mapping_is_no_request() -> None:
    """Whatever it is."""
    with pytest.raises(RequestError, match=r"^expected a mapping, found nothing$"):
        Request.from_json(None)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), ("x", "x"), (3, "3"), (["a"], "[a]")])
def test_claims_become_text(value: object, text: str) -> None:
    """As API Gateway flattens them."""
    assert claim_text(value) == text


def test_priorities_are_ordered_words() -> None:
    """Low, normal, high; any other word is an error."""
    assert [Priority.of(word) for word in ("low", "normal", "high")] == [0, 1, 2]
    assert [priority.word for priority in Priority] == ["low", "normal", "high"]
    with pytest.raises(ValueError, match="not in"):
        Priority.of("urgent")
