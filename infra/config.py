"""What a stack is: the typed, validated form of `Pulumi.<stack>.yaml`.

`parse` is pure: a mapping in, a `StackConfig` out. Every bad value becomes one line (key path, value, what is allowed),
and all lines are reported together. What a valid config needs around it is the business of `infra/stack.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import pulumi
from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from infra import naming
from infra.batch_config import BatchConfig, BatchLaneConfig, CaptureConfig, NightlyConfig
from infra.fields import Issuer, Name, ProjectPath, Region, Section, Topic, between, one_of

ROOT = Path(__file__).resolve().parent.parent
"""The project: `main: infra/` changes the working directory, so paths never depend on it."""
ARTIFACT = Path("build/model.tar.gz")
SERVERLESS_MEMORY_MB = (1024, 2048, 3072, 4096, 5120, 6144)
"""ServerlessConfig.MemorySizeInMB (botocore sagemaker 2017-07-24)."""
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""PutRetentionPolicy.retentionInDays (botocore logs 2014-03-28)."""
METRIC_PERIODS_S = (10, 30, 60, 120, 180, 240, 300)
"""MetricsConfig.MetricPublishFrequencyInSeconds (botocore sagemaker 2017-07-24)."""
OWN_TAGS = ("project", "stack", "component", "model")
MAX_TAGS = 10 - len(OWN_TAGS)
"""An S3 object carries ten tags, and it is what takes fewest."""


class ConfigError(pulumi.RunError):
    """The stack cannot be built as configured. One line a cause."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))


MAX_AUDIENCES = 50
"""Per JWT authorizer (API Gateway quotas for HTTP APIs)."""


def _audience(value: list[str]) -> list[str]:
    if not 1 <= len(value) <= MAX_AUDIENCES or not all(value):
        raise ValueError(f"{value} is not a list of 1 to {MAX_AUDIENCES} audiences: without one, any token would do")
    return value


class DedicatedConfig(Section):
    """A real-time endpoint on instances of its own."""

    instance_type: str
    min_instances: Annotated[int, between(1, 100, ": scale to zero needs inference components")] = 1
    max_instances: Annotated[int, between(1, 100)]
    slots_per_instance: Annotated[int, between(1, 1000)] = 1
    """Requests one instance works on at a time: the container's workers."""
    max_queue_ms: Annotated[int, between(0, 60_000)] = 200
    """Longest predicted wait for a worker: what would wait longer is told to go elsewhere at once. 0: no bound. Our
    model server reads it; other servers have settings of their own (docs/admission.md)."""
    image: str | None = None
    bake_s: Annotated[int, between(0, 3600)] = 300
    """How long the rollback alarm watches a new fleet before the old one goes, seconds."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_instances > self.max_instances:
            raise PydanticCustomError(
                "order", f"min_instances {self.min_instances} is above max_instances {self.max_instances}"
            )
        return self


class ServerlessConfig(Section):
    """A serverless endpoint."""

    memory_mb: Annotated[int, one_of(SERVERLESS_MEMORY_MB)]
    max_concurrency: Annotated[int, between(1, 200)]
    image: str | None = None


class ModelConfig(Section):
    """A model and the lanes that serve it."""

    package: ProjectPath
    """The model's folder; its `build/model.tar.gz` is what SageMaker downloads."""
    dedicated: DedicatedConfig | None = None
    serverless: ServerlessConfig | None = None
    batch: BatchLaneConfig | None = None

    @model_validator(mode="after")
    def _served(self) -> Self:
        if self.dedicated is None and self.serverless is None and self.batch is None:
            raise PydanticCustomError("no_lane", "has no lane: add `serverless`, `dedicated` or `batch`")
        return self


class RouterConfig(Section):
    """The `route` function and how fresh its knowledge is."""

    memory_mb: Annotated[int, between(128, 10240)] = 512
    timeout_s: Annotated[int, between(1, 30, ": an HTTP API ends every call at 30 s")] = 30
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metric_period_s: Annotated[int, one_of(METRIC_PERIODS_S)] = 60
    snapshot_ttl_s: Annotated[int, between(1, 300)] = 15
    policy_ttl_s: Annotated[int, between(15, 3600)] = 30
    """AppConfigData refuses to be polled more often than every 15 s."""


