"""`inferlane fault`: break a lane, transform jobs, a service, a function of the offline stack, and mend it again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from workbench.stack import deployment
from workbench.stack.cloud import current
from workbench.stack.faults import Faults, target
from workbench.stack.layout import Layout
from workbench.stack.processes import StackError
from workbench.terminal import Terminal

app = typer.Typer()
fault = typer.Typer(help="Break a part of the offline stack on purpose, and mend it.", no_args_is_help=True)
app.add_typer(fault, name="fault")


@app.callback()
def _faults() -> None:
    """The group stays a group."""


def _percent(text: str) -> float:
    """`30%` or `30`."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no share, such as 30%") from None
    if not 0 <= value <= 100:
        raise typer.BadParameter(f"{text!r} is not between 0% and 100%")
    return value


def _share(text: str) -> Any:
    return typer.Option(parser=_percent, metavar="SHARE", help=text)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Stack = Annotated[str, typer.Option("--stack", help="Name of the stack: Pulumi.<name>.yaml.")]
Lane = Annotated[str, typer.Option("--lane", help="The lane to break: dedicated or serverless.")]
Model = Annotated[str | None, typer.Option("--model", help="The model; the stack's first one if not given.")]
Seconds = Annotated[float | None, typer.Option(help="End by itself after so long.")]
Times = Annotated[int | None, typer.Option(min=1, help="Meet so many jobs or calls and no more.")]
Operations = Annotated[str | None, typer.Option(help="Only these operations: PutItem,UpdateItem.")]
Resource = Annotated[str | None, typer.Option(help="Only tables, queues, streams or bucket/key of this pattern.")]
Files = Annotated[float | None, _share("Share of a job's objects (algorithm, client).")]
Percent = Annotated[float | None, _share("Share of predictions or calls (errors, limit, throttle).")]
Duplicate = Annotated[float | None, _share("Share of events told twice (events).")]
Drop = Annotated[float | None, _share("Share of events never told (events).")]
Throttle = Annotated[float | None, _share("Refuse that share of calls as throttled.")]
Failed = Annotated[float | None, _share("Let that share of calls fail in the service.")]
Lost = Annotated[float | None, _share("Carry that share of calls out and answer as if they had failed.")]


def _inject(kind: str, lane: str, model: str | None, stack: str, as_json: bool, **params: float | None) -> None:
    layout = Layout.default()
    cloud = current(layout)
    endpoint = str(deployment.run("outputs", stack, cloud=cloud, layout=layout).lane(lane, model)["endpoint"])
    _say(Faults(cloud).inject(endpoint, kind, _given(params)), as_json)


def _given(params: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in params.items() if value is not None}


def _say(made: Any, as_json: bool) -> None:
    text = f"{made['kind']} on {target(made)}: fault {made['id']}; undo: inferlane fault clear"
    Terminal(as_json=as_json).result(made, text)


