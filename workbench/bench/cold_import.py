"""What a cold start imports: the router's handler, against `import boto3` and one client (budget: 0.8 of it).

Whole processes, A B A B, so that each pair sees the same machine; the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from workbench.stack.cloud import offline_environment
from workbench.stack.layout import project_root

PAIRS = 9
ROUTER = (
    "import functions.handlers.route\n"
    "from aws_lambda_powertools import Logger\n"
    "from functions.aws import appconfig, clients, cloudwatch, sagemaker_runtime, telemetry\n"
    "clients.session().get_credentials()"
)
PLAIN = "import boto3\nboto3.client('sagemaker-runtime', region_name='us-east-1')"


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """Seconds each way and their ratio; an empty interpreter is subtracted from both."""
    env = offline_environment("http://127.0.0.1:9")

    def run(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=env, cwd=project_root(), check=True)  # noqa: S603 - our own code
        step()
        return time.perf_counter() - began

    rows = [(run("pass"), run(ROUTER), run(PLAIN)) for _ in range(PAIRS)]
    ratios = [(router - empty) / (plain - empty) for empty, router, plain in rows]
    return {
        "router_s": round(statistics.median(router - empty for empty, router, _ in rows), 4),
        "boto3_and_client_s": round(statistics.median(plain - empty for empty, _, plain in rows), 4),
        "ratio": round(statistics.median(ratios), 3),
    }


def steps() -> int:
    """How often `measure` calls `step`."""
    return PAIRS * 3
