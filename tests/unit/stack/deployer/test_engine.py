"""The engine on a cloud that is a dictionary: what it does, in which order, and what it remembers when it fails."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from tests.unit.stack.deployer.fakes import TYPE, Things, engine, goal, urn
from workbench.stack.deployer.diff import Goal
from workbench.stack.deployer.engine import Engine
from workbench.stack.deployer.errors import Interrupted, ProgramError, ResourceError, UnmappedError
from workbench.stack.deployer.progress import JsonProgress
from workbench.stack.deployer.state import StateFile


@pytest.fixture
def things() -> Things:
    return Things()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def deploy(path: Path, things: Things, *goals: Goal) -> Engine:
    """One whole deploy; the state goes through the file each time."""
    one = engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO()))
    for wanted in goals:
        one.register(wanted)
    one.finish()
    return one


def test_create_then_same(things: Things, path: Path) -> None:
    """What stands as wanted is left alone, its generated name included."""
    first = deploy(path, things, goal("a"), goal("b", "a", size=1.0))
    second = deploy(path, things, goal("a"), goal("b", "a", size=1))

    assert first.counts == {"create": 2}
    assert second.counts == {"same": 2}
    assert sorted(things.standing) == ["a-1", "b-2"]


def test_update_in_place(things: Things, path: Path) -> None:
    """A property that can change does, in place."""
    deploy(path, things, goal("a", size=1))
    changed = deploy(path, things, goal("a", size=2))

    assert changed.counts == {"update": 1}
    assert things.standing["a-1"]["size"] == 2


def test_replacement_comes_before_the_deletion(things: Things, path: Path) -> None:
    """The new one is made under another name, its dependents follow, and the old one goes last."""
    deploy(path, things, goal("b", name="b", fixed=1), goal("a", "b", name="a", uses="b"))
    things.log.clear()

    deploy(path, things, goal("b", name="b2", fixed=2), goal("a", "b", name="a", uses="b2"))

    assert things.log == ["create b2", "complete b2", "update a", "delete b"]


def test_a_generated_name_is_new_for_a_replacement(things: Things, path: Path) -> None:
    """Both stand for a while, so they cannot share a name."""
    first = deploy(path, things, goal("a", fixed=1))
    engine_two = engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO()), first_number=7)
    engine_two.register(goal("a", fixed=2))

    assert first.counts == {"create": 1}
    assert sorted(things.standing) == ["a-1", "a-7"]


def test_replacement_under_the_same_name_deletes_first(things: Things, path: Path) -> None:
    """Where the name stays, the old one stands in the way."""
    deploy(path, things, goal("a", name="n", fixed=1))
    things.log.clear()

    deploy(path, things, goal("a", name="n", fixed=2))

    assert things.log == ["delete n", "create n", "complete n"]
    assert things.standing == {"n": {"name": "n", "fixed": 2}}


def test_deletions_go_against_the_dependencies(things: Things, path: Path) -> None:
    """What others need is deleted after them."""
    deploy(path, things, goal("a", name="a"), goal("b", "a", name="b"), goal("c", "b", name="c"), goal("d", name="d"))
    things.log.clear()

    deploy(path, things, goal("d", name="d"))

    assert things.log == ["delete c", "delete b", "delete a"]


def test_removed_and_replaced_go_in_one_order(things: Things, path: Path) -> None:
    """A retired resource is deleted after a removed one that needed it."""
    deploy(path, things, goal("a", name="a1"), goal("b", "a", name="b"))
    things.log.clear()

    deploy(path, things, goal("a", name="a2"))

    assert things.log == ["create a2", "complete a2", "delete b", "delete a1"]


def test_a_protected_resource_is_never_replaced_or_deleted(things: Things, path: Path) -> None:
    """Protection stops a replacement, a removal and a destroy before anything happens."""
    deploy(path, things, goal("a", name="a", fixed=1, protect=True))
    things.log.clear()

    with pytest.raises(ResourceError, match="protected"):
        deploy(path, things, goal("a", name="a", fixed=2, protect=True))
    with pytest.raises(ProgramError, match="protected"):
        deploy(path, things)
    with pytest.raises(ProgramError, match=r'protected.*"a"'):
        engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO())).destroy()
    assert things.log == []

    deploy(path, things, goal("a", name="a", fixed=1))  # protection taken off
    deploy(path, things)
    assert things.standing == {}


def test_failure_keeps_what_stands_and_a_rerun_continues(things: Things, path: Path) -> None:
    """After a failure nothing new starts, nothing is deleted, and the next run makes only what is missing."""
    deploy(path, things, goal("old", name="old"))
    things.fail = {"create b"}
    one = engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO()))
    one.register(goal("a", name="a"))

    with pytest.raises(ResourceError, match=r'could not bring up fake:index:Thing "b": create: b was made to fail'):
        one.register(goal("b", name="b"))
    with pytest.raises(ProgramError, match='"c" was not started'):
        one.register(goal("c", name="c"))

    assert sorted(things.standing) == ["a", "old"]
    things.fail = set()
    again = deploy(path, things, goal("a", name="a"), goal("b", name="b"), goal("c", name="c"))
    assert again.counts == {"same": 1, "create": 2, "delete": 1}


def test_an_unfinished_creation_is_completed(things: Things, path: Path) -> None:
    """A resource whose wait failed is not made a second time."""
    things.fail = {"complete a"}
    with pytest.raises(ResourceError):
        deploy(path, things, goal("a", name="a"))
    things.fail = set()
    things.log.clear()

    deploy(path, things, goal("a", name="a"))

    assert things.log == ["complete a"]
    assert StateFile.open(path, "fakes", "test").state.resources[urn("a")].settled


def test_a_broken_creation_is_made_anew(things: Things, path: Path) -> None:
    """What can only be deleted is deleted and made again."""
    things.broken = {"a"}
    with pytest.raises(ResourceError, match="broken"):
        deploy(path, things, goal("a", name="a"))
    things.log.clear()

    with pytest.raises(ResourceError, match="broken"):
        deploy(path, things, goal("a", name="a"))

    assert things.log == ["complete a", "delete a", "create a", "complete a"]


def test_a_failed_update_is_tried_again(things: Things, path: Path) -> None:
    """The state keeps the old inputs until the update has worked."""
    deploy(path, things, goal("a", name="a", size=1))
    things.fail = {"update a"}
    with pytest.raises(ResourceError):
        deploy(path, things, goal("a", name="a", size=2))
    things.fail = set()

    assert deploy(path, things, goal("a", name="a", size=2)).counts == {"update": 1}


def test_going_back_revives_the_retired(things: Things, path: Path) -> None:
    """A deploy that failed after a replacement can be taken back without making the old one a second time."""
    deploy(path, things, goal("a", name="a1"), goal("b", "a", name="b", uses="a1"))
    things.fail = {"update b"}
    with pytest.raises(ResourceError):
        deploy(path, things, goal("a", name="a2"), goal("b", "a", name="b", uses="a2"))
    things.fail = set()
    things.log.clear()

    deploy(path, things, goal("a", name="a1"), goal("b", "a", name="b", uses="a1"))

    assert things.log == ["delete a2"]
    assert sorted(things.standing) == ["a1", "b"]


def test_a_failed_replacement_leaves_the_old_one(things: Things, path: Path) -> None:
    """When the new one cannot be made, the old one is still the recorded one."""
    deploy(path, things, goal("a", name="a1"))
    things.fail = {"create a2"}
    with pytest.raises(ResourceError):
        deploy(path, things, goal("a", name="a2"))

    state = StateFile.open(path, "fakes", "test").state
    assert state.resources[urn("a")].id == "a1"
    assert state.retired == []


def test_vanished_resources_are_made_again(things: Things, path: Path) -> None:
    """The state is not believed against the cloud."""
    deploy(path, things, goal("a", name="a"))
    things.standing.clear()

    assert deploy(path, things, goal("a", name="a")).counts == {"create": 1}


def test_duplicate_urns_are_an_error(things: Things, path: Path) -> None:
    """Two resources of one URN would be one in the state."""
    with pytest.raises(ProgramError, match="two resources have the URN"):
        deploy(path, things, goal("a"), goal("a"))


def test_unknown_types_are_an_error(things: Things, path: Path) -> None:
    """A type without a handler fails, naming the type."""
    with pytest.raises(ResourceError, match="fake:index:Other has no row") as error:
        deploy(path, things, Goal("urn:pulumi:test::fakes::fake:index:Other::x", "fake:index:Other", "x", {}))
    assert isinstance(error.value.__cause__, UnmappedError)


def test_destroy_names_what_is_left(things: Things, path: Path) -> None:
    """A deletion that fails keeps what it depends on; the rest goes."""
    deploy(path, things, goal("a", name="a"), goal("b", "a", name="b"), goal("c", name="c"))
    things.fail = {"delete b"}
    one = engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO()))

    with pytest.raises(ResourceError, match='could not delete fake:index:Thing "b"'):
        one.destroy()

    assert sorted(StateFile.open(path, "fakes", "test").state.resources) == [urn("a"), urn("b")]


def test_interruption_starts_nothing_new(things: Things, path: Path) -> None:
    """After Ctrl-C a registration is refused and nothing is deleted."""
    stop = threading.Event()
    one = engine(StateFile.open(path, "fakes", "test"), things, JsonProgress(io.StringIO()), stop)
    one.register(goal("a", name="a"))
    stop.set()

    with pytest.raises(Interrupted):
        one.register(goal("b", name="b"))
    with pytest.raises(Interrupted):
        one.destroy()
    assert things.standing == {"a": {"name": "a"}}


def test_an_alias_renames(things: Things, path: Path) -> None:
    """A resource known by an earlier URN is the same resource."""
    deploy(path, things, goal("a", name="n"))
    renamed = Goal(urn("b"), TYPE, "b", {"name": "n"}, aliases=(urn("a"),))

    assert deploy(path, things, renamed).counts == {"same": 1}
    assert list(StateFile.open(path, "fakes", "test").state.resources) == [urn("b")]


def test_ignored_changes(things: Things, path: Path) -> None:
    """A property in ignore_changes keeps its recorded value."""
    deploy(path, things, goal("a", name="a", size=1))
    ignoring = Goal(urn("a"), TYPE, "a", {"name": "a", "size": 2}, ignore_changes=frozenset({"size"}))

    assert deploy(path, things, ignoring).counts == {"same": 1}
    assert things.standing["a"]["size"] == 1


def test_retained_resources_only_leave_the_state(things: Things, path: Path) -> None:
    """retain_on_delete forgets instead of deleting."""
    deploy(path, things, Goal(urn("a"), TYPE, "a", {"name": "a"}, retain=True))

    deploy(path, things)

    assert list(things.standing) == ["a"]
    assert StateFile.open(path, "fakes", "test").state.is_empty()


def test_secrets_are_not_in_the_state(things: Things, path: Path) -> None:
    """A secret input is kept as a digest, which still shows a change."""

    def secret(value: str) -> Goal:
        return Goal(urn("a"), TYPE, "a", {"name": "a", "token": value}, secrets=frozenset({"token"}))

    deploy(path, things, secret("hunter2"))

    assert "hunter2" not in path.read_text()
    assert deploy(path, things, secret("hunter2")).counts == {"same": 1}
    assert deploy(path, things, secret("hunter3")).counts == {"update": 1}
