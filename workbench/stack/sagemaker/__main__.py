"""Run the emulator: `python -m workbench.stack.sagemaker --port 8181 --state-dir .inferlane/sagemaker`.

Prints `ready http://HOST:PORT` when it listens (with --json an object with `url`, `pid` and `state_dir`). SIGTERM and
SIGINT stop all model processes and end it with status 0; if it is killed, the model processes end by themselves. The
AWS services it uses (S3 for model archives, CloudWatch for metrics) are found through the SDK's standard variables,
such as AWS_ENDPOINT_URL.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import math
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from workbench.errors import UserError
from workbench.stack.sagemaker import services
from workbench.stack.sagemaker.control.quotas import PROFILES, QuotaError, Quotas
from workbench.stack.sagemaker.journal import JournalError
from workbench.stack.sagemaker.server import Server
from workbench.stack.sagemaker.services import ServiceError
from workbench.stack.sagemaker.settings import Settings

PROGRAM = "python -m workbench.stack.sagemaker"


class UnusableError(UserError):
    """The emulator cannot start; the message is one line, with the way out."""


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command line."""

    settings: Settings
    fd: int | None
    """An inherited socket that listens, in place of host and port."""
    as_json: bool


def main() -> None:
    """Parse, serve, end."""
    try:
        run(sys.argv[1:])
    except UnusableError as error:
        sys.exit(str(error))


def run(arguments: list[str], prog: str = PROGRAM, state_dir: Path | None = None, *, s3_answers: bool = False) -> None:
    """Serve until a signal; `state_dir` is where --state-dir is not given. Raises `UnusableError`.

    With `s3_answers` S3 has to be there already, which it need not be for somebody who starts both.
    """
    command = parse(arguments, prog, state_dir)
    settings = command.settings
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    listener = _listener(command)
    try:
        services.require_named()
        if s3_answers:
            services.require_answering()
        asyncio.run(serve(settings, listener, as_json=command.as_json))
    except (JournalError, ServiceError) as error:
        raise UnusableError(str(error)) from error
    except OSError as error:
        raise UnusableError(f"cannot use --state-dir {settings.state_dir}: {error}") from error


def _listener(command: Command) -> socket.socket:
    host, port = command.settings.host, command.settings.port
    try:
        return socket.create_server((host, port)) if command.fd is None else socket.socket(fileno=command.fd)
    except OSError as error:
        cause = os.strerror(error.errno or 0)
        raise UnusableError(f"cannot listen on {host}:{port}: {cause}; choose another --port") from error


