"""The measured handlers against the backend of the measurements, over real sockets: that all do the same work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import urllib3

from workbench.bench import processes, scene
from workbench.bench.backend import DELAY_S
from workbench.bench.processes import Backend, BenchError


@pytest.fixture(scope="module")
def at() -> Iterator[Backend]:
    """The backend in its own process."""
    with processes.backend() as made:
        yield made


@pytest.mark.parametrize("kind", ["router", "boto3"])
def test_each_lambda_brings_the_models_answer_and_its_times(at: Backend, kind: str) -> None:
    """Every call is answered by the backend (the caller checks the answer) and has a whole and a waiting time."""
    with processes.caller(kind, kind, at.at_once) as made:
        times = made.run(3)
    assert len(times.wall) == len(times.wait) == 3
    assert all(0 < wait < wall for wall, wait in zip(times.wall, times.wait, strict=True))


def test_the_models_time_counts_as_waiting_and_not_as_the_routers_own(at: Backend) -> None:
    """With a model that takes 2 ms calls wait that long, but for those that a busy host let begin too late."""
    with processes.caller("router", "router", at.delayed) as made:
        made.run(5)
        times = made.run(5)
    assert max(times.wait) >= DELAY_S * 1e9
    assert min(times.own) > 0


def test_the_served_handler_answers_as_the_backend_does(at: Backend) -> None:
    """Over HTTP, our handler gives the same bytes as the model behind it."""
    http = urllib3.PoolManager(retries=False, timeout=20)
    with processes.served(at.at_once) as url:
        answer = http.request("POST", url, body=scene.PAYLOAD.encode(), headers={"content-type": "application/json"})
    assert (answer.status, answer.data.decode()) == (200, scene.ANSWER)


def test_a_contender_that_cannot_answer_is_named_with_its_reason() -> None:
    """Nothing is measured of a front whose backend is not there."""
    with (
        processes.caller("a broken one", "http", "http://127.0.0.1:9") as made,
        pytest.raises(BenchError, match=r"a broken one ended: [\s\S]*refused"),
    ):
        made.run(1)
