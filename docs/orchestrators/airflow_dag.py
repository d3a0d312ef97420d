"""A DAG: every morning the day before's texts through the heavy model, then something is done with the verdicts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import dag, task

from inferlane_airflow import TransformDataset


@dag(
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    tags=["inferlane"],
)
def recheck_texts() -> None:
    """One data set a day; a backfill runs each day's own."""
    recheck = TransformDataset(
        task_id="recheck",
        model="moderation-heavy",
        source="s3://acme-texts/in/{{ ds }}/",
        target="s3://acme-texts/verdicts/{{ ds }}/",
    )

    @task
    def announce(job: dict[str, Any]) -> str:
        """What the next task is handed: where the verdicts lie, and what they cost."""
        return f"verdicts are in {job['output']}, for {job.get('cost_usd', 'an unknown number of')} USD"

    announce(recheck.output)


recheck_texts()
