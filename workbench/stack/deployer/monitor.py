"""The seam: a `MockMonitor` that hands every registration of a running Pulumi program to the engine.

What the seam's mocks are not told (URN, parent, dependencies, options, stack outputs) is read from the requests here,
and values change form: secrets are unwrapped (and wrapped again on the way back), assets become payloads, unknowns
`UNKNOWN`. Components are only noted. Options that would change what is deployed and that nobody carries out are errors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import pulumi
from google.protobuf import empty_pb2  # type: ignore[import-untyped]  # no stubs in the lock
from pulumi.output import Unknown as PulumiUnknown
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.sync_await import _ensure_event_loop, _sync_await

from workbench.stack.deployer import assets
from workbench.stack.deployer.declared import complete, refuse_marks
from workbench.stack.deployer.diff import Goal
from workbench.stack.deployer.engine import Registered
from workbench.stack.deployer.errors import ProgramError, UnmappedError
from workbench.stack.deployer.values import UNKNOWN, Properties, Unknown, mapping

STACK_TYPE = "pulumi:pulumi:Stack"
PROVIDER_PREFIX = "pulumi:providers:"
AWS_PROVIDER = "pulumi:providers:aws"


class Registrar(Protocol):
    """What stands behind the seam: the engine, a preview, or a capture."""

    def register(self, goal: Goal) -> Registered: ...


class Functions(Protocol):
    """Answers a Pulumi function."""

    def __call__(self, token: str, arguments: Properties) -> dict[str, object]: ...


class NoMocks(Mocks):
    """The monitor answers everything itself; the SDK only wants the object."""

    def call(self, args: MockCallArgs) -> tuple[dict[str, object], None]:
        raise UnmappedError(f"unexpected call of {args.token}")

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise UnmappedError(f"unexpected resource {args.typ}")


class EngineMonitor(MockMonitor):
    """The resource monitor of one run."""

    def __init__(self, registrar: Registrar, functions: Functions, region: str) -> None:
        super().__init__(NoMocks())
        self._registrar = registrar
        self._functions = functions
        self._region = region
        self._lock = threading.Lock()
        self._components: set[str] = set()
        self._loops: set[asyncio.AbstractEventLoop] = set()
        self.outputs: dict[str, object] = {}
        self.secret_outputs: frozenset[str] = frozenset()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  the SDK's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == STACK_TYPE:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        self._loop_for_this_thread()
        inputs, secrets = _received(rpc.deserialize_properties(request.object))
        refuse_marks(inputs, f'{request.type} "{request.name}"')
        if request.type.startswith(PROVIDER_PREFIX):
            self._check_provider(request.type, inputs)
            return resource_pb2.RegisterResourceResponse(urn=urn, id=request.name, object=request.object)
        if not request.custom:
            self._note_component(urn)
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        _refuse_options(request)
        if inputs.get("region") == self._region:
            del inputs["region"]
        registered = self._registrar.register(_goal(request, urn, inputs, secrets))
        outputs = complete(request.type, registered.inputs, registered.outputs, self._region)
        secret = secrets | frozenset(request.additionalSecretOutputs)
        self.resources[urn] = MockMonitor.ResourceRegistration(urn, registered.id, outputs)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=registered.id, object=_sent(outputs, secret))

    def ReadResource(self, request: Any) -> Any:  # noqa: N802  the SDK's name
        raise UnmappedError(
            f'{request.type} "{request.name}": reading what another program made (`.get`) is not supported offline'
        )

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802  the SDK's name
        self._loop_for_this_thread()
        outputs, secrets = _received(rpc.deserialize_properties(request.outputs))
        is_stack = request.urn.split("::")[2] == STACK_TYPE
        refuse_marks(outputs, "a stack output" if is_stack else f"component {request.urn.split('::')[-1]}")
        if is_stack:
            self.outputs, self.secret_outputs = outputs, secrets
        return empty_pb2.Empty()

    def Invoke(self, request: Any) -> Any:  # noqa: N802  the SDK's name
        self._loop_for_this_thread()
        arguments, secrets = _received(rpc.deserialize_properties(request.args))
        refuse_marks(arguments, f"function {request.tok}")
        result = self._functions(request.tok, arguments)
        return resource_pb2.ResourceInvokeResponse(
            **{"return": _sent(result, frozenset(result) if secrets else frozenset())}
        )

    def RegisterStackTransform(self, request: Any) -> Any:  # noqa: N802, ARG002  the SDK's signature
        raise UnmappedError(
            "stack transforms run in Pulumi's engine: use register_stack_transformation, which runs in the SDK"
        )

    def close(self) -> None:
        """Closes the threads' event loops, once the threads have ended: dropped ones complain in the collector."""
        for loop in self._loops:
            loop.close()

    def _loop_for_this_thread(self) -> None:
        """Deserializing makes futures, and those want an event loop on the thread."""
        _ensure_event_loop()  # type: ignore[no-untyped-call]  # the SDK's
        with self._lock:
            self._loops.add(asyncio.get_event_loop())

    def _note_component(self, urn: str) -> None:
        with self._lock:
            if urn in self._components:
                raise ProgramError(f"two components have the URN {urn}: give one of them another name")
            self._components.add(urn)

    def _check_provider(self, type_: str, inputs: Properties) -> None:
        region = inputs.get("region")
        if type_ != AWS_PROVIDER or (region is not None and region != self._region):
            raise UnmappedError(
                f"provider {type_} ({region}) is not the stack's: offline there is one cloud, one region"
            )


