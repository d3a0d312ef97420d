"""The engine: brings the cloud to what the program registers, resource by resource, and keeps the state true.

`register` is called from Pulumi's threads, each resource only after those it depends on. Creates, updates and
replacements happen there; deletions of removed and replaced resources wait for `finish`, in reverse order of
dependency.

Rules
- The state is saved as soon as a resource exists, and again when it is complete. A resource whose completion failed
  stays in the state as unsettled: the next run completes it, or makes it anew when it is broken beyond that.
- A failed update keeps the old inputs in the state, so the next run tries again.
- After the first failure, or Ctrl-C, nothing new starts; running calls end and are recorded.
- A recorded resource that has vanished from the cloud is made again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.diff import Action, Goal, Plan, deletion_waves, plan
from workbench.stack.deployer.errors import (
    BrokenError,
    DeployError,
    Interrupted,
    ProgramError,
    ResourceError,
    UnmappedError,
)
from workbench.stack.deployer.handler import Handler
from workbench.stack.deployer.progress import Progress
from workbench.stack.deployer.row import Instance
from workbench.stack.deployer.state import Record, State, StateFile
from workbench.stack.deployer.values import Properties, encode, encode_inputs

DELETE_THREADS = 16


@dataclass(frozen=True)
class Registered:
    """What the program gets back: the id, the outputs that were mapped, and the inputs they complete."""

    id: str
    outputs: Mapping[str, object]
    inputs: Properties


@dataclass
class Engine:
    """One deploy of one stack."""

    file: StateFile
    cloud: Cloud
    handlers: Mapping[str, Handler]
    progress: Progress
    interrupted: threading.Event
    suffix: Callable[[], str] = lambda: secrets.token_hex(4)[:7]
    clock: Callable[[], float] = time.monotonic
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[ResourceError] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def state(self) -> State:
        return self.file.state

    def register(self, goal: Goal) -> Registered:
        """Brings one resource to its goal; a failure is a `ResourceError` and stops what follows."""
        self._admit(goal)
        try:
            return self._bring(goal)
        except Interrupted:
            raise
        except Exception as error:
            failure = ResourceError(goal.type, goal.name, "could not bring up", error)
            with self._lock:
                self.failures.append(failure)
            raise failure from error

    def finish(self) -> None:
        """Deletes what was replaced or is no longer in the program. Call it only when everything registered stands."""
        removed = [record for urn, record in self.state.resources.items() if urn not in self._seen]
        self._protect(removed)
        self._delete_all([*self.state.retired, *removed])

    def destroy(self) -> None:
        """Deletes everything of the state."""
        everything = [*self.state.retired, *self.state.resources.values()]
        self._protect(everything)
        self._delete_all(everything)

    def standing(self) -> int:
        """How many resources the state holds."""
        return len(self.state.resources) + len(self.state.retired)

    def _admit(self, goal: Goal) -> None:
        with self._lock:
            if goal.urn in self._seen:
                raise ProgramError(f"two resources have the URN {goal.urn}: give one of them another name")
            self._seen.add(goal.urn)
            if self.failures:
                raise ProgramError(f'{goal.type} "{goal.name}" was not started: {self.failures[0]}')
        if self.interrupted.is_set():
            raise Interrupted

    def _bring(self, goal: Goal) -> Registered:
        started = self.clock()
        handler = self.handler(goal.type)
        fresh_name = f"{goal.name}-{self.suffix()}"
        record = self._recorded(goal)
        step = plan(goal, record, handler, fresh_name)
        handler.check(self._instance(goal, step.inputs))
        if record is not None and not handler.exists(self._recorded_instance(record, record.inputs)):
            self._forget(record)
            record, step = None, plan(goal, None, handler, fresh_name)
        action, record = self._carry_out(goal, record, step, handler)
        self._count(action, goal.type, goal.name, record.id, started, step.changed)
        return Registered(record.id, record.outputs, step.inputs)

    def _carry_out(self, goal: Goal, record: Record | None, step: Plan, handler: Handler) -> tuple[Action, Record]:
        if record is None:
            return "create", self._create(goal, step, handler)
        if step.action == "replace":
            return "replace", self._replace(goal, record, step, handler)
        finished = self._recorded_instance(record, record.inputs)
        try:
            if not record.settled:  # an earlier run was cut short
                handler.complete(finished)
            if step.action == "update":
                return "update", self._update(goal, record, step, handler)
        except BrokenError as error:
            return "replace", self._remake(goal, record, step, handler, error)
        if not record.settled:
            finished.inputs = step.inputs
            self._write(goal, record, finished, step.auto_named, settled=True)
            return "update", record
        self._note(goal, record)
        return "same", record

    def _forget(self, record: Record) -> None:
        self.progress.notice(f'{record.type} "{record.name}" had vanished from the cloud: making it again')
        with self.file.change() as state:
            del state.resources[record.urn]

    def handler(self, type_: str) -> Handler:
        """The handler of a type; a type without one is an error."""
        if type_ not in self.handlers:
            raise UnmappedError(f"{type_} has no row: add one in workbench/stack/deployer/rows")
        return self.handlers[type_]

    def _create(self, goal: Goal, step: Plan, handler: Handler) -> Record:
        revived = self._revive(goal, step, handler)
        if revived is not None:
            return revived
        instance = self._instance(goal, step.inputs)
        handler.create(instance)
        record = Record(goal.urn, goal.type, goal.name, instance.id, {}, {}, settled=False)
        self._write(goal, record, instance, step.auto_named, settled=False)
        handler.complete(instance)
        self._write(goal, record, instance, step.auto_named, settled=True)
        return record

    def _update(self, goal: Goal, record: Record, step: Plan, handler: Handler) -> Record:
        instance = self._recorded_instance(record, step.inputs)
        instance.changed = step.changed
        handler.update(instance)
        self._write(goal, record, instance, step.auto_named, settled=True)
        return record

    def _replace(self, goal: Goal, record: Record, step: Plan, handler: Handler) -> Record:
        if step.delete_first:
            handler.delete(self._recorded_instance(record, record.inputs))
            with self.file.change() as state:
                del state.resources[record.urn]
            return self._create(goal, step, handler)
        with self.file.change() as state:
            del state.resources[record.urn]
            state.retired.append(record)
        try:
            return self._create(goal, step, handler)
        except Exception:
            if goal.urn not in self.state.resources:  # nothing new was made: the old one is still the one
                with self.file.change() as state:
                    state.retired.remove(record)
                    state.resources[goal.urn] = record
            raise

    def _remake(self, goal: Goal, record: Record, step: Plan, handler: Handler, error: BrokenError) -> Record:
        if record.protect:
            raise error
        self.progress.notice(f'{goal.type} "{goal.name}" is broken ({error}): making it anew')
        handler.delete(self._recorded_instance(record, record.inputs))
        with self.file.change() as state:
            state.resources.pop(record.urn, None)
        return self._create(goal, step, handler)

    def _revive(self, goal: Goal, step: Plan, handler: Handler) -> Record | None:
        """A retired resource that is exactly what is wanted again, instead of a second one of the same name."""
        encoded = encode_inputs(step.inputs, goal.secrets)
        for retired in [record for record in self.state.retired if record.type == goal.type]:
            instance = self._recorded_instance(retired, step.inputs)
            if retired.urn == goal.urn and retired.inputs == encoded and handler.exists(instance):
                with self.file.change() as state:
                    state.retired.remove(retired)
                    state.resources[goal.urn] = retired
                self._note(goal, retired)
                return retired
            if handler.same_identity(retired.inputs, encoded):
                handler.delete(self._recorded_instance(retired, retired.inputs))
                with self.file.change() as state:
                    state.retired.remove(retired)
        return None

    def _recorded(self, goal: Goal) -> Record | None:
        record = self.state.resources.get(goal.urn)
        if record is not None:
            return record
        for alias in goal.aliases:
            if alias in self.state.resources and alias not in self._seen:
                with self.file.change() as state:
                    record = state.resources.pop(alias)
                    record.urn, record.type, record.name = goal.urn, goal.type, goal.name
                    state.resources[goal.urn] = record
                    return record
        return None

    def _note(self, goal: Goal, record: Record) -> None:
        """Options and dependencies may change while the resource stays the same."""
        wanted = (list(goal.dependencies), goal.protect, goal.retain)
        if wanted != (record.dependencies, record.protect, record.retain):
            with self.file.change():
                record.dependencies, record.protect, record.retain = wanted

    def _write(self, goal: Goal, record: Record, instance: Instance, auto_named: bool, *, settled: bool) -> None:
        with self.file.change() as state:
            record.id = instance.id
            record.inputs = encode_inputs(instance.inputs, goal.secrets)
            record.outputs = {name: encode(value) for name, value in instance.outputs.items()}
            record.dependencies, record.protect, record.retain = list(goal.dependencies), goal.protect, goal.retain
            record.auto_named, record.settled = auto_named, settled
            state.resources[goal.urn] = record
        self._tell(instance)

    def _tell(self, instance: Instance) -> None:
        while instance.notes:
            self.progress.notice(f'{instance.type} "{instance.name}": {instance.notes.pop()}')

    def _instance(self, goal: Goal, inputs: Properties) -> Instance:
        return Instance(goal.type, goal.name, self.cloud, inputs)

    def _recorded_instance(self, record: Record, inputs: Properties) -> Instance:
        return Instance(
            record.type,
            record.name,
            self.cloud,
            inputs,
            before=record.inputs,
            id=record.id,
            outputs=dict(record.outputs),
        )

    def _protect(self, records: list[Record]) -> None:
        names = sorted(f'{record.type} "{record.name}"' for record in records if record.protect)
        if names:
            raise ProgramError(
                f"protected, so nothing was deleted: {', '.join(names)}; take protect off and deploy first"
            )

    def _delete_all(self, records: list[Record]) -> None:
        kept: set[str] = set()  # what something that could not be deleted depends on
        with ThreadPoolExecutor(DELETE_THREADS) as pool:
            for wave in deletion_waves(records):
                if self.interrupted.is_set():
                    raise Interrupted
                going = [record for record in wave if record.urn not in kept]
                for record in wave:
                    if record.urn in kept:
                        kept.update(record.dependencies)
                for record, failure in zip(going, pool.map(self._delete, going), strict=True):
                    if failure is not None:
                        self.failures.append(failure)
                        kept.update(record.dependencies)
        if self.failures:
            raise self.failures[0]

    def _delete(self, record: Record) -> ResourceError | None:
        started = self.clock()
        try:
            if not record.retain:
                instance = self._recorded_instance(record, record.inputs)
                self.handler(record.type).delete(instance)
                self._tell(instance)
        except DeployError as error:
            return ResourceError(record.type, record.name, "could not delete", error)
        with self.file.change() as state:
            if state.resources.get(record.urn) is record:
                del state.resources[record.urn]
            else:
                state.retired.remove(record)
        self._count("delete", record.type, record.name, record.id, started)
        return None

    def _count(
        self, action: Action, type_: str, name: str, id_: str, started: float, changed: frozenset[str] = frozenset()
    ) -> None:
        with self._lock:
            self.counts[action] += 1
        self.progress.resource(action, type_, name, id_, self.clock() - started, changed)
