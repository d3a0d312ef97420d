"""The commands of the offline stack: up, down, status, deployments, keys, the demo. Parse, call, print."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from workbench.stack import deployment, offline
from workbench.stack.cloud import current, named_endpoint
from workbench.stack.deployment import Deployment, Event
from workbench.stack.layout import Layout
from workbench.stack.processes import StackError
from workbench.terminal import Terminal

app = typer.Typer()
key = typer.Typer(help="API keys of a stack with `auth: api_key`.", no_args_is_help=True)
app.add_typer(key, name="keys")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Stack = Annotated[str, typer.Option("--stack", help="Name of the stack: Pulumi.<name>.yaml.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the stack's configuration.")
]
Port = Annotated[int, typer.Option("--port", help="Port of the emulated cloud, loopback only.")]
TimeScale = Annotated[
    float,
    typer.Option(
        min=0.001,
        help="How many times faster than AWS the emulated SageMaker's waits pass (starts, idle stops, metrics, alarms, "
        "cooldowns, schedules); models compute as fast as they do. Alarms are told apart up to 60.",
    ),
]


@app.command()
def up(
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            help="Port of the emulated cloud, loopback only; 0 for a free one. If not given: the one it had, or 4566.",
        ),
    ] = None,
    time_scale: TimeScale = 1.0,
    metric_period: Annotated[
        int | None,
        typer.Option(min=1, help="AWS seconds between metric points; AWS: 60. If not given: 10, or 60 with a scale."),
    ] = None,
    metric_lag: Annotated[
        float | None,
        typer.Option(min=0, help="AWS seconds until one is seen; AWS: 60 to 180. If not given: 1, or 60 with a scale."),
    ] = None,
    serverless_idle: Annotated[float, typer.Option(min=0, help="AWS seconds until an idle container stops.")] = 300.0,
    as_json: AsJson = False,
) -> None:
    """Start the offline cloud (MiniStack, the SageMaker emulator, the metric bridge), or what of it has died."""
    terminal = Terminal(as_json=as_json)
    pace = offline.Pace(time_scale, metric_period, metric_lag, serverless_idle)
    record = offline.up(Layout.default(), port=port, pace=pace, say=terminal.say)
    data = {"endpoint_url": record.endpoint_url, "sagemaker_url": record.sagemaker_url, "cloud_id": record.cloud_id}
    terminal.result(data, f"the offline cloud is up: {record.endpoint_url}\nnext: inferlane deploy --stack local")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what runs: processes, deployed stacks, lanes. Exits 1 when something is dead or nothing runs."""
    from workbench.stack.faults import Faults

    terminal = Terminal(as_json=as_json)
    layout = Layout.default()
    record = layout.read_record()
    states = offline.health(record) if record is not None else {}
    healthy = bool(states) and set(states.values()) == {"up"}
    data: dict[str, Any] = {"processes": states, "stacks": {}, "endpoints": [], "faults": []}
    data["advice"] = offline.advice(layout, record) if record is not None else []
    if healthy or named_endpoint():
        cloud = current(layout)
        data["endpoint_url"] = cloud.endpoint_url
        for name in deployment.stacks(layout, cloud):
            data["stacks"][name] = deployment.run("outputs", name, cloud=cloud, layout=layout).outputs.get("url")
        if healthy:
            data["endpoints"], data["faults"] = Faults(cloud).endpoints(), Faults(cloud).active()
    terminal.result(data, _status_text(data))
    if not healthy and not named_endpoint():
        raise typer.Exit(1)


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop the offline cloud and forget it, deployments included. Safe to run twice."""
    stopped = offline.down(Layout.default())
    text = f"stopped: {', '.join(stopped)}" if stopped else "nothing was running"
    Terminal(as_json=as_json).result({"stopped": stopped}, text)


@app.command()
def deploy(
    stack: Stack = "local",
    settings: Settings = None,
    preview: Annotated[bool, typer.Option("--preview", help="Say what would change; change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Deploy a stack of the Pulumi program to the offline cloud (to AWS itself: `pulumi up`)."""
    terminal = Terminal(as_json=as_json)
    deployed = _run("preview" if preview else "up", stack, settings or [], terminal)
    counts = ", ".join(f"{number} {action}" for action, number in sorted(deployed.counts.items()) if number)
    if preview:
        terminal.result({"stack": stack, "counts": dict(deployed.counts)}, f"{stack} would be: {counts}")
        return
    data = {"stack": stack, **deployed.outputs, "counts": dict(deployed.counts), "seconds": deployed.seconds}
    text = f"{stack}: {counts} in {deployed.seconds:.1f} s\nfront door: {deployed.url}"
    if deployed.outputs.get("keys_table"):
        text += f"\nnext: inferlane keys create demo-app --stack {stack}"
    terminal.result(data, text)


