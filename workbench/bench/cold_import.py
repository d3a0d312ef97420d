"""What a cold start imports and wires: the router's handler, against `import boto3` and one client (budget: 0.8 of it).

Whole processes, A B A B, so that each pair sees the same machine; the figure is the median of the pairs' ratios. The
router is wired as in Lambda, by its environment, up to the first request; AWS clients are made when first needed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from workbench.bench.processes import lambda_environment
from workbench.stack.layout import project_root

PAIRS: Final = 9
ROUTER: Final = (
    "import functions.handlers.route\n"
    "from functions.bootstrap import route_parts\n"
    "from functions.settings import read_router\n"
    "route_parts(read_router())"
)
PLAIN: Final = "import boto3\nboto3.client('sagemaker-runtime', region_name='us-east-1')"


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """Seconds each way and their ratio; an empty interpreter is subtracted from both."""
    with tempfile.TemporaryDirectory(prefix="inferlane-bench-") as folder:
        env = lambda_environment("http://127.0.0.1:9", Path(folder))

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
