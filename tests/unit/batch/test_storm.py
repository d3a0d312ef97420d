"""What must hold whatever happens: functions killed at any step, services that refuse, events lost, deploys between.

A hypothesis state machine over the whole lane. Nothing here says how a job gets to its end; only that it has one, its
own, once. (DESIGN.md section 6: nothing accepted is ever lost.)
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from functions.core.job import JobState
from tests.unit.batch.world import (
    LANES,
    World,
    batch_topology,
    image_body,
    json_body,
)
from tests.unit.core.builders import DEDICATED, SERVERLESS, topology

TOPOLOGIES = [
    batch_topology(),
    batch_topology(target_records=4, max_jobs=1),
    batch_topology(model_name="moderation-2", startup_s=900, max_wait_s=60),
    topology(dedicated=DEDICATED, serverless=SERVERLESS),
    topology(batch={"kind": "batch", "max_bytes": 1000, "model_name": "m", "instance_type": "ml.c5.xlarge"}),
]
KINDS = st.sampled_from(["ok", "ok", "ok", "large", "polite", "bomb"])


class Storm(RuleBasedStateMachine):
    """One lane, and everything that may befall it."""

    @initialize(seed=st.integers(0, 2**32 - 1), on=st.integers(0, len(TOPOLOGIES) - 1))
    def begin(self, seed: int, on: int) -> None:
        """A clear sky."""
        self.world = World(TOPOLOGIES[on], seed)
        self.number = 0

    @rule(
        kinds=st.lists(KINDS, min_size=1, max_size=8),
        within_s=st.sampled_from([30.0, 200.0, 400.0, 1200.0, 3600.0]),
        form=st.sampled_from(["json", "wide", "image", "apart"]),
        lanes=st.sampled_from([LANES, LANES, LANES[:1], ()]),
        recorded=st.sampled_from([True, True, True, False]),
        guarded=st.booleans(),
    )
    def accept(
        self, kinds: list[str], within_s: float, form: str, lanes: tuple[str, ...], recorded: bool, guarded: bool
    ) -> None:
        """Some requests that may wait; of the unrecorded the caller was told that they failed."""
        world, image, wide = self.world, form == "image", form == "wide"
        for kind in kinds:
            self.number += 1
            body = image_body(self.number, kind) if image else json_body(self.number, kind, wide=wide)
            with world.calm():
                world.accept(
                    self.number,
                    within_s,
                    body=body,
                    content_type="image/png" if image else "application/json",
                    lanes=lanes,
                    apart=form == "apart",
                    recorded=recorded,
                    guarded=guarded,
                )

    @rule(number=st.integers(1, 40))
    def again(self, number: int) -> None:
        """A caller sends what he has sent before, under the same key."""
        with self.world.calm():
            for key in [key for key in self.world.asked if key.id == f"{number:032x}"]:
                asked = self.world.asked[key]
                self.world.accept(number, body=asked.body, lanes=asked.lanes, tenant=key.tenant)

    @rule(number=st.integers(1, 40))
    def cancel(self, number: int) -> None:
        """A caller has thought better of it."""
        with self.world.calm():
            for key in [key for key in self.world.asked if key.id == f"{number:032x}"]:
                self.world.cancel(key)

    @rule(seconds=st.sampled_from([5.0, 60.0, 60.0, 130.0, 600.0, 1200.0]))
    def wait(self, seconds: float) -> None:
        """Time goes on."""
        self.world.wait(seconds)

    @rule(time_left_s=st.sampled_from([300.0, 300.0, 46.0, 10.0]))
    def collect(self, time_left_s: float) -> None:
        """The scheduler's minute."""
        self.world.collect(time_left_s)

    @rule(at=st.integers(0, 60))
    def collect_killed(self, at: int) -> None:
        """A collector dies before its n-th effect."""
        self.world.weather.kill_in(at)
        self.world.collect()
        self._revive()

    @rule(number=st.integers(0, 5), at=st.none() | st.integers(0, 60), keep=st.booleans())
    def event(self, number: int, at: int | None, keep: bool) -> None:
        """An event comes, in no order; perhaps it comes again; perhaps the settler dies of it."""
        events = self.world.transforms.events
        if not events:
            return
        name = events[number % len(events)] if keep else events.pop(number % len(events))
        if at is not None:
            self.world.weather.kill_in(at)
        self.world.settle(name)
        self._revive()

    @rule()
    def events(self) -> None:
        """All of them, in order."""
        for name in tuple(self.world.transforms.events):
            self.world.settle(name)
        self.world.transforms.events.clear()

    @rule()
    def events_lost(self) -> None:
        """Nobody is told."""
        self.world.transforms.events.clear()

    @rule(number=st.integers(0, 10))
    def event_of_nothing(self, number: int) -> None:
        """An event of a job that has not ended, or was settled long ago."""
        names = sorted(self.world.runs.rows)
        if names:
            self.world.settle(names[number % len(names)])

    @rule(at=st.none() | st.integers(0, 30))
    def promote(self, at: int | None) -> None:
        """A batch of promotion's queue."""
        if at is not None:
            self.world.weather.kill_in(at)
        self.world.promote()
        self._revive()

    @rule(at=st.integers(0, 40), seconds=st.sampled_from([0.0, 60.0, 1000.0]), settles=st.booleans())
    def two_collectors(self, at: int, seconds: float, settles: bool) -> None:
        """A collector that outlived its lease goes on after another has worked, and perhaps a run was settled."""

        def other() -> None:
            world = self.world
            world.collect()
            world.wait(seconds)
            if settles:
                for name in tuple(world.transforms.events):
                    world.settle(name)
                world.collect()

        self.world.runs.leases = False
        self.world.weather.visit_in(at, other)
        self.world.collect()
        self._revive()
        self.world.runs.leases = True

    @rule(at=st.integers(0, 40), seconds=st.sampled_from([0.0, 1000.0]))
    def two_settlers(self, at: int, seconds: float) -> None:
        """The same event twice at once, and the collector with them."""
        events = tuple(self.world.transforms.events)
        if not events:
            return

        def other() -> None:
            self.world.settle(events[0])
            self.world.wait(seconds)
            self.world.collect()
            for name in tuple(self.world.transforms.events):
                self.world.settle(name)

        self.world.weather.visit_in(at, other)
        self.world.settle(events[0])
        self._revive()

    def _revive(self) -> None:
        """The next process lives."""
        self.world.weather.revive()

    @rule(trouble=st.sampled_from([0.0, 0.0, 0.02, 0.2]))
    def weather(self, trouble: float) -> None:
        """Services throttle, or answer no more."""
        self.world.weather.trouble = trouble

    @rule(unruly=st.booleans())
    def queues(self, unruly: bool) -> None:
        """Messages come twice, and in any order."""
        self.world.work.unruly = self.world.promotions.unruly = unruly

    @rule(on=st.integers(0, len(TOPOLOGIES) - 1))
    def deploy(self, on: int) -> None:
        """Other lanes from now on."""
        self.world.topology = TOPOLOGIES[on]

    @rule(quota=st.sampled_from([0, 1, 100]))
    def quota(self, quota: int) -> None:
        """The account may run fewer jobs."""
        self.world.transforms.quota = quota

    @rule(whole=st.booleans())
    def next_job_fails(self, whole: bool) -> None:
        """As a whole, or by an output that lacks answers."""
        if whole:
            self.world.transforms.fail_next = 1
        else:
            self.world.transforms.lose_next = 1

    @rule(up=st.booleans())
    def lanes(self, up: bool) -> None:
        """The lanes that answer at once are there, or not."""
        self.world.lanes_up = up

    @rule()
    def audit(self) -> None:
        """The auditor's hour."""
        self.world.audit()

    @invariant()
    def holds(self) -> None:
        """accepted = done + failed + expired + cancelled + open, each answer its own, each end final."""
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:  # hypothesis' name for it
        """When the dust settles every accepted job has ended, and no run keeps any."""
        if not hasattr(self, "world"):
            return
        self.world.settle_down()
        ended = [job.state for job in self.world.jobs.rows.values()]
        assert JobState.ACCEPTED not in ended


