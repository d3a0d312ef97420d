"""Contract files: what is read, what is written, and how a wrong one is refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.document import DocumentError, Problems, as_number, as_time, show_time
from functions.core.patterns import PathPattern, wildcard_match
from functions.core.request import ANONYMOUS, Request
from functions.core.snapshot import LaneState, LatchState, Snapshot
from functions.core.topology import BatchLane, ServerlessLane, Topology
from functions.core.units import duration_s, percent, size_bytes
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, SERVERLESS, lane, points, snapshot, topology_document

DESIGN_SNAPSHOT = {
    "schema": "inferlane/snapshot/v1",
    "taken_at": "2026-12-01T02:00:00Z",
    "models": {
        MODEL: {
            "lanes": {
                "dedicated": {
                    "series": {"cpu_percent": [["2026-12-01T01:55:00Z", 91.0]]},
                    "instances": 2,
                    "in_flight": 3,
                    "breaker": "closed",
                }
            }
        }
    },
}


def test_the_designs_snapshot_is_read() -> None:
    """The example of the contract, field by field."""
    found = Snapshot.from_json(DESIGN_SNAPSHOT)
    state = found.lane(MODEL, "dedicated")
    assert (state.instances, state.in_flight, state.breaker) == (2, 3, "closed")
    assert found.taken_at is not None
    assert state.series["cpu_percent"].points == ((found.taken_at - 300, 91.0),)


def test_a_snapshot_reads_back_what_it_writes() -> None:
    """Through JSON and back: the same, other periods and latches included."""
    written = snapshot(
        latches={"hot": LatchState(True, NOW - 60)},
        dedicated=lane({"cpu_percent": points(1.0, 2.0, period_s=10)}, instances=2, in_flight=1, breaker="half_open"),
    )
    assert Snapshot.from_json(json.loads(json.dumps(written.to_json()))) == written


def test_a_lanes_period_holds_for_its_series() -> None:
    """`period_s` may stand on the lane, or on one series."""
    document = {
        **DESIGN_SNAPSHOT,
        "models": {
            MODEL: {
                "lanes": {
                    "dedicated": {
                        "period_s": 10,
                        "series": {"a": [], "b": {"period_s": 30, "points": [["2026-12-01T01:55:00Z", 1]]}},
                    }
                }
            }
        },
    }
    series = Snapshot.from_json(document).lane(MODEL, "dedicated").series
    assert (series["a"].period_s, series["b"].period_s) == (10, 30)


def test_own_requests_in_flight_are_counted_at_least() -> None:
    """What this instance holds raises what was read, and never lowers it."""
    seen = snapshot(dedicated=LaneState(in_flight=3))
    assert seen.with_in_flight({(MODEL, "dedicated"): 2}).lane(MODEL, "dedicated").in_flight == 3
    assert seen.with_in_flight({(MODEL, "dedicated"): 5}).lane(MODEL, "dedicated").in_flight == 5
    assert seen.with_in_flight({(MODEL, "serverless"): 1}).lane(MODEL, "serverless").in_flight == 1


@pytest.mark.parametrize("age_s", [0.0, 600.0, 601.0])
def test_a_lane_is_known_for_ten_minutes(age_s: float) -> None:
    """Both the reading and the lane's newest finished point must be young enough."""
    assert snapshot(dedicated=lane()).known(MODEL, "dedicated", NOW + age_s) is (age_s + 60 <= 600)
    assert Snapshot(None).known(MODEL, "dedicated", NOW) is False


def test_a_topology_is_read_with_its_defaults() -> None:
    """Times and overheads of the design where the document is silent; new fields are no error."""
    found = Topology.from_json(
        topology_document(dedicated={**DEDICATED, "novel": 1}, serverless=SERVERLESS, batch=BATCH)
    )
    serverless = found.models[MODEL]["serverless"]
    assert isinstance(serverless, ServerlessLane)
    assert (serverless.cold_start_ms, serverless.overhead_ms, serverless.expected_p99_ms) == (6000, 10, None)
    assert found.models[MODEL]["batch"] == BatchLane(
        "batch", "batch", 104_857_600, 300.0, 0.204, None, instance_type="ml.c5.xlarge"
    )
    assert set(found.sync_lanes(MODEL)) == {"dedicated", "serverless"}


