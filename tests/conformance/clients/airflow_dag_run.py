"""The Airflow example under a real Airflow, in one process. Prints what came of it as a line of JSON.

First the DAG, as the scheduler would have it: the task defers, its trigger waits, it is resumed, its XCom goes on.
Then the operator by itself: a try after a job that failed, a refusal, a task that is killed while it waits and while
it is deferred. The connection is in the environment, as Airflow reads it; AIRFLOW_HOME is a folder of its own.
"""

import asyncio
import importlib
import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

FOLDER = sys.argv[1]
sys.path.insert(0, FOLDER)  # as Airflow has it for its folder of DAGs


def main() -> None:
    """The DAG, then the operator."""
    print(json.dumps({"dag": dag_run(), **operator()}))


def dag_run() -> dict[str, Any]:
    """One run of one day."""
    from airflow.utils.db import initdb

    initdb()
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(f"{FOLDER}/airflow_dag.py")
    assert not bag.import_errors, bag.import_errors
    run = bag.dags["recheck_texts"].test(logical_date=datetime(2026, 12, 1, tzinfo=UTC))
    instances = {ti.task_id: ti for ti in run.get_task_instances()}
    return {
        "state": str(run.state),
        "tasks": {name: str(ti.state) for name, ti in instances.items()},
        "announced": instances["announce"].xcom_pull(task_ids="announce"),
    }


def operator() -> dict[str, Any]:
    """What a worker and a triggerer do with it."""
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    import inferlane_airflow
    import inferlane_jobs

    def task(source: str, **more: Any) -> inferlane_airflow.TransformDataset:
        return inferlane_airflow.TransformDataset(
            task_id="t", model="m", source=f"s3://b/{source}/", target="s3://b/out/", **more
        )

    def context(try_number: int) -> Any:
        ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=try_number)
        return {"ti": ti}

    found: dict[str, Any] = {}
    try:
        task("fails", deferrable=False).execute(context(1))
    except inferlane_jobs.EndedBadlyError as error:
        found["first_try"] = str(error)
    found["second_try"] = task("fails", deferrable=False).execute(context(2))["status"]
    found["third_try"] = task("fails", deferrable=False).execute(context(3))["status"]
    try:
        task("refused", deferrable=False).execute(context(1))
    except AirflowFailException as error:
        found["refused"] = str(error)

    waiting = task("killed")
    try:
        waiting.execute(context(1))
    except TaskDeferred as deferred:
        path, arguments = deferred.trigger.serialize()
    waiting.on_kill()
    deferring = task("killed-deferred")
    try:
        deferring.execute(context(1))
    except TaskDeferred as deferred:
        path, arguments = deferred.trigger.serialize()
    module, _, name = path.rpartition(".")
    # As a triggerer has it: made anew from what was stored, which is JSON.
    trigger = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
    asyncio.run(trigger.on_kill())
    found["stored"] = sorted(arguments)
    return found


main()
