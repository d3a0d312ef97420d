"""A lane dies under load: nobody notices. Both die: everybody is told, in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tests.e2e.conftest import MODEL, PATH
from tests.e2e.test_front_door import post, problem
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.traffic import Answer, Call, Client, Tally

Keys = Callable[[str], dict[str, str]]
REQUESTS = 200


def endpoint(deployed: Deployment, lane: str) -> str:
    return str(deployed.lane(lane, MODEL)["endpoint"])


async def back_on_dedicated(client: Client, limit_s: float = 60.0) -> list[Answer]:
    """Send until the dedicated lane answers; what was answered meanwhile."""
    answers: list[Answer] = []
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        answers.append(await client.send(Call(PATH, {"text": "are you back?"})))
        if answers[-1].lane == "dedicated":
            break
        await asyncio.sleep(0.2)
    return answers


async def test_two_hundred_requests_survive_the_endpoints_death(
    deployed: Deployment, api_key: Keys, faults: Faults
) -> None:
    """All 200 are answered 200: from dedicated, then from serverless after the kill, then from dedicated again."""
    async with Client(deployed.url, api_key("demo-app")) as client:
        await back_on_dedicated(client)
        count = 0

        def kill_at_fifty(_answer: Answer) -> None:
            nonlocal count
            count += 1
            if count == REQUESTS // 4:
                faults.inject(endpoint(deployed, "dedicated"), "kill")

        answers = await client.closed(
            (Call(PATH, {"text": f"request number {n}"}) for n in range(REQUESTS)), callers=2, on_answer=kill_at_fifty
        )
        faults.clear()
        recovered = await back_on_dedicated(client)
    tally = Tally(answers)
    assert len(answers) == REQUESTS
    assert [(a.status, a.error, a.body) for a in tally.failed] == []
    assert tally.lanes["dedicated"] >= REQUESTS // 5
    assert {a.lane for a in answers[-REQUESTS // 2 :]} == {"serverless"}
    assert recovered[-1].lane == "dedicated"
    assert not Tally(recovered).failed


def test_both_lanes_dead_is_503_before_the_deadline(deployed: Deployment, api_key: Keys, faults: Faults) -> None:
    """With no lane left the caller gets a problem document that lists the attempts, well before its deadline."""
    for lane in ("dedicated", "serverless"):
        faults.inject(endpoint(deployed, lane), "kill")
    began = time.monotonic()
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app") | {"X-Inferlane-Deadline-Ms": "8000"})
    assert time.monotonic() - began < 8
    assert response.status == 503
    body = problem(response)
    assert [attempt["lane"] for attempt in body["attempts"]] == ["dedicated", "serverless"]
    assert "inferlane-local" not in response.data.decode()


def test_a_hanging_endpoint_costs_its_share_of_the_deadline_only(
    deployed: Deployment, api_key: Keys, faults: Faults
) -> None:
    """An endpoint that never answers is given up in time for the fallback to answer within the deadline."""
    post(deployed.url + PATH, {"text": "warm"}, api_key("demo-app"))
    faults.inject(endpoint(deployed, "dedicated"), "hang")
    began = time.monotonic()
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app") | {"X-Inferlane-Deadline-Ms": "10000"})
    took = time.monotonic() - began
    assert response.status == 200, response.data
    assert response.headers["x-inferlane-lane"] == "serverless"
    assert took < 10


def test_a_throttled_lane_falls_back_and_both_throttled_is_429(
    deployed: Deployment, api_key: Keys, faults: Faults
) -> None:
    """A throttle (SageMaker's 400 with a null message) means the next lane; on all lanes it is 429 with Retry-After."""
    faults.inject(endpoint(deployed, "dedicated"), "throttle")
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app"))
    assert (response.status, response.headers["x-inferlane-lane"]) == (200, "serverless")
    faults.inject(endpoint(deployed, "serverless"), "throttle")
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app"))
    assert response.status == 429
    assert int(response.headers["retry-after"]) >= 1
    problem(response)


def test_model_failures_fall_back(deployed: Deployment, api_key: Keys, faults: Faults) -> None:
    """A model that answers 500 is not the caller's fault: the other lane answers."""
    faults.inject(endpoint(deployed, "dedicated"), "errors", {"percent": 100, "status": 500})
    response = post(deployed.url + PATH, {"text": "x"}, api_key("demo-app"))
    assert (response.status, response.headers["x-inferlane-lane"]) == (200, "serverless")