@app.command()
def destroy(stack: Stack = "local", as_json: AsJson = False) -> None:
    """Remove every resource of a stack from the offline cloud."""
    terminal = Terminal(as_json=as_json)
    gone = _run("destroy", stack, [], terminal)
    number = gone.counts.get("delete", 0)
    terminal.result({"stack": stack, "counts": dict(gone.counts)}, f"{stack}: {number} resources removed")


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def sagemaker(context: typer.Context) -> None:
    """The emulated SageMaker by itself, beside any S3 and CloudWatch that AWS_ENDPOINT_URL names. Ctrl-C stops it."""
    from workbench.stack.sagemaker.__main__ import run

    run(context.args, "inferlane sagemaker", Layout.default().folder / "sagemaker-alone", s3_answers=True)


@app.command()
def demo(
    port: Port = offline.DEFAULT_PORT,
    keep: Annotated[
        bool, typer.Option("--keep/--exit", help="Leave the stack running, or stop it at the end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The whole story offline: deploy, traffic, surge and shed, a GPU endpoint's death, recovery, the figures."""
    from workbench import demo as story

    terminal = Terminal(as_json=as_json)
    figures = story.run(terminal, Layout.default(), port=port, keep=keep)
    terminal.result(figures, story.summary(figures))


@key.command("create")
def key_create(
    key_id: Annotated[str, typer.Argument(help="Who the key is for; policies match it: demo-app.")],
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Create a key and print it, once: only its hash is kept."""
    from workbench import keys

    made = keys.create(current(Layout.default()).client("dynamodb"), stack, key_id, datetime.now(UTC))
    Terminal(as_json=as_json).result({"key_id": made.key_id, "key": made.key}, made.key)


@key.command("list")
def key_list(stack: Stack = "local", as_json: AsJson = False) -> None:
    """The keys there are, without the keys."""
    from workbench import keys

    rows = keys.listing(current(Layout.default()).client("dynamodb"), stack)
    text = "\n".join(f"{row['key_id']}  {row['created_at']}  {row['state']}" for row in rows)
    Terminal(as_json=as_json).result({"keys": rows}, text or "no keys")


@key.command("revoke")
def key_revoke(
    key_id: Annotated[str, typer.Argument(help="Every key of this id stops working.")],
    stack: Stack = "local",
    as_json: AsJson = False,
) -> None:
    """Disable every key of an id."""
    from workbench import keys

    number = keys.revoke(current(Layout.default()).client("dynamodb"), stack, key_id)
    if not number:
        raise StackError(f"stack {stack} has no key for {key_id!r}: see `inferlane keys list --stack {stack}`")
    Terminal(as_json=as_json).result({"revoked": number}, f"{number} keys of {key_id} disabled")


def _run(action: deployment.Action, stack: str, settings: list[str], terminal: Terminal) -> Deployment:
    layout = Layout.default()
    cloud = current(layout)
    with terminal.progress(f"{action} {stack}") as bar:

        def on_event(event: Event) -> None:
            if event["event"] == "resource":
                bar.step(f"{event['action']} {event['name']}")
                if event["action"] != "same":
                    terminal.say(f"  {event['action']:8} {event['type']} {event['name']}")
            elif event["event"] == "notice":
                terminal.say(event["message"])

        return deployment.run(action, stack, cloud=cloud, layout=layout, settings=settings, on_event=on_event)


def _status_text(data: dict[str, Any]) -> str:
    from workbench.stack.faults import target

    if not data["processes"]:
        return "the offline cloud is not running: inferlane up"
    lines = [f"{name:10} {state}" for name, state in data["processes"].items()]
    lines += data["advice"]
    lines += [f"cloud      {data['endpoint_url']}"] if "endpoint_url" in data else []
    lines += [f"stack      {name}: {url}" for name, url in data["stacks"].items()]
    lines += [f"endpoint   {e['name']}: {e['state']}" for e in data["endpoints"]]
    lines += [f"fault      {each['id']}: {each['kind']} on {target(each)}" for each in data["faults"]]
    return "\n".join(lines)
