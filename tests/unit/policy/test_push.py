"""Pushing and taking back: what AppConfig is asked, and what is left when something fails."""

from __future__ import annotations

import json

import pytest

from tests.unit.policy.fakes import BadRequestError, ConflictError, FakeAppConfig
from workbench.errors import UserError
from workbench.policy import document
from workbench.policy.document import Document
from workbench.policy.live import PUSHED
from workbench.policy.push import Cleared, Pusher, Result


def policy(version: str, extra: str = "") -> Document:
    return document.parse(f"schema: inferlane/policy/v1\nversion: {version}\n{extra}".encode(), "policy.yaml")


def pusher(cloud: FakeAppConfig, slept: list[float] | None = None) -> Pusher:
    """A pusher whose clock is the time it slept."""
    pauses = slept if slept is not None else []
    return Pusher(cloud.store(), sleep=pauses.append, clock=lambda: sum(pauses))


def seeded(*versions: str, state: str = "COMPLETE") -> FakeAppConfig:
    """A cloud where each version was in force once; the last one has `state`."""
    cloud = FakeAppConfig()
    for number, version in enumerate(versions, 1):
        cloud.seed(policy(version).content(), state if number == len(versions) else "COMPLETE")
    return cloud


def test_a_push_is_a_version_and_its_deployment() -> None:
    """The document as compact JSON becomes a new version, deployed and waited for."""
    cloud, slept = seeded("a"), list[float]()
    cloud.looks = 3
    found = policy("b", "timezone: UTC\n")
    assert pusher(cloud, slept).push(found, "b") == Result(2, "b", 2, changed=True)
    assert cloud.versions[2] == b'{"schema":"inferlane/policy/v1","timezone":"UTC","version":"b"}'
    assert cloud.deployments[-1]["State"] == "COMPLETE"
    assert slept == [0.2, 0.2]


def test_what_is_in_force_is_not_pushed_again() -> None:
    """The same document, however it is written: nothing is created."""
    cloud = seeded("a")
    again = document.parse(b"# why\nversion: a\nschema: 'inferlane/policy/v1'\n", "policy.yaml")
    assert pusher(cloud).push(again, "a") == Result(1, "a", None, changed=False)
    assert cloud.calls == ["list_deployments"]


def test_the_first_push_needs_no_history() -> None:
    """A stack whose policy was never deployed takes one."""
    cloud = FakeAppConfig()
    assert pusher(cloud).push(policy("a"), "a").version == 1


def test_progress_is_told() -> None:
    """Percent and state at every look."""
    cloud, told = seeded("a"), []
    cloud.looks = 2
    Pusher(cloud.store(), sleep=lambda _s: None, progress=lambda *step: told.append(step)).push(policy("b"), "b")
    assert told == [(50.0, "DEPLOYING"), (100.0, "COMPLETE")]


def test_a_rollout_that_lasts_is_told_with_a_way_out() -> None:
    """While one goes on, a push creates nothing and names the command that stops it."""
    cloud = seeded("a", "b", state="BAKING")
    with pytest.raises(UserError, match=r"version 2 is being rolled out \(BAKING, 30 %\).*rollback --stack test"):
        pusher(cloud).push(policy("c"), "c")
    assert set(cloud.versions) == {1, 2}


def test_a_refused_document_is_told_by_its_cause() -> None:
    """What AppConfig's validator says is passed on in one line; nothing is deployed."""
    cloud = seeded("a")
    cloud.refuses_documents = "Error:\nrules[0]: no"
    with pytest.raises(UserError, match="refuses the document") as refused:
        pusher(cloud).push(policy("b"), "b")
    assert str(refused.value).isprintable()
    assert set(cloud.versions) == {1}


@pytest.mark.parametrize("error", [BadRequestError, ConflictError, ConnectionError])
def test_a_version_that_cannot_be_deployed_is_removed(error: type[Exception]) -> None:
    """No hosted version is left behind without a deployment."""
    cloud = seeded("a")
    cloud.refuses_deployments = error
    with pytest.raises((UserError, error)):
        pusher(cloud).push(policy("b"), "b")
    assert set(cloud.versions) == {1}


def test_a_rollback_by_an_alarm_is_told() -> None:
    """A deployment that AppConfig takes back is an error that names the alarm."""
    cloud = seeded("a")
    cloud.ends = "ROLLED_BACK"
    with pytest.raises(UserError, match=r"ended ROLLED_BACK, the policy before it serves on: .*errors-moderation"):
        pusher(cloud).push(policy("b"), "b")


def test_a_deployment_that_never_ends_is_told() -> None:
    """Ten minutes beyond its plan, waiting ends with the state it is in; a slow plan is looked at every 5 s."""
    cloud, slept = seeded("a"), list[float]()
    cloud.looks, cloud.minutes = 10**6, 20
    with pytest.raises(UserError, match="still DEPLOYING"):
        pusher(cloud, slept).push(policy("b"), "b")
    assert set(slept) == {5.0}
    assert 1800 < sum(slept) < 1900


def test_rollbacks_walk_back() -> None:
    """Each brings the version before the one in force, until there is none."""
    cloud = seeded("a", "b", "c")
    assert pusher(cloud).rollback() == Result(2, "b", 4, changed=True)
    assert pusher(cloud).rollback() == Result(1, "a", 5, changed=True)
    with pytest.raises(UserError, match="no earlier policy than version 1"):
        pusher(cloud).rollback()