Storm.TestCase.settings = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStorm = Storm.TestCase
TestStorm.__doc__ = """Every accepted job ends once, with its own answer, whatever befalls the lane."""


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_a_long_day(seed: int) -> None:
    """The same over hours of work: minute after minute something else goes wrong."""
    chance = Random(seed)
    storm = Storm()
    storm.begin(seed, chance.choice((0, 0, 1, 1, 2, 3)))
    world = storm.world
    for _ in range(chance.randint(5, 40)):
        _minute(storm, chance)
        world.check()
    storm.teardown()


def _minute(storm: Storm, chance: Random) -> None:
    """A minute with a mishap or two."""
    if chance.random() < 0.5:
        kinds = chance.choices(("ok", "large", "polite", "bomb"), (12, 2, 2, 1), k=chance.randint(1, 6))
        storm.accept(
            kinds=kinds,
            within_s=chance.choice((90.0, 400.0, 1200.0, 3600.0)),
            form=chance.choice(("json", "json", "wide", "image", "apart")),
            lanes=chance.choice((LANES, LANES, LANES, ())),
            recorded=chance.random() < 0.95,
            guarded=chance.random() < 0.7,
        )
    number = chance.randint(1, storm.number + 1)
    mishaps: tuple[Callable[[], object], ...] = (
        lambda: storm.again(number=number),
        lambda: storm.cancel(number=number),
        lambda: storm.collect_killed(at=chance.randint(0, 40)),
        lambda: storm.event(number=number, at=chance.randint(0, 60), keep=chance.random() < 0.7),
        storm.events_lost,
        lambda: storm.event_of_nothing(number=number),
        lambda: storm.promote(at=chance.randint(0, 20)),
        lambda: storm.two_collectors(
            at=chance.randint(0, 40), seconds=chance.choice((0.0, 300.0, 1000.0)), settles=chance.random() < 0.7
        ),
        lambda: storm.two_settlers(at=chance.randint(0, 40), seconds=chance.choice((0.0, 1000.0))),
        lambda: storm.weather(trouble=chance.choice((0.0, 0.0, 0.02, 0.1))),
        lambda: storm.queues(unruly=chance.random() < 0.5),
        lambda: storm.deploy(on=chance.randrange(len(TOPOLOGIES))),
        lambda: storm.quota(quota=chance.choice((0, 1, 100))),
        lambda: storm.next_job_fails(whole=chance.random() < 0.5),
        lambda: storm.lanes(up=chance.random() < 0.7),
        storm.audit,
    )
    for mishap in chance.sample(mishaps, chance.choice((0, 1, 2))):
        mishap()
    storm.wait(seconds=chance.choice((60.0, 60.0, 60.0, 300.0)))
    acts: list[Callable[[], object]] = [lambda: storm.collect(300.0), storm.events, lambda: storm.promote(at=None)]
    chance.shuffle(acts)
    for act in acts:
        if chance.random() < 0.9:
            act()
