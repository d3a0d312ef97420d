"""A Kubeflow Pipelines component that has a data set run by an inferlane stack's batch lane (kfp 2), and a pipeline.

The component's image is a plain Python; `inferlane_jobs.py` travels inside it. The job's idempotency key is made of
the pipeline's run, the task and what is asked: a pod that is evicted and started again finds the job that it started
before. A job that failed is found again too; run the pipeline anew to try again. The API key comes from a Kubernetes
secret: `kubectl create secret generic inferlane --from-literal=api-key=…`.

    python inferlane_kfp.py pipeline.yaml        # compile
"""

import sys
from pathlib import Path
from typing import List  # noqa: UP035 - kfp knows this form

from kfp import compiler, dsl, kubernetes

CLIENT = Path(__file__).parent / "inferlane_jobs.py"


@dsl.component(base_image="python:3.11-slim", embedded_artifact_path=str(CLIENT))
def transform_dataset(
    url: str,
    model: str,
    source: str,
    target: str,
    names: List[str],  # noqa: UP006
    timeout_s: float = 21600.0,
) -> str:
    """Run the data set `source` through the model into `target`; returns where the output lies.

    `names` are what tells this task from every other: the run's id and the task's name.
    """
    import os

    from inferlane_jobs import Jobs, api_key, key_of

    jobs = Jobs(url, api_key(os.environ["INFERLANE_API_KEY"]))
    started = jobs.dataset(model, source, target, key_of(*names, model, source, target))
    return str(jobs.wait(started, timeout_s).document["output"])


@dsl.pipeline(name="recheck-texts")
def recheck_texts(url: str, source: str, target: str, model: str = "moderation-heavy") -> None:
    """One data set through the heavy model."""
    names = [dsl.PIPELINE_JOB_ID_PLACEHOLDER, "recheck"]
    task = transform_dataset(url=url, model=model, source=source, target=target, names=names)
    task.set_caching_options(enable_caching=False)
    task.set_retry(num_retries=2, backoff_duration="60s")
    kubernetes.use_secret_as_env(task, "inferlane", {"api-key": "INFERLANE_API_KEY"})


if __name__ == "__main__":
    compiler.Compiler().compile(recheck_texts, sys.argv[1])
