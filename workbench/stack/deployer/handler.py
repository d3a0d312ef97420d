"""Carries out a row on a cloud. The engine knows only the `Handler` protocol, so a fake can stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from workbench.stack.deployer.cloud import is_gone
from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.row import Call, Hook, Instance, Row, Step
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.templates import AbsentError, fill
from workbench.stack.deployer.values import UNKNOWN, Properties, mapping


class Handler(Protocol):
    """What the engine asks of a resource type."""

    @property
    def auto_name(self) -> str | None:
        """The input that gets a generated name when the program gives none."""
        ...

    @property
    def output_names(self) -> frozenset[str]:
        """The outputs it maps."""
        ...

    def check(self, instance: Instance) -> None:
        """Raises when an input cannot be mapped; calls nothing."""
        ...

    def replaced_by(self, changed: frozenset[str]) -> frozenset[str]:
        """Which of the changed inputs cannot change in place."""
        ...

    def same_identity(self, before: Properties, inputs: Properties) -> bool:
        """Whether the cloud would take both for the same resource."""
        ...

    def create(self, instance: Instance) -> None:
        """The first call: afterwards `id` and `outputs` are set and the resource must be remembered."""
        ...

    def complete(self, instance: Instance) -> None:
        """The rest of the creation, waits included; safe to repeat."""
        ...

    def update(self, instance: Instance) -> None:
        """Changes `instance.changed` in place, waits included; safe to repeat."""
        ...

    def exists(self, instance: Instance) -> bool:
        """Whether it still stands."""
        ...

    def delete(self, instance: Instance) -> None:
        """Removes it; one that is gone already is fine."""
        ...


class RowHandler:
    """A handler that follows a row."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self._claimed = row.claimed()
        self._in_place = frozenset(name for step in row.steps if step.at != "create" for name in step.on)

    @property
    def auto_name(self) -> str | None:
        return self.row.auto_name

    @property
    def output_names(self) -> frozenset[str]:
        return frozenset(self.row.outputs)

    def check(self, instance: Instance) -> None:
        for _ in self.requests(instance):
            pass

    def requests(self, instance: Instance) -> Iterator[tuple[str, str, dict[str, object]]]:
        """Service, operation and parameters of every declared call these inputs lead to; what is not known yet is
        `UNKNOWN`."""
        yield self._service(self.row.create), self.row.create.operation, self._create_parameters(instance, dry=True)
        for step in self.row.steps:
            if isinstance(step.run, Call) and _given(step, instance.inputs):
                yield (
                    self._service(step.run),
                    step.run.operation,
                    self._parameters(step.run, step.on, instance, dry=True),
                )
        if self.row.tags and instance.inputs.get("tags"):
            call = self._tag_call()
            yield self.row.service, call.operation, self._parameters(call, ("tags",), instance, dry=True)

    def replaced_by(self, changed: frozenset[str]) -> frozenset[str]:
        if self.row.upsert:
            return changed & frozenset(self.row.identity)
        tags = {"tags"} if self.row.tags else set()
        return changed - self._in_place - frozenset(self.row.local) - tags

    def same_identity(self, before: Properties, inputs: Properties) -> bool:
        return bool(self.row.identity) and all(before.get(name) == inputs.get(name) for name in self.row.identity)

    def create(self, instance: Instance) -> None:
        parameters = self._create_parameters(instance)
        if self.row.admit:
            self.row.admit(instance)
        try:
            instance.answer = instance.cloud.call(self._service(self.row.create), self.row.create.operation, parameters)
        except CloudError as error:
            if error.code not in self.row.adopt:
                raise
            instance.notes.append("existed already and was taken over")
        instance.id = str(fill(self.row.id, instance))
        instance.outputs = {}
        for name, template in self.row.outputs.items():
            value = fill(template, instance)
            if value is not None:
                instance.outputs[name] = value

    def complete(self, instance: Instance) -> None:
        for step in self.row.steps:
            if step.at != "update" and _given(step, instance.inputs):
                self._run(step.run, step.on, instance)
        if self.row.settle:
            self.row.settle(instance)

    def update(self, instance: Instance) -> None:
        tags = frozenset({"tags"}) if self.row.tags else frozenset()
        if self.row.upsert and instance.changed - self._in_place - frozenset(self.row.local) - tags:
            parameters = self._create_parameters(instance, without="tags" if self.row.tags else "")
            instance.answer = instance.cloud.call(self._service(self.row.create), self.row.create.operation, parameters)
        for step in self.row.steps:
            if step.at != "create" and instance.changed & frozenset(step.on):
                run = step.unset if step.unset and not _given(step, instance.inputs) else step.run
                self._run(run, step.on, instance)
        if self.row.tags and "tags" in instance.changed:
            self._retag(instance)
        self._refresh_outputs(instance)
        if self.row.settle:
            self.row.settle(instance)

    def exists(self, instance: Instance) -> bool:
        if self.row.read is None:
            return True
        try:
            self._run(self.row.read, (), instance)
        except CloudError as error:
            if is_gone(error):
                return False
            raise
        return True

    def delete(self, instance: Instance) -> None:
        try:
            if self.row.before_delete:
                self.row.before_delete(instance)
            if self.row.delete:
                self._run(self.row.delete, (), instance)
        except CloudError as error:
            if not is_gone(error):
                raise

    def _run(self, run: Call | Hook, on: tuple[str, ...], instance: Instance) -> None:
        if not isinstance(run, Call):
            run(instance)
            return
        answer = instance.cloud.call(self._service(run), run.operation, self._parameters(run, on, instance))
        instance.answer = {**instance.answer, **answer}

    def _service(self, call: Call) -> str:
        return call.service or self.row.service

    def _create_parameters(self, instance: Instance, *, dry: bool = False, without: str = "") -> dict[str, object]:
        left_out = self._claimed | {without}
        inputs = {name: value for name, value in instance.inputs.items() if name not in left_out}
        arranged = self.row.arrange(inputs) if self.row.arrange else inputs
        return self._convert(self.row.create, arranged, instance, dry=dry)

    def _parameters(
        self, call: Call, on: tuple[str, ...], instance: Instance, *, dry: bool = False
    ) -> dict[str, object]:
        taken = {name: instance.inputs[name] for name in call.take or on if instance.inputs.get(name) is not None}
        return self._convert(call, taken, instance, dry=dry)

    def _convert(self, call: Call, inputs: Properties, instance: Instance, *, dry: bool) -> dict[str, object]:
        shape = instance.cloud.shape(self._service(call), call.operation)
        parameters = to_parameters(inputs, shape, call.rename)
        for name, template in call.params.items():
            try:
                value = fill(template, instance)
            except AbsentError:
                if not dry:
                    raise
                value = UNKNOWN
            if value is not None:
                parameters[name] = value
        return parameters

    def _refresh_outputs(self, instance: Instance) -> None:
        for name, template in self.row.outputs.items():
            try:
                value = fill(template, instance)
            except AbsentError:  # the update's answer does not carry it: what was known stays
                if name not in instance.outputs:
                    raise
                continue
            if value is not None:
                instance.outputs[name] = value

    def _tag_call(self) -> Call:
        tags = self.row.tags
        if tags is None:
            raise AssertionError("only called for rows with tags")
        return Call(tags.tag, take=("tags",), params={tags.resource: tags.value})

    def _retag(self, instance: Instance) -> None:
        tags = self.row.tags
        if tags is None:
            return
        wanted, before = mapping(instance.inputs.get("tags")), mapping(instance.before.get("tags"))
        dropped = sorted(before.keys() - wanted.keys())
        if dropped:
            parameters = {tags.resource: fill(tags.value, instance), tags.keys: dropped}
            instance.cloud.call(self.row.service, tags.untag, parameters)
        if wanted:
            self._run(self._tag_call(), ("tags",), instance)


def handlers(rows: Mapping[str, Row]) -> dict[str, Handler]:
    """A handler for every row."""
    return {name: RowHandler(row) for name, row in rows.items()}


def _given(step: Step, inputs: Properties) -> bool:
    return any(inputs.get(name) is not None for name in step.on)
