"""Every example of the article, as the ready policy in policies/examples, decides what the article says."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
import yaml

from functions.core.decide import decide
from functions.core.decision import Decision
from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy
from functions.core.request import Request
from functions.core.snapshot import Series, Snapshot
from functions.core.topology import Topology
from tests.unit.core.builders import BATCH, DEDICATED, IDLE, NOW, SERVERLESS, lane, points, request, snapshot, topology

EXAMPLES = Path(__file__).parents[3] / "policies" / "examples"
FULL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH)
OPS = {"kind": "iam", "arn": "arn:aws:sts::123456789012:assumed-role/ops-console/anna"}
BUSY = snapshot(dedicated=lane({"concurrency": points(3.5)}, instances=1), serverless=lane())


def example(name: str) -> Policy:
    return parse_policy(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))


def by(
    name: str, asked: Request | None = None, seen: Snapshot = IDLE, now: float = NOW, on: Topology = FULL
) -> Decision:
    return decide(asked or request(), seen, example(name), on, now)


def at(clock: str) -> float:
    """A Tuesday's time in Shanghai."""
    return datetime.fromisoformat(f"2026-12-01T{clock}+08:00").timestamp()


def low(**parts: object) -> Request:
    return request(headers={"x-inferlane-priority": "low"}, **parts)


def share_of(name: str, rule: str, seen: Snapshot = IDLE, now: float = NOW, **parts: object) -> float:
    policy = example(name)
    taken = [decide(request(id=f"r-{i}", **parts), seen, policy, FULL, now).rule == rule for i in range(2_000)]
    return sum(taken) / len(taken)


def test_path() -> None:
    """/realtime/chat goes to the dedicated cluster, other paths to serverless."""
    chat = by("path", request(path="/realtime/chat"))
    assert (chat.rule, chat.order) == ("realtime-chat", ("dedicated", "serverless"))
    assert by("path").order == ("serverless", "dedicated")


@pytest.mark.parametrize(("deadline_ms", "order"), [("99", ("dedicated",)), ("100", ("serverless", "dedicated"))])
def test_latency_below_100_ms(deadline_ms: str, order: tuple[str, ...]) -> None:
    """Who cannot wait 100 ms gets the dedicated cluster and nothing else."""
    assert by("tight-latency", request(headers={"x-inferlane-deadline-ms": deadline_ms})).order == order


@pytest.mark.parametrize(
    ("clock", "rule"), [("01:59:59", "default"), ("02:00", "night"), ("04:59:59", "night"), ("05:00", "default")]
)
def test_night_window(clock: str, rule: str) -> None:
    """From two to five in Shanghai, low priority goes to the batch queue and is due within the hour."""
    decision = by("night-window", low(), now=at(clock))
    assert decision.rule == rule
    assert decision.async_ == (rule == "night")
    assert decision.within_s == (3600 if rule == "night" else None)
    assert by("night-window", request(), now=at(clock)).rule == "default"


def test_without_a_batch_lane_the_night_is_serverless() -> None:
    """The same policy in a stage that has no batch lane."""
    decision = by("night-window", low(), now=at("03:00"), on=topology())
    assert (decision.order, decision.async_) == (("serverless",), False)


def test_load_above_80_percent_degrades_low_priority() -> None:
    """3.5 of 4 slots busy: low priority leaves, normal stays; at 3 nobody leaves."""
    assert by("degrade-on-load", low(), BUSY).order == ("serverless",)
    assert by("degrade-on-load", request(), BUSY).order == ("dedicated", "serverless")
    calm = snapshot(dedicated=lane({"concurrency": points(3.0)}, instances=1), serverless=lane())
    assert by("degrade-on-load", low(), calm).rule == "default"


def hot(series: Series) -> Snapshot:
    return snapshot(dedicated=lane({"cpu_percent": series}), serverless=lane())


@pytest.mark.many
def test_cpu_above_85_percent_for_five_minutes_sheds_a_tenth_until_it_falls() -> None:
    """Four minutes shed nothing, five a tenth; two cool minutes change nothing, three end it."""
    rule = "shed-surge"
    assert share_of(rule, rule, hot(points(*[90.0] * 4))) == 0
    assert share_of(rule, rule, hot(points(*[90.0] * 5))) == pytest.approx(0.1, abs=0.007)
    assert share_of(rule, rule, hot(points(*[90.0] * 5, 80.0, 60.0, 60.0))) == pytest.approx(0.1, abs=0.007)
    assert share_of(rule, rule, hot(points(*[90.0] * 5, 60.0, 60.0, 60.0))) == 0
    shed = next(
        decision
        for i in range(100)
        if (decision := by(rule, request(id=f"r-{i}"), hot(points(*[90.0] * 5)))).rule == rule
    )
    assert shed.order == ("serverless", "dedicated")


def test_vip_lane() -> None:
    """A VIP's key keeps the dedicated cluster when it is full; others leave at 90 %; a claim in a header is refused."""
    full = snapshot(dedicated=lane({"concurrency": points(3.6)}, instances=1), serverless=lane())
    vip = {"kind": "api_key", "key_id": "vip-7"}
    assert by("vip-lane", request(identity=vip), full).order == ("dedicated", "serverless")
    assert by("vip-lane", request(), full).order == ("serverless", "dedicated")
    assert by("vip-lane", request(), BUSY).order == ("dedicated", "serverless")
    forged = by("vip-lane", request(headers={"x-inferlane-tier": "vip", "x-inferlane-priority": "high"}), full)
    assert (forged.rule, forged.tier) == ("overloaded", "standard")
    assert forged.claims_refused == ("priority", "tier")