@fault.command("kill")
def fault_kill(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Kill every process of a lane and hold it down until cleared."""
    _inject("kill", lane, model, stack, as_json)


@fault.command("hang")
def fault_hang(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Accept requests and never answer."""
    _inject("hang", lane, model, stack, as_json)


@fault.command("slow")
def fault_slow(
    ms: Annotated[float | None, typer.Option(help="Add so many milliseconds.")] = None,
    factor: Annotated[float | None, typer.Option(help="Make answers so many times slower.")] = None,
    lane: Lane = "dedicated",
    model: Model = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Delay every answer of a lane."""
    if (ms is None) == (factor is None):
        raise StackError("give exactly one of --ms and --factor")
    _inject("slow", lane, model, stack, as_json, ms=ms, factor=factor)


@fault.command("stress")
def fault_stress(
    cores: Annotated[float, typer.Option(help="Host cores to burn in each instance.")] = 1.0,
    seconds: Annotated[float | None, typer.Option(help="End by itself after so long.")] = None,
    lane: Lane = "dedicated",
    model: Model = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Burn CPU inside each instance of a lane, as a noisy neighbour would."""
    _inject("stress", lane, model, stack, as_json, cores=cores, seconds=seconds)


@fault.command("ping")
def fault_ping(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Let every health check of a lane fail: what runs is replaced, and nothing new becomes healthy."""
    _inject("ping", lane, model, stack, as_json)


@fault.command("disk")
def fault_disk(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Fill the disks of a lane: model code cannot write, new instances cannot extract their model."""
    _inject("disk", lane, model, stack, as_json)


@fault.command("memory")
def fault_memory(
    percent: Annotated[float, typer.Option(help="Share of requests that run out of memory.")] = 100.0,
    lane: Lane = "dedicated",
    model: Model = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Let containers of a lane run out of memory: each is killed in the middle of a prediction and replaced."""
    _inject("memory", lane, model, stack, as_json, percent=percent)


@fault.command("deny")
def fault_deny(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Answer every request of a lane with IAM's AccessDeniedException."""
    _inject("deny", lane, model, stack, as_json)


@fault.command("throttle")
def fault_throttle(
    lane: Lane = "serverless", model: Model = None, stack: Stack = "local", as_json: AsJson = False
) -> None:
    """Answer every request of a lane with SageMaker's ThrottlingException."""
    _inject("throttle", lane, model, stack, as_json)


@fault.command("platform")
def fault_platform(
    status: Annotated[int, typer.Option(help="403, 429 (not ready), 500, 503 or 530.")] = 503,
    lane: Lane = "dedicated",
    model: Model = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Answer every request of a lane with SageMaker's own error of a status."""
    _inject("platform", lane, model, stack, as_json, status=float(status))


@fault.command("reset")
def fault_reset(lane: Lane = "dedicated", model: Model = None, stack: Stack = "local", as_json: AsJson = False) -> None:
    """Reset the connection of every request once it has been read."""
    _inject("reset", lane, model, stack, as_json)


@fault.command("errors")
def fault_errors(
    percent: Annotated[float, typer.Option(help="Share of requests that fail.")] = 100.0,
    status: Annotated[int, typer.Option(help="HTTP status of the failures.")] = 500,
    lane: Lane = "dedicated",
    model: Model = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Let a share of a lane's requests fail in the model."""
    _inject("errors", lane, model, stack, as_json, percent=percent, status=float(status))


@fault.command("transform")
def fault_transform(
    kind: Annotated[
        str,
        typer.Argument(
            help="algorithm, client (objects fail by the model's or the input's fault), internal, capacity, stop, "
            "slow, errors, limit (ResourceLimitExceeded), throttle, events (of EventBridge)."
        ),
    ],
    jobs: Annotated[str | None, typer.Option(help="Pattern of job names; all of the stack's if not given.")] = None,
    files: Files = None,
    percent: Percent = None,
    status: Annotated[int | None, typer.Option(help="HTTP status of failed predictions (errors).")] = None,
    after_files: Annotated[int | None, typer.Option(help="Once so many objects are through (internal, stop).")] = None,
    ms: Annotated[float | None, typer.Option(help="So much longer a prediction (slow).")] = None,
    factor: Annotated[float | None, typer.Option(help="So many times as long a prediction (slow).")] = None,
    start_s: Annotated[float | None, typer.Option(help="So much later instances, in AWS seconds (slow).")] = None,
    duplicate: Duplicate = None,
    drop: Drop = None,
    delay_s: Annotated[float | None, typer.Option(help="Events come so much later (events).")] = None,
    shuffle_s: Annotated[float | None, typer.Option(help="Events come in any order over so long (events).")] = None,
    times: Times = None,
    seconds: Seconds = None,
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Break batch transform jobs, by the names they have or will have."""
    params: dict[str, float | None] = {
        "files": files,
        "percent": percent,
        "status": status,
        "after_files": after_files,
        "ms": ms,
        "factor": factor,
        "start_s": start_s,
        "duplicate": duplicate,
        "drop": drop,
        "delay_s": delay_s,
        "shuffle_s": shuffle_s,
        "times": times,
        "seconds": seconds,
    }
    faults = Faults(current(Layout.default()))
    _say(faults.on_jobs(jobs or f"inferlane-{stack}-*", kind, **_given(params)), as_json)


@fault.command("service")
def fault_service(
    service: Annotated[str, typer.Argument(help="s3, dynamodb, sqs or firehose.")],
    throttle: Throttle = None,
    error: Failed = None,
    lost: Lost = None,
    slow_ms: Annotated[float | None, typer.Option(help="Answer so much later.")] = None,
    operations: Operations = None,
    resource: Resource = None,
    function: Annotated[str | None, typer.Option(help="Only calls that Lambda functions of this pattern make.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Another of the service's refusals: ProvisionedThroughputExceededException.")
    ] = None,
    times: Times = None,
    seconds: Seconds = None,
    as_json: AsJson = False,
) -> None:
    """Break calls of a service, with the service's own errors: SDKs see what they see on AWS."""
    shares = {"throttle": throttle, "error": error, "lost": lost, "slow": slow_ms}
    asked = {kind: value for kind, value in shares.items() if value is not None}
    if len(asked) != 1:
        raise StackError("give exactly one of --throttle, --error, --lost and --slow-ms")
    ((kind, value),) = asked.items()
    made = Faults(current(Layout.default())).on_service(
        service,
        kind,
        operations=operations.split(",") if operations else [],
        resource=resource,
        function=function,
        code=code,
        **_given({"ms" if kind == "slow" else "percent": value, "times": times, "seconds": seconds}),
    )
    _say(made, as_json)


@fault.command("function")
def fault_function(
    function: Annotated[str, typer.Argument(help="The Lambda function; a pattern: inferlane-local-collect.")],
    at: Annotated[str, typer.Option(help="At which calls: dynamodb:UpdateItem, s3:PutObject, sqs …")],
    call: Annotated[int, typer.Option(min=1, help="At the how manieth of them.")] = 1,
    when: Annotated[
        Literal["before", "after"], typer.Option(help="Before the call is carried out, or before it is answered.")
    ] = "before",
    resource: Resource = None,
    times: Annotated[int, typer.Option(min=1, help="Kill so many times.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Kill the process of a Lambda function in the middle of its work."""
    faults = Faults(current(Layout.default()))
    _say(faults.kill_function(function, at, call=call, when=when, resource=resource, times=times), as_json)


@fault.command("quota")
def fault_quota(
    name: Annotated[str, typer.Argument(help="The quota: 'ml.c5.xlarge for transform job usage'.")],
    value: Annotated[int | None, typer.Argument(min=0, help="Its value; the account's own if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set a quota of the emulated account; what needs more is refused with ResourceLimitExceeded."""
    Faults(current(Layout.default())).quota(name, value)
    text = f"{name}: {'as the account has it' if value is None else value}"
    Terminal(as_json=as_json).result({"quota": name, "value": value}, text)


@fault.command("list")
def fault_list(as_json: AsJson = False) -> None:
    """The faults in force."""
    active = Faults(current(Layout.default())).active()
    text = "\n".join(f"{each['id']}  {each['kind']} on {target(each)} {each.get('params') or ''}" for each in active)
    Terminal(as_json=as_json).result({"faults": active}, text or "no faults")


@fault.command("clear")
def fault_clear(
    fault_id: Annotated[str | None, typer.Argument(help="One fault; all if not given.")] = None, as_json: AsJson = False
) -> None:
    """End one fault, or all: killed instances start again."""
    ended = Faults(current(Layout.default())).clear(fault_id)
    Terminal(as_json=as_json).result({"cleared": ended}, f"{ended} faults cleared")
