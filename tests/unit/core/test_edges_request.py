"""Requests at the edge: hostile lists, absurd numbers, the last second of the calendar, and what they must not cost."""

from __future__ import annotations

import json
import time

import pytest

from functions.core.decide import decide
from functions.core.document import DocumentError, as_number, as_time, show_time
from functions.core.request import Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology, TopologyError
from functions.core.wishes import WishError, read_wishes
from tests.unit.core.builders import (
    BATCH,
    DEDICATED,
    IDLE,
    MODEL,
    NOW,
    SERVERLESS,
    lane,
    points,
    policy,
    request,
    snapshot,
    topology,
    topology_document,
)

LARGEST = 2**53
BATCHED = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH)


@pytest.mark.parametrize(
    "hostile",
    ["a" + ";b= " * 2_400, "a= " + ";\t" * 4_000, "a" + ";b= \t" * 1_900, "a; = ;b=" * 1_200, 'a;b="' + "\\\\" * 4_000],
)
def test_no_list_of_preferences_can_be_read_in_two_ways(hostile: str) -> None:
    """Blanks after an empty value belong to one place only, so a list that fails at its end fails once."""
    began = time.perf_counter()
    with pytest.raises(WishError, match="RFC 7240"):
        read_wishes({"prefer": hostile + "@"})
    assert time.perf_counter() - began < 1.0


@pytest.mark.parametrize(
    ("prefer", "asked"),
    [
        ("respond-async= ", True),
        ("respond-async= ;x= ;y =1 , a", True),
        ('a= , respond-async="" ;b', True),
        ("\trespond-async\t;\tx\t=\ty\t", True),
        ("a= respond-async", False),
    ],
)
def test_blanks_around_empty_values_mean_nothing(prefer: str, asked: bool) -> None:
    """RFC 7240: an empty value is no value, wherever blanks stand."""
    assert read_wishes({"prefer": prefer}).respond_async is asked


@pytest.mark.parametrize("digits", ["1000000000001", "9223372036854775807", "9" * 5_000, "0" * 5_000 + "9" * 5_000])
def test_a_deadline_without_end_is_a_deadline(digits: str) -> None:
    """`Long.MAX_VALUE` is a whole number above zero: cut to what the gateway holds, and batch can meet it."""
    headers = {"x-inferlane-deadline-ms": digits}
    assert read_wishes(headers).deadline_ms == 10**12
    decision = decide(request(headers=headers), IDLE, policy(), BATCHED, NOW)
    assert (decision.shed, decision.deadline_ms) == (None, 29_000)
    patient = request(headers={**headers, "prefer": "respond-async"})
    assert decide(patient, IDLE, policy(), BATCHED, NOW).order[0] == "batch"


@pytest.mark.parametrize("digits", ["0", "00", "-5", "+5", "1e3", "5 0", "５", "", " "])
def test_a_deadline_is_ascii_digits_above_zero(digits: str) -> None:
    """Anything else is the caller's mistake, named."""
    decision = decide(request(headers={"x-inferlane-deadline-ms": digits}), IDLE, policy(), topology(), NOW)
    assert decision.shed is not None
    assert (decision.shed.status, decision.shed.retry_after_s) == (400, None)
    assert "X-Inferlane-Deadline-Ms" in decision.shed.reason


def test_a_leading_zero_does_not_matter() -> None:
    """Decimal, whatever its length."""
    assert read_wishes({"x-inferlane-deadline-ms": "0" * 40 + "250"}).deadline_ms == 250
    assert read_wishes({"x-inferlane-deadline-ms": "999999999999"}).deadline_ms == 999_999_999_999


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"content_type": ""}, None),
        ({"content_type": "", "headers": {"Content-Type": "text/plain"}}, None),
        ({"headers": {"Content-Type": ""}, "content_type": None}, None),
        ({"headers": {"Content-Type": "text/plain"}, "content_type": None}, "text/plain"),
    ],
)
def test_an_empty_content_type_is_none(parts: dict[str, object], found: str | None) -> None:
    """As an empty header of HTTP is; the field comes before the header."""
    assert request(**parts).content_type == found


def test_claims_are_what_the_gateway_makes_of_them() -> None:
    """An HTTP API flattens lists to `[a b]`; a claim that is null is not there, also for `*`."""
    claims = {"groups": ["ops", True, 7, ["x"]], "gone": None, "n": 3}
    read = request(identity={"kind": "jwt", "claims": claims}).identity.claims
    assert read == {"groups": "[ops true 7 [x]]", "n": "3"}
    by = policy(tenants=[{"claim": {claim: "*"}, "tenant": claim, "tier": "vip"} for claim in ("gone", "groups")])
    asked = request(identity={"kind": "jwt", "claims": claims})
    assert decide(asked, IDLE, by, topology(), NOW).tenant == "groups"


@pytest.mark.parametrize(
    "parts",
    [
        {"headers": {"x-inferlane-priority": "urgent"}},
        {"headers": {"prefer": "="}},
        {"identity": {"kind": "anonymous"}},
    ],
)
def test_a_refusal_names_every_lane_of_a_known_model(parts: dict[str, object]) -> None:
    """`rejected` has every lane that is not in the order, also when the wish or the caller is what is wrong."""
    decision = decide(request(**parts), IDLE, policy(defaults={"unknown": "refuse"}), BATCHED, NOW)
    assert decision.shed is not None
    assert [(item.lane, item.reason) for item in decision.rejected] == [
        (name, "the request is refused") for name in ("dedicated", "serverless", "batch")
    ]


