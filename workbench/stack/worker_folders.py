"""What stopped function environments leave on disk goes aside, while the offline stack answers on.

MiniStack removes an environment's folder, some hundreds of files, in the thread that answers every request: deleting a
stack's functions kept it from answering for seconds, and on a busy machine for more than a minute. Here another process
removes them, one after the other. One of the files that know MiniStack's internals: one method is replaced, which a
contract test holds.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any


def remove_aside(executor: Executor | None = None) -> None:
    """From now on, in this process; `executor` runs one removal at a time."""
    from ministack.core.lambda_runtime import Worker

    aside = executor or ThreadPoolExecutor(1, "worker-folders")

    def discard(worker: Any) -> None:
        folder, worker._tmpdir = worker._tmpdir, None
        if folder:
            aside.submit(subprocess.run, ["rm", "-rf", "--", folder], check=False, capture_output=True)

    Worker._discard_tmpdir = discard