class ThrottleConfig(Section):
    """What the gateway lets through, for all callers together. An account's default quota is 10,000/s, burst 5,000."""

    requests_per_s: Annotated[int, between(1, 100_000)] = 500
    burst: Annotated[int, between(1, 100_000)] = 1000


class JwtConfig(Section):
    """Whose tokens open the door (`auth: jwt`), and whom they must be meant for."""

    issuer: Issuer
    """As the tokens' `iss` says it, to the letter; `/.well-known/openid-configuration` below it names the keys."""
    audience: Annotated[list[str], AfterValidator(_audience)]
    """Any of these must be in the token's `aud`."""


class AlarmsConfig(Section):
    """When the router's alarms ring, and whom they tell."""

    errors_percent: Annotated[int, between(1, 100)] = 5
    p99_ms: Annotated[int, between(1, 29_000, ": a synchronous request ends at 29 s")] = 10_000
    """Of whole requests. The default lets a serverless cold start pass."""
    topic: Topic | None = None
    """An SNS topic; None: the alarms tell nobody."""


class RolloutConfig(Section):
    """How a new policy document reaches the router."""

    duration_min: Annotated[int, between(0, 1440)] = 0
    bake_min: Annotated[int, between(0, 1440)] = 0
    growth_percent: Annotated[int, between(1, 100)] = 100

    @property
    def takes_time(self) -> bool:
        """Whether there is a while in which an alarm can still roll it back."""
        return self.duration_min + self.bake_min > 0


class StackConfig(Section):
    """One stack, whole."""

    stack: Name
    region: Region
    stage: Literal["prototype", "growth", "mature"]
    auth: Literal["iam", "api_key", "jwt"]
    jwt: JwtConfig | None = None
    """Present exactly with `auth: jwt`."""
    policy: ProjectPath
    models: dict[Name, ModelConfig]
    router: RouterConfig = RouterConfig()
    throttle: ThrottleConfig = ThrottleConfig()
    policy_rollout: RolloutConfig = RolloutConfig()
    alarms: AlarmsConfig = AlarmsConfig()
    batch: BatchConfig = BatchConfig()
    nightly: NightlyConfig | None = None
    capture: CaptureConfig | None = None
    log_retention_days: Annotated[int, one_of(LOG_RETENTION_DAYS)] = 30
    protect: bool = True
    """Whether keys, tables and buckets refuse to be deleted."""
    prices_region: Region | None = None
    """Which region's prices to reckon with where the price book lacks the stack's own."""
    tags: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _stage_allows_lanes(self) -> Self:
        if not self.models:
            raise PydanticCustomError("no_model", "models is empty: name at least one model")
        dedicated = sorted(name for name, model in self.models.items() if model.dedicated)
        if self.stage == "prototype" and dedicated:
            raise PydanticCustomError(
                "stage",
                f"models.{dedicated[0]}.dedicated is not allowed in stage prototype (serverless only): "
                "remove it or set stage: growth",
            )
        if self.stage == "growth" and not dedicated:
            raise PydanticCustomError(
                "stage", "stage growth needs a dedicated lane on at least one model: add one or set stage: prototype"
            )
        if self.stage == "mature" and not self.batch_lanes:
            raise PydanticCustomError(
                "stage", "stage mature needs a batch lane on at least one model: add one or set stage: growth"
            )
        return self

    @model_validator(mode="after")
    def _only_mature_defers(self) -> Self:
        if self.stage == "mature":
            return self
        deferring = [f"models.{name}.batch" for name in sorted(self.batch_lanes)]
        deferring += [name for name in ("batch", "nightly", "capture") if name in self.model_fields_set]
        if deferring:
            raise PydanticCustomError(
                "stage", f"{deferring[0]} is not allowed in stage {self.stage}: remove it or set stage: mature"
            )
        return self

    @model_validator(mode="after")
    def _nightly_has_what_it_needs(self) -> Self:
        if self.nightly is None:
            return self
        if self.nightly.model not in self.batch_lanes:
            raise PydanticCustomError(
                "nightly",
                f"nightly.model: {self.nightly.model} has no batch lane: add models.{self.nightly.model}.batch",
            )
        if self.nightly.rechecks not in self.models:
            known = ", ".join(sorted(self.models))
            raise PydanticCustomError("nightly", f"nightly.rechecks: {self.nightly.rechecks} is not one of {known}")
        if self.capture is None:
            raise PydanticCustomError("nightly", "nightly rechecks what was captured: add the section capture")
        return self

    @model_validator(mode="after")
    def _jwt_goes_with_its_auth(self) -> Self:
        if self.auth == "jwt" and self.jwt is None:
            raise PydanticCustomError("jwt", "auth: jwt needs the section jwt: add {issuer: …, audience: […]}")
        if self.auth != "jwt" and self.jwt is not None:
            raise PydanticCustomError("jwt", f"jwt is not used with auth: {self.auth}: remove it or set auth: jwt")
        return self

    @model_validator(mode="after")
    def _tags_fit(self) -> Self:
        if len(self.tags) > MAX_TAGS:
            raise PydanticCustomError(
                "tags", f"tags has {len(self.tags)} entries, more than {MAX_TAGS}: an S3 object carries 10, 4 are ours"
            )
        for key in self.tags:
            if key in OWN_TAGS or key.lower().startswith("aws:"):
                raise PydanticCustomError("tags", f"tags.{key} is reserved: choose another key")
        return self

    def tags_for(self, component: str, **more: str) -> dict[str, str]:
        """The tags of everything in one component."""
        return {**self.tags, "project": naming.PROJECT, "stack": self.stack, "component": component, **more}

    @property
    def batch_lanes(self) -> dict[str, BatchLaneConfig]:
        """The batch lanes by model."""
        return {name: model.batch for name, model in self.models.items() if model.batch}

    def artifact(self, model: str) -> Path:
        """Where a model's artifact lies."""
        return ROOT / self.models[model].package / ARTIFACT

    @property
    def policy_file(self) -> Path:
        """Where the policy document lies."""
        return ROOT / self.policy

    @property
    def priced_as(self) -> str:
        """The region whose prices the topology carries."""
        return self.prices_region or self.region


