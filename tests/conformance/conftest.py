"""One fresh offline host for the folder: real clients of every kind reach it as they would reach AWS.

Waits of the emulated cloud pass 60 times faster than AWS's, so that clients which poll every half minute find things
done at their second look.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workbench.stack import offline
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout

TIME_SCALE = 60.0


@pytest.fixture(scope="package")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """MiniStack and the SageMaker emulator behind one endpoint."""
    layout = Layout(tmp_path_factory.mktemp("cf"))
    pace = offline.Pace(time_scale=TIME_SCALE)
    try:
        record = offline.up(layout, port=0, pace=pace, say=print)
        yield Cloud(record.endpoint_url, record.cloud_id)
    finally:
        offline.down(layout)
