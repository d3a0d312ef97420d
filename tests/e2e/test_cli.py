"""The command line as a person meets it: help, JSON, one-line errors with a way out, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from workbench.stack.cloud import NAMED_BY, Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root
from workbench.stack.processes import free_port

COMMANDS = [
    "up", "status", "down", "deploy", "destroy", "demo", "sagemaker", "fault", "fault kill", "keys", "keys create",
]  # fmt: skip


def cli(*arguments: str, folder: Path | None = None, named: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `inferlane` as a process; with `folder`, on a state folder of its own that knows no running stack."""
    env = dict(os.environ)
    if folder is not None:
        for name in NAMED_BY:
            env.pop(name, None)
        env["INFERLANE_DIR"] = str(folder)
    if named is not None:
        env["AWS_ENDPOINT_URL"] = named
    return subprocess.run(
        [sys.executable, "-m", "workbench.cli", *arguments], env=env, capture_output=True, text=True, timeout=120
    )


def assert_one_line_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 1, done
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """--help works everywhere and says more than the usage."""
    done = cli(*command.split(), "--help")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 4


@pytest.mark.parametrize(
    "command", ["deploy", "destroy", "fault list", "fault kill --lane dedicated", "keys create x", "keys list"]
)
def test_without_a_stack_each_command_says_how_to_start_one(command: str, tmp_path: Path) -> None:
    """No stack: one line with `inferlane up`, exit 1, and with --json the same as an object."""
    assert_one_line_error(cli(*command.split(), folder=tmp_path), "inferlane up")
    done = cli(*command.split(), "--json", folder=tmp_path)
    assert "inferlane up" in json.loads(done.stdout)["error"]


def test_down_and_status_without_a_stack_are_calm(tmp_path: Path) -> None:
    """Stopping nothing is fine; the status of nothing is told and exits 1."""
    assert cli("down", folder=tmp_path).returncode == 0
    done = cli("status", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (1, "the offline cloud is not running: inferlane up")


def test_a_used_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A taken port is a one-line error that offers --port; no process is left."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_one_line_error(cli("up", "--port", str(port), folder=tmp_path), f"port {port}", "--port")
    assert Layout(tmp_path).read_record() is None


def test_unknown_stacks_lanes_and_models_name_what_there_is(deployed: Deployment) -> None:
    """A typo is answered with the names that exist."""
    assert_one_line_error(cli("deploy", "--stack", "grwth"), "'grwth'", "growth", "local")
    assert_one_line_error(cli("fault", "kill", "--lane", "gpu"), "'gpu'", "dedicated", "serverless")
    assert_one_line_error(cli("fault", "kill", "--lane", "dedicated", "--model", "chat"), "'chat'", "moderation")
    assert_one_line_error(cli("destroy", "--stack", "growth"), "growth is not deployed")
    assert_one_line_error(cli("keys", "revoke", "nobody"), "no key for 'nobody'")
    assert_one_line_error(cli("fault", "clear", "no-such-fault"), "no-such-fault")


def models(package: str, *, memory_mb: int) -> str:
    """A --set of the model `m` with all lanes, and of the one that the nightly recheck needs."""
    lanes = {
        "dedicated": {"instance_type": "ml.g5.xlarge", "min_instances": 1, "max_instances": 1, "slots_per_instance": 1},
        "serverless": {"memory_mb": memory_mb, "max_concurrency": 2},
        "batch": {"instance_type": "ml.c5.xlarge", "usd_per_instance_hour": 0.204},
    }
    heavy = {"package": "models/moderation-heavy", "batch": lanes["batch"]}
    rechecked = {"package": "models/moderation-light", "serverless": {"memory_mb": 2048, "max_concurrency": 2}}
    made = {"m": {"package": package, **lanes}, "moderation": rechecked, "moderation-heavy": heavy}
    return "inferlane:models=" + json.dumps(made)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("inferlane:auth=open", ("auth", "open", "iam", "api_key")),
        ("inferlane:policy=policies/none.yaml", ("policies/none.yaml",)),
        ("inferlane:stage=prototype", ("prototype", "dedicated")),
        (models("models/none", memory_mb=2048), ("models/none",)),
        (models("models/moderation-light", memory_mb=1500), ("models.m.serverless.memory_mb", "1500")),
    ],
)
def test_a_bad_configuration_changes_nothing(deployed: Deployment, setting: str, words: tuple[str, ...]) -> None:
    """An invalid stack configuration is one precise line, and the deployed stack stays as it was."""
    assert_one_line_error(cli("deploy", "--set", setting), *words)
    done = cli("deploy", "--preview", "--json")
    assert {action for action, number in json.loads(done.stdout)["counts"].items() if number} == {"same"}


def test_status_tells_the_whole_house(deployed: Deployment, layout: Layout) -> None:
    """Processes, stacks and endpoints in one view, exit 0."""
    if layout.read_record() is None:
        pytest.skip("the suite runs on a named endpoint: its processes are not ours to watch")
    done = cli("status", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 0, done
    assert data["processes"] == {"sagemaker": "up", "gateway": "up", "bridge": "up"}
    assert data["stacks"]["local"] == deployed.url
    assert {endpoint["state"] for endpoint in data["endpoints"]} == {"InService"}


def test_a_model_that_cannot_start_fails_the_deploy_by_name(
    cloud: Cloud, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A model whose code cannot be imported: the cause in one line, the endpoint named, and destroy cleans up."""
    import io
    import tarfile

    from workbench.stack import deployment
    from workbench.stack.processes import StackError

    package = project_root() / "build/test-broken-model"
    (package / "build").mkdir(parents=True, exist_ok=True)
    code = b"import a_package_that_does_not_exist\n"
    with tarfile.open(package / "build/model.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("code/inference.py")
        entry.size = len(code)
        archive.addfile(entry, io.BytesIO(code))
    data = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())
    data["config"]["inferlane:models"]["moderation"]["package"] = "build/test-broken-model"
    (project / "Pulumi.broken.yaml").write_text(yaml.safe_dump(data))
    layout = Layout(tmp_path_factory.mktemp("broken"))
    with pytest.raises(StackError, match="a_package_that_does_not_exist") as failed:
        deployment.run("up", "broken", cloud=cloud, layout=layout, project=project)
    assert "inferlane-broken-moderation" in str(failed.value)
    assert "\n" not in str(failed.value)
    deployment.run("destroy", "broken", cloud=cloud, layout=layout, project=project)


def listeners() -> set[int]:
    return {c.laddr.port for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr}


def ours(folder: Path) -> list[str]:
    """Command lines of live processes that belong to the stack of a state folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        environ = process.info["environ"] or {}
        mine = environ.get("TMPDIR") == str(folder / "tmp")
        if mine and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(process.info["cmdline"] or []))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_starting_leaves_nothing(number: signal.Signals, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An interrupted `up` exits 130 and stops what it had started; one that is told to end does the same."""
    folder, port = tmp_path_factory.mktemp("stop"), free_port()
    env = {name: value for name, value in os.environ.items() if name not in NAMED_BY} | {"INFERLANE_DIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", "up", "--port", str(port)],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell inherits an ignored SIGINT; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 10
    while not ours(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert ours(folder) == []
    assert Layout(folder).read_record() is None