def parse(stack: str, region: str | None, values: Mapping[str, object]) -> StackConfig:
    """Validate the values under `inferlane:`. Raises `ConfigError` with one line for each bad value."""
    given = {"stack": stack, **({} if region is None else {"region": region}), **values}
    try:
        return StackConfig.model_validate(given)
    except ValidationError as error:
        raise ConfigError([_line(detail) for detail in error.errors()]) from None


def _line(detail: ErrorDetails) -> str:
    """One pydantic error as `key path: value what is allowed`."""
    loc = [str(part) for part in detail["loc"] if part != "[key]"]
    path = "aws:region" if loc == ["region"] else f"{naming.PROJECT}:{'.'.join(loc)}" if loc else naming.PROJECT
    if loc == ["stack"]:
        path = "stack name"
    value = detail["input"]
    match detail["type"]:
        case "missing":
            return f"{path}: is missing"
        case "extra_forbidden":
            return f"{path}: is not a known key; known here: {', '.join(_known_keys(loc[:-1]))}"
        case "literal_error":
            return f"{path}: {value!r} is not one of {detail['ctx']['expected'].replace(' or ', ', ')}"
        case "value_error":
            return f"{path}: {detail['ctx']['error']}"
        case "int_type":
            return f"{path}: {value!r} is not a whole number"
        case "float_type":
            return f"{path}: {value!r} is not a number"
        case "bool_type":
            return f"{path}: {value!r} is not true or false"
        case "string_type":
            return f"{path}: {value!r} is not text"
        case "list_type":
            return f"{path}: {value!r} is not a list"
        case "dict_type" | "model_type":
            return f"{path}: {value!r} is not a mapping"
        case _:
            return f"{path}: {detail['msg']}"


def _known_keys(loc: list[str]) -> list[str]:
    """The keys a section takes; `loc` is the section's path."""
    annotation: object = StackConfig
    for part in loc:
        fields = next((section.model_fields for section in _sections(annotation)), None)
        # A mapping of sections, such as models: its values are what the next key leads to, whatever it is.
        annotation = fields[part].annotation if fields else get_args(annotation)[1]
    (section,) = _sections(annotation)
    own = {"stack", "region"} if section is StackConfig else set()
    return sorted(set(section.model_fields) - own)


def _sections(annotation: object) -> list[type[Section]]:
    """The section that a field's annotation names, alone or beside None; none for a mapping of sections."""
    members = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    return [member for member in members if isinstance(member, type) and issubclass(member, Section)]
