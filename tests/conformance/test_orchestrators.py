"""The examples in docs/orchestrators under the real Airflow and the real kfp, against a small real front door.

Each runs as a script in an environment and process of its own (`clients/`), and tells what came of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.environments import ORCHESTRATORS
from tests.unit.orchestrators.front_door import KEY, FrontDoor, front_door
from workbench.stack.layout import project_root

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]
CLIENTS = Path(__file__).parent / "clients"
EXAMPLES = project_root() / "docs/orchestrators"
TIMEOUT_S = 300.0


def ran(
    name: str, script: str, folder: Path, arguments: list[str], environment: Mapping[str, str]
) -> Mapping[str, Any]:
    """What a script printed last. Skips where its environment is missing."""
    home = ORCHESTRATORS[name]
    if (reason := home.missing()) is not None:
        pytest.skip(reason)
    done = subprocess.run(
        [str(home.python), str(CLIENTS / script), str(EXAMPLES), *arguments],
        cwd=folder,
        env={"PATH": f"{home.folder}/bin:{os.environ['PATH']}", "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    results: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, Any], FrontDoor]:
    """What the Airflow example came to, and the front door that it spoke to: its second job fails."""
    folder = tmp_path_factory.mktemp("airflow")
    with front_door(ends=["done", "failed"], refused="s3://b/refused/") as door:
        connection = {"conn_type": "http", "host": door.url, "password": KEY, "extra": {"auth": "api_key"}}
        environment = {
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_INFERLANE_DEFAULT": json.dumps(connection),
        }
        return ran("airflow", "airflow_dag_run.py", folder, [], environment), door


def test_the_dag_runs_its_data_set_and_hands_the_output_on(airflow: tuple[Mapping[str, Any], FrontDoor]) -> None:
    """Deferred, resumed, done: the day's data set was asked for once, and the next task has where its verdicts lie."""
    results, door = airflow
    assert results["dag"]["state"] == "success"
    assert results["dag"]["tasks"] == {"recheck": "success", "announce": "success"}
    assert "s3://acme-texts/verdicts/2026-12-01/" in results["dag"]["announced"]
    asked = [body for body in door.bodies if b"acme-texts" in body]
    assert [json.loads(body)["input"] for body in asked] == ["s3://acme-texts/in/2026-12-01/"]


def test_a_try_after_a_failure_starts_anew_and_one_after_a_crash_does_not(
    airflow: tuple[Mapping[str, Any], FrontDoor],
) -> None:
    """The failed job's reason ends the first try; the second has a job of its own, which the third finds done."""
    results, door = airflow
    assert "the model ended" in results["first_try"]
    assert (results["second_try"], results["third_try"]) == ("done", "done")
    assert len([job for job in door.jobs.values() if "s3://b/fails/" in job["asked"][1]]) == 2


def test_a_refusal_fails_the_task_for_good(airflow: tuple[Mapping[str, Any], FrontDoor]) -> None:
    """403 becomes Airflow's failure without retries, with the service's words."""
    results, door = airflow
    assert "403 as told" in results["refused"]
    assert len([body for body in door.bodies if b"refused" in body]) == 1


def test_a_killed_task_cancels_its_job_deferred_or_not(airflow: tuple[Mapping[str, Any], FrontDoor]) -> None:
    """By the operator or by a trigger that was stored; what is stored has no secret in it."""
    results, door = airflow
    ended = {json.loads(job["asked"][1])["input"]: job["status"] for job in door.jobs.values()}
    assert ended["s3://b/killed/"] == ended["s3://b/killed-deferred/"] == "cancelled"
    assert results["stored"] == ["conn_id", "job_id", "wait_s"]


def test_the_kubeflow_component_runs_as_its_pod_would(tmp_path: Path) -> None:
    """The pipeline compiles with its secret; the component's own command, run twice, has one job and its output."""
    with front_door() as door:
        environment = {"INFERLANE_API_KEY": KEY}
        results = ran("kfp", "kfp_run.py", tmp_path, [door.url], environment)
        assert len(door.jobs) == 1
    assert results["pipeline"] == "recheck-texts"
    assert results["inputs"] == ["model", "source", "target", "url"]
    assert results["secret"] == "inferlane"
    assert results["outputs"] == ["s3://b/out/", "s3://b/out/"]