def test_a_version_that_was_never_in_force_is_no_way_back() -> None:
    """What was rolled back itself, or deleted since, is passed over."""
    cloud = seeded("a", "b", "c")
    cloud.deployments[1]["State"] = "ROLLED_BACK"
    assert pusher(cloud).rollback().version == 1
    cloud = seeded("a", "b", "c")
    del cloud.versions[2]
    assert pusher(cloud).rollback().version == 1


def test_a_rollback_goes_where_it_is_told() -> None:
    """--to names any version that is there, also a newer one; the one in force needs nothing."""
    cloud = seeded("a", "b", "c")
    assert pusher(cloud).rollback(to=1) == Result(1, "a", 4, changed=True)
    assert pusher(cloud).rollback(to=3) == Result(3, "c", 5, changed=True)
    assert pusher(cloud).rollback(to=3) == Result(3, "c", None, changed=False)
    with pytest.raises(UserError, match="no hosted version 9; it has: 3, 2, 1"):
        pusher(cloud).rollback(to=9)


@pytest.mark.parametrize("state", ["DEPLOYING", "BAKING"])
def test_a_rollback_stops_a_rollout_that_lasts(state: str) -> None:
    """AppConfig then goes back by itself: no new deployment."""
    cloud = seeded("a", "b", state=state)
    assert pusher(cloud).rollback() == Result(1, "a", None, changed=True)
    assert (cloud.calls.count("stop"), cloud.calls.count("start")) == (1, 0)


def test_a_rollback_of_a_rollout_goes_on_to_the_version_asked() -> None:
    """--to with a rollout under way: it is stopped, then the version is deployed."""
    cloud = seeded("a", "b", "c", state="DEPLOYING")
    assert pusher(cloud).rollback(to=1) == Result(1, "a", 4, changed=True)


@pytest.mark.parametrize("content", [b"not json", json.dumps({"schema": "inferlane/policy/v1", "rulez": 1}).encode()])
def test_a_version_that_is_no_policy_is_not_brought_back(content: bytes) -> None:
    """What this program cannot read, it does not deploy."""
    cloud = FakeAppConfig()
    cloud.seed(content)
    cloud.seed(policy("b").content())
    with pytest.raises(UserError, match="hosted version 1 of stack test is no policy"):
        pusher(cloud).rollback()
    assert len(cloud.deployments) == 2


def test_what_is_live_is_the_newest_that_completed() -> None:
    """Not what still rolls out, and not what was taken back."""
    cloud = seeded("a", "b", state="DEPLOYING")
    live = cloud.store().live()
    assert live is not None
    assert (live.version, live.policy.version, live.value["version"]) == (1, "a", "a")
    assert FakeAppConfig().store().live() is None


def test_clear_leaves_the_stacks_own_document_alone_and_in_force() -> None:
    """After pushes, the deploy's version serves again before anything is deleted, and only it is left."""
    cloud = seeded("own")
    pusher(cloud).push(policy("b"), "b")
    pusher(cloud).push(policy("c"), "c")
    cloud.calls.clear()
    assert pusher(cloud).clear() == Cleared(Result(1, "own", 4, changed=True), (2, 3), (1,))
    assert set(cloud.versions) == {1}
    assert [call for call in cloud.calls if call in ("start", "delete")] == ["start", "delete", "delete"]
    live = cloud.store().live()
    assert live is not None
    assert live.version == 1


def test_clear_of_a_stack_without_pushes_changes_nothing() -> None:
    """It may be run twice."""
    cloud = seeded("own")
    assert pusher(cloud).clear() == Cleared(Result(1, "own", None, changed=False), (), (1,))
    assert not {"start", "delete"} & set(cloud.calls)


def test_clear_keeps_what_no_push_made() -> None:
    """Versions by hand, or that Pulumi has yet to delete: the newest serves, unless one of them does already."""
    cloud = seeded("old", "new")
    pusher(cloud).push(policy("c"), "c")
    assert pusher(cloud).clear() == Cleared(Result(2, "new", 4, changed=True), (3,), (1, 2))
    pusher(cloud).rollback(to=1)
    assert pusher(cloud).clear() == Cleared(Result(1, "old", None, changed=False), (), (1, 2))


def test_clear_deletes_nothing_while_no_version_could_serve_instead() -> None:
    """Without the deploy's version, or during a rollout, or when its rollout fails: all stays, and why is told."""
    orphan = FakeAppConfig()
    orphan.seed(policy("a").content(), label=f"{PUSHED}1")
    with pytest.raises(UserError, match=r"stack test holds no policy version that its deploy made.*deploy the stack"):
        pusher(orphan).clear()
    rolling = seeded("own", state="BAKING")
    with pytest.raises(UserError, match="version 1 is being rolled out"):
        pusher(rolling).clear()
    failing = seeded("own")
    pusher(failing).push(policy("b"), "b")
    failing.ends = "ROLLED_BACK"
    with pytest.raises(UserError, match="ended ROLLED_BACK"):
        pusher(failing).clear()
    assert (set(orphan.versions), set(rolling.versions), set(failing.versions)) == ({1}, {1}, {1, 2})