def _goal(request: Any, urn: str, inputs: Properties, secrets: frozenset[str]) -> Goal:
    dependencies = {*request.dependencies, *(one for per in request.propertyDependencies.values() for one in per.urns)}
    if request.parent and STACK_TYPE not in request.parent:
        dependencies.add(request.parent)
    return Goal(
        urn=urn,
        type=request.type,
        name=request.name,
        inputs=inputs,
        secrets=secrets,
        dependencies=tuple(sorted(dependencies)),
        aliases=tuple(_aliases(request, urn)),
        protect=bool(request.protect),
        retain=bool(request.retainOnDelete),
        ignore_changes=frozenset(_top(request.ignoreChanges)),
        replace_on_changes=frozenset(_top(request.replaceOnChanges)),
        delete_before_replace=bool(request.deleteBeforeReplace),
    )


def _aliases(request: Any, urn: str) -> Iterable[str]:
    _, kind, name = urn.removeprefix("urn:pulumi:").rsplit("::", 2)
    root = urn.removesuffix(f"::{kind}::{name}")
    for alias in request.aliases:
        if alias.urn:
            yield alias.urn
            continue
        spec = alias.spec
        parents = "$".join(kind.split("$")[:-1])
        if spec.noParent:
            parents = ""
        elif spec.parentUrn:
            parents = "" if STACK_TYPE in spec.parentUrn else spec.parentUrn.split("::")[2].split("$")[-1]
        type_ = spec.type or request.type
        yield f"{root}::{parents}{'$' if parents else ''}{type_}::{spec.name or name}"


def _refuse_options(request: Any) -> None:
    asked = {
        "import_": request.importId,
        "transforms": list(request.transforms),
        "hooks": request.hooks.ByteSize(),
        "replace_with": list(request.replace_with),
    }
    for option, value in asked.items():
        if value:
            raise UnmappedError(f'{request.type} "{request.name}": the option {option} is not supported offline')


def _top(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        if "." in path or "[" in path:
            raise UnmappedError(
                f"the path {path} in ignore_changes or replace_on_changes: only whole properties are supported"
            )
        yield path


def _received(properties: Mapping[str, Any]) -> tuple[dict[str, object], frozenset[str]]:
    """Plain values and the names of secret properties."""
    values = {name: _plain(value) for name, value in properties.items()}
    return values, frozenset(name for name, value in properties.items() if _holds_secret(value))


def _plain(value: Any) -> object:
    if rpc.is_rpc_secret(value):
        return _plain(rpc.unwrap_rpc_secret(value))
    if isinstance(value, PulumiUnknown):
        return UNKNOWN
    if isinstance(value, pulumi.Asset | pulumi.Archive):
        return assets.payload(value)
    if isinstance(value, pulumi.CustomResource | pulumi.ComponentResource):
        raise UnmappedError("a resource as a value is not supported offline: pass the property that is needed")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _holds_secret(value: Any) -> bool:
    if rpc.is_rpc_secret(value):
        return True
    if isinstance(value, Mapping):
        return any(_holds_secret(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds_secret(item) for item in value)


def _sent(values: Properties, secrets: frozenset[str]) -> Any:
    wrapped = {name: rpc.wrap_rpc_secret(_wire(v)) if name in secrets else _wire(v) for name, v in values.items()}
    return _sync_await(rpc.serialize_properties(wrapped, {}))


def _wire(value: object) -> object:
    if isinstance(value, Unknown):
        return rpc.UNKNOWN
    if isinstance(value, Mapping):
        return {key: _wire(item) for key, item in mapping(value).items()}
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return value