@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 0.1])
def test_numbers_go_as_far_as_floats_count(number: float) -> None:
    """2⁵³ is the last whole number before a float skips one."""
    assert as_number(number, ()) == number


@pytest.mark.parametrize("number", [LARGEST * 2, -LARGEST * 2, 1e300, 10**300])
def test_larger_numbers_are_mistakes(number: float) -> None:
    """No document means them, and their products would be no numbers any more."""
    with pytest.raises(DocumentError, match=r"at most 9007199254740992, found -?\d"):
        as_number(number, ())


def test_the_largest_numbers_of_all_documents_together_give_a_decision() -> None:
    """Every product of what may be written is finite, so the decision is JSON."""
    dear = {"max_bytes": LARGEST, "overhead_ms": LARGEST, "timeout_s": LARGEST, "expected_p99_ms": LARGEST}
    on = topology(
        dedicated={
            **DEDICATED,
            **dear,
            "max_instances": LARGEST,
            "slots_per_instance": LARGEST,
            "usd_per_instance_hour": LARGEST,
        },
        serverless={**SERVERLESS, **dear, "max_concurrency": LARGEST, "usd_per_s": LARGEST, "cold_start_ms": LARGEST},
        batch={**BATCH, "startup_s": LARGEST, "usd_per_instance_hour": LARGEST},
    )
    series = {name: points(LARGEST) for name in ("instances", "concurrency", "model_latency_p50_ms", "cpu_percent")}
    for instances in (None, 0, LARGEST):
        full = lane(
            {**series, "model_latency_p99_ms": points(LARGEST)}, instances=instances, in_flight=LARGEST, breaker="open"
        )
        seen = snapshot(dedicated=full, serverless=full, batch=full)
        for objective in ("rules", "cost"):
            found = decide(request(bytes=LARGEST), seen, policy(objective=objective), on, NOW)
            assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("dedicated", {**DEDICATED, "slots_per_instance": 1e300}),
        ("serverless", {**SERVERLESS, "usd_per_s": 1e300}),
        ("serverless", DEDICATED),
        ("dedicated", SERVERLESS),
        ("batch", {**DEDICATED}),
        ("dedicated", BATCH),
    ],
)
def test_a_topology_that_cannot_be_meant_is_refused(name: str, parts: dict[str, object]) -> None:
    """Absurd figures, and a lane that is of another kind than its name says."""
    with pytest.raises(TopologyError, match=f"lanes.{name}"):
        Topology.from_json(topology_document(**{name: parts}))


def test_the_last_moment_of_the_calendar() -> None:
    """A float rounds the last microsecond of the year 9999 into a year that no date has: out of range, no crash."""
    last = as_time("9999-12-31T23:59:59Z", ())
    assert show_time(last) == "9999-12-31T23:59:59Z"
    with pytest.raises(DocumentError, match="out of range"):
        as_time("9999-12-31T23:59:59.999999Z", ())
    first = as_time("0001-01-01T00:00:00Z", ())
    for now in (first, last):
        assert decide(request(), IDLE, policy(timezone="Asia/Shanghai"), topology(), now).shed is None
        assert decide(request(), IDLE, policy(timezone="America/New_York"), topology(), now).shed is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/moderation/invocations/",
        "//v1/models/moderation/invocations",
        "/V1/models/moderation/invocations",
        "/v1/models/../models/moderation/invocations",
        "/v1/models/moderation/./invocations",
        "/v1/models//invocations",
        "/v1/models/moderation%2Finvocations",
        "/v1/models/%6doderation/invocations",
        "/v1/models/moderation /invocations",
        "/v1/models/мoderation/invocations",
        "/v1/models/\ud800/invocations",
        "/v1/models/moderation/invocations?x=1",
        "v1/models/moderation/invocations",
    ],
)
def test_a_path_is_what_it_is(path: str) -> None:
    """No decoding, no dots, no case, no trailing slash: another spelling names nothing, and so can bypass no rule."""
    decision = decide(request(path=path), IDLE, policy(), topology(), NOW)
    assert decision.shed is not None
    assert decision.shed.status == 404


def test_a_snapshot_of_nothing_and_of_strangers() -> None:
    """Missing models, lanes and series, and names that nobody knows, leave the default order."""
    empty = {"schema": "inferlane/snapshot/v1", "taken_at": "2026-12-01T02:00:00Z"}
    strange = {"lanes": {"gpu": {"series": {"heat": [["2026-12-01T01:59:00Z", 1]]}}, "dedicated": {}}}
    several: list[object] = [None, {}, {MODEL: {}}, {MODEL: {"lanes": None}}, {MODEL: strange}, {"other": strange}]
    for models in several:
        seen = Snapshot.from_json({**empty, "models": models})
        now = as_time("2026-12-01T02:00:00Z", ())
        assert decide(request(), seen, policy(), topology(), now).order == ("dedicated", "serverless")


def test_a_body_of_nothing_is_a_body() -> None:
    """No length said, or zero: no lane is too small for it."""
    for parts in ({"bytes": 0}, {"bytes": None}):
        asked: Request = request(**parts)
        assert (asked.bytes, decide(asked, IDLE, policy(), topology(), NOW).shed) == (0, None)