@pytest.mark.parametrize(
    ("content_type", "size", "rule"),
    [
        ("image/png", 2_000_001, "big-images"),
        ("image/png", 2_000_000, "default"),
        ("text/plain; charset=utf-8", 100_001, "long-texts"),
        ("text/plain", 4_097, "default"),
        ("text/plain", 4_096, "short-texts"),
        ("application/json", 12, "short-texts"),
    ],
)
def test_image_size_and_text_length(content_type: str, size: int, rule: str) -> None:
    """By the body's type and size."""
    assert by("content", request(content_type=content_type, bytes=size)).rule == rule


def test_option_one_static_paths() -> None:
    """As an API gateway would: one path to the dedicated cluster, one to the batch queue."""
    realtime = by("option-one-gateway", request(path="/api/predict/realtime"))
    assert (realtime.order, realtime.async_) == (("dedicated", "serverless"), False)
    submitted = by("option-one-gateway", request(path="/api/predict/batch"))
    assert (submitted.order[0], submitted.async_, submitted.within_s, submitted.deadline_ms) == (
        "batch",
        True,
        3600,
        None,
    )


@pytest.mark.many
def test_option_three_weights_headers_and_identities() -> None:
    """As a service mesh would: 20, 20 and 60 of a hundred; a header; a role."""
    assert share_of("option-three-mesh", "weight-serverless") == pytest.approx(0.2, abs=0.007)
    assert share_of("option-three-mesh", "weight-dedicated-only") == pytest.approx(0.2, abs=0.014)
    assert share_of("option-three-mesh", "default") == pytest.approx(0.6, abs=0.014)
    assert by("option-three-mesh", request(headers={"x-canary": "yes"})).rule == "canary-header"
    beta = {"kind": "iam", "arn": "arn:aws:iam::123456789012:role/beta-app"}
    assert by("option-three-mesh", request(identity=beta)).rule == "beta-users"


@pytest.mark.many
def test_the_night_admin_experiment() -> None:
    """Half of the console's queries from one to six, due within an hour; nobody else's; nothing once it stopped."""
    name, rule = "night-admin-experiment", "experiment/night-admin-to-batch"
    assert share_of(name, rule, now=at("01:00"), identity=OPS) == pytest.approx(0.5, abs=0.02)
    assert share_of(name, rule, now=at("06:00"), identity=OPS) == 0
    assert share_of(name, rule, now=at("03:00")) == 0
    decision = next(
        found
        for i in range(99)
        if (found := by(name, request(id=f"r-{i}", identity=OPS), now=at("03:00"))).rule == rule
    )
    assert (decision.experiment, decision.order, decision.within_s) == ("night-admin-to-batch", ("batch",), 3600)
    stopped = Snapshot(IDLE.taken_at, IDLE.models, stopped=frozenset({"night-admin-to-batch"}))
    assert share_of(name, rule, stopped, at("03:00"), identity=OPS) == 0


def test_by_marginal_cost() -> None:
    """Idle GPU first; a full one that can grow after serverless; one that cannot grow last."""
    times = {"model_latency_p50_ms": points(100.0)}
    idle = snapshot(dedicated=lane(times, in_flight=0), serverless=lane(times))
    assert by("marginal-cost", seen=idle).order == ("dedicated", "serverless")
    full = snapshot(dedicated=lane(times, in_flight=4), serverless=lane(times))
    assert by("marginal-cost", seen=full).order == ("serverless", "dedicated")
    unknown = snapshot(dedicated=lane(in_flight=16, instances=4), serverless=lane())
    assert by("marginal-cost", seen=unknown).order == ("serverless", "dedicated")


def test_the_model_from_the_body_and_from_the_path() -> None:
    """OpenAI's form names it in the body, the Open Inference Protocol in the path."""
    assert by("marginal-cost", request(path="/v1/chat/completions", model="moderation")).model == "moderation"
    assert by("marginal-cost", request(path="/v2/models/moderation/infer")).model == "moderation"
    for asked, status in (
        (request(path="/v1/chat/completions", model="x"), 404),
        (request(path="/v1/chat/completions"), 400),
    ):
        shed = by("marginal-cost", asked).shed
        assert shed is not None
        assert shed.status == status


def test_the_whole_policy_by_day_and_by_night() -> None:
    """Rules in order: chat first, then deadlines, the night, the surge, the load, the images."""
    two = Topology("us-east-1", dict.fromkeys(("moderation", "chat"), FULL.models["moderation"]))
    assert by("whole", request(path="/realtime/chat"), on=two).model == "chat"
    assert by("whole", request(path="/api/predict/batch"), on=two).order[0] == "batch"
    assert by("whole", low(), now=at("03:00"), on=two).rule == "night"
    assert by("whole", low(), BUSY, on=two).rule == "degrade-low"
    assert by("whole", request(content_type="image/jpeg", bytes=3_000_000), on=two).rule == "big-images"
    hurried = request(headers={"x-inferlane-deadline-ms": "50"})
    assert by("whole", hurried, now=at("03:00"), on=two).rule == "tight"