def parse(arguments: list[str], prog: str = PROGRAM, state_dir: Path | None = None) -> Command:
    """The command line as settings."""
    defaults = Settings(state_dir=Path())
    parser = argparse.ArgumentParser(
        prog=prog,
        description="An offline SageMaker: control plane, runtime and real model processes, on one loopback port.",
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="say that it is ready as one JSON object")
    parser.add_argument("--host", default=defaults.host, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=defaults.port, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--fd", type=int, metavar="N", help="an inherited socket that listens, in place of a port")
    where = "" if state_dir is None else " (default: %(default)s)"
    parser.add_argument(
        "--state-dir",
        type=Path,
        required=state_dir is None,
        default=state_dir,
        help=f"folder for what survives its end, extracted models and logs{where}",
    )
    parser.add_argument("--region", default=defaults.region, help="region in ARNs (default: %(default)s)")
    parser.add_argument("--account", default=defaults.account, help="account in ARNs (default: %(default)s)")
    parser.add_argument(
        "--quota-profile",
        choices=PROFILES,
        default=defaults.quota_profile,
        help="what the account may use at first; PUT /_inferlane/quotas changes it (default: %(default)s)",
    )
    parser.add_argument(
        "--quota",
        dest="quotas",
        action="append",
        type=_quota,
        default=[],
        metavar="NAME=N",
        help="one quota, by the name it has in Service Quotas: 'ml.g5.xlarge for endpoint usage=2'; repeatable",
    )
    for option, name, kind, meaning in _NUMBERS:
        text = f"{meaning} (default here: %(default)s)"
        parser.add_argument(option, dest=name, type=kind, default=getattr(defaults, name), metavar="N", help=text)
    parser.add_argument(
        "--transform-strips-newlines",
        dest="transform_keeps_newlines",
        action="store_false",
        help="send a transform job's line without its newline where it goes alone; AWS: not documented",
    )
    parser.add_argument(
        "--transform-ranges-exclude-end",
        dest="transform_range_includes_end",
        action="store_false",
        help="[a:b] of a transform job's filter leaves out b; AWS: the guide's example includes it",
    )
    parsed = parser.parse_args(arguments)
    for option, name, _, _ in _NUMBERS:
        may_be_zero, value = name in _MAY_BE_ZERO, getattr(parsed, name)
        if not 0 <= value < math.inf or (value == 0 and not may_be_zero):
            parser.error(f"{option} must be {'zero or more' if may_be_zero else 'above zero'}; got {value}")
    given = vars(parsed) | {"state_dir": parsed.state_dir.resolve(), "quotas": tuple(parsed.quotas)}
    fd, as_json = given.pop("fd"), given.pop("as_json")
    return Command(Settings(**given), fd, as_json)


def _quota(argument: str) -> tuple[str, int]:
    name, _, value = argument.rpartition("=")
    if not value.isdigit():
        raise argparse.ArgumentTypeError(f"expected NAME=N with a whole number N; got {argument!r}")
    try:
        Quotas().change({name: int(value)})
    except QuotaError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return name, int(value)


_NUMBERS = (
    (
        "--time-scale",
        "time_scale",
        float,
        "AWS seconds that pass in a real one: instance and container starts, idle stops, health-check intervals, "
        "metric bins and lag, alarms, cooldowns, schedules, traffic shifting; not real work (model calls, /ping, "
        "process starts) nor limits on it. Alarms are told apart up to 60",
    ),
    ("--metric-period", "metric_period_s", int, "seconds a CloudWatch bin covers; AWS: 60"),
    (
        "--metric-lag",
        "metric_lag_s",
        float,
        "seconds from a bin's end to its publication; AWS: 60-180 seen",
    ),
    ("--serverless-idle", "serverless_idle_s", float, "seconds after which an idle container stops; AWS: unpublished"),
    (
        "--cold-start-extra",
        "cold_start_extra_s",
        float,
        "seconds added to a container's real start; AWS: image pull",
    ),
    ("--instance-start", "instance_start_s", float, "seconds added to an instance's real start; AWS: 180-540"),
    (
        "--startup-timeout",
        "startup_timeout_s",
        float,
        "seconds to the first good /ping, if the variant is silent; AWS: 240",
    ),
    ("--invocation-timeout", "invocation_timeout_s", float, "seconds one model call may take; AWS: 60"),
    ("--stream-timeout", "stream_timeout_s", float, "seconds one model call may take whose answer streams; AWS: 480"),
    (
        "--async-concurrency",
        "async_concurrency",
        int,
        "asynchronous requests an instance has at a time; AWS: own choice",
    ),
    ("--cold-start-timeout", "cold_start_timeout_s", float, "seconds a request waits for a container; AWS: 180"),
    ("--ping-interval", "ping_interval_s", float, "seconds between health checks; AWS: unpublished"),
    ("--ping-timeout", "ping_timeout_s", float, "seconds a /ping may take; AWS: 2"),
    ("--creating", "creating_s", float, "seconds an endpoint is Creating at least; AWS: minutes"),
    ("--updating", "updating_s", float, "seconds an endpoint is Updating at least; AWS: minutes"),
    ("--deleting", "deleting_s", float, "seconds an endpoint is Deleting at least; AWS: seconds to minutes"),
    (
        "--consistency-lag",
        "consistency_lag_s",
        float,
        "seconds in which a new model or configuration is not seen by who refers to it; AWS: seconds, now and then",
    ),
    ("--stop-grace", "stop_grace_s", float, "seconds from SIGTERM to SIGKILL; AWS: 30"),
    ("--max-payload", "max_payload_bytes", int, "bytes, real-time; AWS: 6291456 (API model) or 25 MB (guide)"),
    ("--max-serverless-payload", "max_serverless_payload_bytes", int, "bytes, serverless; AWS: 4 MB"),
    ("--cores-per-instance", "cores_per_instance", float, "busy host cores that read as a fully used instance"),
    ("--transform-start", "transform_start_s", float, "seconds from a transform job to its instances; AWS: minutes"),
    (
        "--transform-startup-timeout",
        "transform_startup_timeout_s",
        float,
        "seconds to a transform container's first good /ping; AWS: 1800 seen",
    ),
    ("--transform-max", "transform_max_s", float, "seconds a transform job may run; AWS: unpublished"),
)
_MAY_BE_ZERO = {
    "metric_lag_s", "cold_start_extra_s", "instance_start_s", "serverless_idle_s", "creating_s", "updating_s",
    "deleting_s", "consistency_lag_s", "transform_start_s",
}  # fmt: skip


async def serve(settings: Settings, listener: socket.socket, *, as_json: bool) -> None:
    """Serve until a signal. Raises `JournalError`, or `OSError` where the state folder cannot be used."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner = web.AppRunner(Server(settings).app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    # What is loaded by now (service models, mostly) stays: looking through it again stops all requests for 40 ms.
    gc.collect()
    gc.freeze()
    await web.SockSite(runner, listener).start()
    host, port = listener.getsockname()[:2]
    url = f"http://{host}:{port}"
    shown = {"url": url, "pid": os.getpid(), "state_dir": str(settings.state_dir)}
    print(json.dumps(shown) if as_json else f"ready {url}", flush=True)
    await stopping.wait()
    await runner.cleanup()


if __name__ == "__main__":
    main()