@pytest.mark.parametrize(
    ("read", "document", "message"),
    [
        (Topology.from_json, {"schema": "x"}, "schema: expected 'inferlane/topology/v1', found 'x'"),
        (Topology.from_json, topology_document(gpu=DEDICATED), f"models.{MODEL}.lanes: unknown lane 'gpu'"),
        (
            Topology.from_json,
            topology_document(dedicated={**DEDICATED, "vcpus": 0}),
            f"models.{MODEL}.lanes.dedicated.vcpus: must be at least 1",
        ),
        (
            Topology.from_json,
            topology_document(dedicated={**DEDICATED, "max_instances": 1, "min_instances": 2}),
            f"models.{MODEL}.lanes.dedicated.max_instances: 1 is below min_instances 2",
        ),
        (
            Topology.from_json,
            topology_document(serverless={**SERVERLESS, "max_bytes": 1.5}),
            f"models.{MODEL}.lanes.serverless.max_bytes: expected a whole number",
        ),
        (Snapshot.from_json, {**DESIGN_SNAPSHOT, "taken_at": "yesterday"}, "taken_at: expected an ISO 8601 time"),
        (Snapshot.from_json, {**DESIGN_SNAPSHOT, "taken_at": "2026-12-01T02:00:00"}, "taken_at: time"),
        (
            Snapshot.from_json,
            {**DESIGN_SNAPSHOT, "models": {"m": {"lanes": {"dedicated": {"breaker": "ajar"}}}}},
            "models.m.lanes.dedicated.breaker: unknown value 'ajar'",
        ),
        (
            Snapshot.from_json,
            {**DESIGN_SNAPSHOT, "models": {"m": {"lanes": {"d": {"series": {"x": [[1]]}}}}}},
            "models.m.lanes.d.series.x[0]: expected [time, value]",
        ),
        (Snapshot.from_json, {**DESIGN_SNAPSHOT, "latches": {"hot": {"on": 1}}}, "latches.hot.on: expected true"),
        (Request.from_json, {"schema": "inferlane/request/v1"}, "key 'path' is missing"),
        (
            Request.from_json,
            {"schema": "inferlane/request/v1", "path": "/", "identity": {"kind": "cookie"}},
            "identity.kind: unknown kind 'cookie'",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_cause(
    read: Callable[[object], object], document: object, message: str
) -> None:
    """The message begins with the key's path."""
    with pytest.raises(DocumentError) as refused:
        read(document)
    assert str(refused.value).startswith(message)


junk = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(junk, st.sampled_from(["models", "taken_at", "latches", "region", "identity", "headers", "path", "bytes"]))
def test_any_value_is_read_or_refused_cleanly(value: object, key: str) -> None:
    """Contract parsers raise nothing but DocumentError."""
    for read, base in (
        (Topology.from_json, topology_document()),
        (Snapshot.from_json, DESIGN_SNAPSHOT),
        (Request.from_json, {"schema": "inferlane/request/v1", "path": "/"}),
    ):
        with contextlib.suppress(DocumentError):
            read({**base, key: value})


def test_header_names_lose_their_case_and_claims_become_text() -> None:
    """As API Gateway hands them over."""
    found = Request.from_json(
        {
            "schema": "inferlane/request/v1",
            "path": "/",
            "headers": {"X-Canary": "Yes", "Content-Type": "text/plain"},
            "identity": {"kind": "jwt", "claims": {"client_id": "acme", "admin": True, "n": 3}},
        }
    )
    assert found.headers["x-canary"] == "Yes"
    assert found.content_type == "text/plain"
    assert found.identity.claims == {"client_id": "acme", "admin": "true", "n": "3"}


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("20s", 20), ("5m", 300), ("1h", 3600), ("1.5h", 5400), ("1d", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    """Each unit."""
    assert duration_s(text, ()) == seconds


@pytest.mark.parametrize(
    "value", ["", "5", "m", "-5m", "5 minutes", "5M", 300, None, True, "٥m", "1e3s", "9" * 99 + "s"]
)
def test_what_is_no_duration(value: object) -> None:
    """A bare number would hide a factor of 1,000."""
    with pytest.raises(DocumentError):
        duration_s(value, ())


@pytest.mark.parametrize(
    ("value", "count"), [("2MB", 2e6), ("2MiB", 2 * 2**20), ("1KB", 1e3), ("10 B", 10), (812, 812), ("1GiB", 2**30)]
)
def test_sizes(value: object, count: float) -> None:
    """MB is 10⁶, MiB is 2²⁰, a bare number bytes."""
    assert size_bytes(value, ()) == count


def test_percents() -> None:
    """0 % to 100 %."""
    assert percent("10%", ()) == 0.1
    for wrong in ("10", "101%", 10, "ten%"):
        with pytest.raises(DocumentError):
            percent(wrong, ())


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("*", "", True),
        ("a*b", "axxb", True),
        ("a*b", "axxbc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[a]*", "[a]b", True),
        ("A", "a", False),
        ("*a*a*a*a*b", "a" * 2000, False),
    ],
)
def test_wildcards(pattern: str, text: str, matches: bool) -> None:
    """`*` any run, `?` one, all else literal; a hostile text does not stall it."""
    assert wildcard_match(pattern, text) is matches


def test_named_segments_are_taken() -> None:
    """`{name}` takes one whole, non-empty segment."""
    pattern = PathPattern.of("/v1/{model}/x", ())
    assert pattern.match("/v1/m/x") == {"model": "m"}
    assert pattern.match("/v1//x") is None
    assert pattern.match("v1/m/x") is None


@pytest.mark.parametrize("text", ["/a*", "/{A}", "/{a}/{a}", "/**/a"])
def test_what_is_no_path_pattern(text: str) -> None:
    """Half wildcards, odd names, a name twice, ** in the middle."""
    with pytest.raises(DocumentError):
        PathPattern.of(text, ())


def test_times_are_written_in_utc() -> None:
    """Whole seconds without decimals."""
    assert show_time(0) == "1970-01-01T00:00:00Z"
    assert show_time(0.5) == "1970-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("value", "cause"),
    [(0, "must be above 0, found 0"), (10**400, "finite"), (float("nan"), "finite"), (True, "found a yes/no value")],
)
def test_a_number_has_bounds(value: object, cause: str) -> None:
    """Above is not at least; what no float can hold is no number."""
    with pytest.raises(DocumentError, match=cause):
        as_number(value, ("x",), above=0)
    assert as_number(0.001, ("x",), above=0) == 0.001


@pytest.mark.parametrize(
    ("text", "cause"),
    [("noon", "ISO 8601"), ("2026-12-01T02:00:00", "append Z"), ("0001-01-01T00:00:00+23:00", "out of range")],
)
def test_a_time_is_a_moment(text: str, cause: str) -> None:
    """With an offset, and within the calendar."""
    with pytest.raises(DocumentError, match=cause):
        as_time(text, ("at",))


def test_an_anonymous_caller_may_be_written_out() -> None:
    """The kind alone, or no identity at all."""
    for identity in ({"kind": "anonymous"}, None):
        document = {"schema": "inferlane/request/v1", "path": "/", "identity": identity}
        assert Request.from_json(document).identity == ANONYMOUS


def test_a_request_may_name_the_model_of_its_body() -> None:
    """What the router peeked, for explain and the simulator."""
    document = {"schema": "inferlane/request/v1", "path": "/v1/chat/completions", "model": "m"}
    assert Request.from_json(document).model == "m"


def test_stopped_experiments_travel_with_the_snapshot() -> None:
    """Running ones are as good as not named; another state is a mistake."""
    document = {"schema": "inferlane/snapshot/v1", "taken_at": "2026-12-01T02:00:00Z"}
    found = Snapshot.from_json({**document, "experiments": {"a": "stopped", "b": "running"}})
    assert found.stopped == {"a"}
    assert Snapshot.from_json(found.to_json()) == found
    with pytest.raises(DocumentError, match=r"experiments\.a: unknown state"):
        Snapshot.from_json({**document, "experiments": {"a": "done"}})


def test_a_reading_has_an_age() -> None:
    """None when there was none; never negative."""
    assert [Snapshot(at).age_s(100.0) for at in (None, 40.0, 160.0)] == [None, 60.0, 0.0]


def test_errors_are_sorted_by_place_and_the_whole_after_its_parts() -> None:
    """A place that the document does not have stands where the last one before it does."""
    notes = Problems()
    for path in ((), ("b",), ("a", 1), ("a", 0), ("c", "x"), ("a",)):
        notes.add(path, "wrong")
    document = {"a": [1, 2], "b": 1, "c": 3}
    assert [error.path for error in notes.in_order_of(document)] == [("a", 0), ("a", 1), ("a",), ("b",), ("c", "x"), ()]
