"""A stack with a batch lane, and a model whose every answer can be checked: it names what it was asked.

The program is the project's own; the stack's file, the policy and the model's package are the test's. The model takes
JSON and PNG; of JSON it knows requests that it refuses and requests that make it fail, so that a poisoned record is
refused alone or sinks the file it lies in.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import yaml

from tests.e2e.drills import package
from workbench import keys
from workbench.stack import deployment
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.layout import Layout, project_root

MODEL = "mixed"
PNG = b"\x89PNG\r\n\x1a\n"
JSON_TYPE = "application/json"
_CODE = '''"""Answers with the number and the digest of what it was asked; refuses or fails where that asks for it."""
import hashlib, json, os

class Refused(ValueError):
    status = 400

def model_fn(model_dir):
    return None

def one(body):
    asked = json.loads(body)
    if asked.get("poison") == "refuse":
        raise Refused("this record is refused")
    if asked.get("poison") == "fail":
        raise RuntimeError("this record breaks the model")
    pad = {"pad": "x" * asked["pad"]} if "pad" in asked else {}
    return {"n": asked["n"], "digest": hashlib.sha256(asked["text"].encode()).hexdigest(), **pad}

def input_fn(body, content_type):
    kind = (content_type or "application/json").partition(";")[0]
    if os.environ.get("SAGEMAKER_BATCH") != "true":
        return record(body, kind)
    if kind == "application/jsonlines":
        return [answered(line, "application/json") for line in bytes(body).split(b"\\n") if line.strip()]
    return answered(body, kind)

def answered(body, kind):
    """In a batch a refusal is an answer, so that it is the record's own."""
    try:
        return record(body, kind)
    except Refused as error:
        return {"inferlane_error": {"status": 400, "detail": str(error)}}

def record(body, kind):
    if kind == "image/png":
        if bytes(body[:8]) != b"\\x89PNG\\r\\n\\x1a\\n":
            raise Refused("this is no PNG")
        return {"bytes": len(body), "digest": hashlib.sha256(body).hexdigest()}
    if kind != "application/json":
        raise Refused("neither JSON nor PNG")
    try:
        return one(body)
    except json.JSONDecodeError:
        raise Refused("this is no JSON") from None

def predict_fn(data, model):
    return data

def output_fn(prediction, accept):
    if isinstance(prediction, list):
        return "".join(json.dumps(item) + "\\n" for item in prediction), "application/jsonlines"
    return json.dumps(prediction), "application/json"
'''
_POLICY = """\
schema: inferlane/policy/v1
version: batches.1
defaults: {order: [batch, serverless], within: 1h}
tenants:
  - {api_key: red, tenant: red, tier: standard, cost_center: red}
  - {api_key: blue, tenant: blue, tier: standard, cost_center: blue}
tiers:
  standard: {max_priority: normal}
"""


@dataclass(frozen=True)
class Asked:
    """One request: what is sent, and what must come of it. `expected` None: it must fail with `status`."""

    body: bytes
    content_type: str
    expected: Mapping[str, object] | None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def good(n: int, **headers: str) -> Asked:
    """JSON that is answered."""
    text = f"text {n} with ünicode and a secret {secret(n)}"
    # Line ends outside strings are JSON too.
    body = json.dumps({"n": n, "text": text}, indent=1 if n % 3 == 0 else None).encode()
    return Asked(body, JSON_TYPE, {"n": n, "digest": hashlib.sha256(text.encode()).hexdigest()}, headers=headers)


def bulky(n: int, size: int) -> Asked:
    """JSON whose answer has more than `size` bytes."""
    digest = hashlib.sha256(b"bulk").hexdigest()
    body = json.dumps({"n": n, "text": "bulk", "pad": size}).encode()
    return Asked(body, JSON_TYPE, {"n": n, "digest": digest, "pad": "x" * size})


def image(n: int, **headers: str) -> Asked:
    """A PNG that is answered."""
    body = PNG + hashlib.sha256(str(n).encode()).digest() * (1 + n % 40)
    return Asked(body, "image/png", {"bytes": len(body), "digest": hashlib.sha256(body).hexdigest()}, headers=headers)


def poison(n: int) -> Asked:
    """What the model refuses, breaks on, or cannot read: in turn."""
    kind = n % 4
    if kind == 0:
        return Asked(json.dumps({"n": n, "text": "x", "poison": "refuse"}).encode(), JSON_TYPE, None, 400)
    if kind == 1:
        return Asked(json.dumps({"n": n, "text": "x", "poison": "fail"}).encode(), JSON_TYPE, None, 502)
    if kind == 2:
        return Asked(f'{{"n": {n}, "text": '.encode(), JSON_TYPE, None, 400)
    return Asked(b"GIF89a" + str(n).encode(), "image/png", None, 400)


def secret(n: int) -> str:
    """A mark in a payload that must never be seen in a log."""
    return hashlib.sha256(f"secret {n}".encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Batches:
    """A deployed stack with a batch lane; callers by tenant."""

    deployed: Deployment
    client: Callable[[str], Any]
    headers: Mapping[str, Mapping[str, str]]
    redeploy: Callable[[str, Mapping[str, object]], Deployment]
    """Deploy another package of the same model, of that name, and these settings changed."""

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.deployed.stack

    @property
    def path(self) -> str:
        """Where requests to the model go."""
        return f"/v1/models/{MODEL}/invocations"

    def invoke(self, function: str, event: object = None) -> Any:
        """Call one of the stack's functions and return what it answers; raises when it fails."""
        answer = self.client("lambda").invoke(
            FunctionName=f"inferlane-{self.stack}-{function}", Qualifier="live", Payload=json.dumps(event or {})
        )
        body = answer["Payload"].read()
        if "FunctionError" in answer:
            raise RuntimeError(f"{function} failed: {body[:500]!r}")
        return json.loads(body or "null")

    @contextmanager
    def collecting(self, every_s: float = 3.0) -> Iterator[None]:
        """Call the collector more often than the scheduler's minute, until the block ends."""

        def turn() -> None:
            with suppress(RuntimeError):  # a fault test kills it on purpose; the next turn goes on
                self.invoke("collect")

        with repeated(turn, every_s):
            yield


@contextmanager
def repeated(turn: Callable[[], object], every_s: float) -> Iterator[None]:
    """Do something again and again, beside the block, until it ends; what it raises ends it, and is raised then."""
    stop = threading.Event()
    troubles: list[Exception] = []

    def turns() -> None:
        try:
            while not stop.wait(every_s):
                turn()
        except Exception as error:  # raised below, in the test's own thread
            troubles.append(error)

    thread = threading.Thread(target=turns, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    for error in troubles:
        raise error


class Caller:
    """One tenant at the front door, many requests at a time."""

    def __init__(self, batches: Batches, tenant: str, *, at_once: int = 16) -> None:
        self._batches = batches
        self._headers = batches.headers[tenant]
        self._gate = asyncio.Semaphore(at_once)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Caller:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=60), connector=aiohttp.TCPConnector(limit=0)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body."""
        assert self._session is not None
        async with (
            self._gate,
            self._session.request(
                method, self._batches.deployed.url + path, data=body, headers={**self._headers, **(headers or {})}
            ) as answer,
        ):
            return answer.status, answer.headers, await answer.read()

    async def submit(self, asked: Asked) -> str:
        """Send it to be answered later; the job's id."""
        status, headers, body = await self.call(
            "POST",
            self._batches.path,
            asked.body,
            {"Content-Type": asked.content_type, "Prefer": "respond-async", **asked.headers},
        )
        assert status == 202, (status, body)
        job = json.loads(body)
        assert headers["Location"] == f"/v1/jobs/{job['id']}"
        return str(job["id"])

    async def job(self, id_: str) -> dict[str, Any]:
        """The job as its tenant sees it."""
        status, _, body = await self.call("GET", f"/v1/jobs/{id_}")
        assert status == 200, (status, body)
        found: dict[str, Any] = json.loads(body)
        return found

    async def jobs(self, **query: str) -> list[dict[str, Any]]:
        """Every job of the tenant, through the pages."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            text = urlencode({"limit": "200", **query, **({"cursor": cursor} if cursor else {})})
            status, _, body = await self.call("GET", f"/v1/jobs?{text}")
            assert status == 200, (status, body)
            page = json.loads(body)
            found += page["jobs"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return found

    async def ended(self, ids: Sequence[str], limit_s: float, every_s: float = 2.0) -> list[dict[str, Any]]:
        """Wait until all of these have ended; they as they are then. Raises naming what is still open."""
        found: dict[str, dict[str, Any]] = {}
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        open_ = list(ids)
        while open_:
            # A look at a few tells whether it is time to look at all: thousands of reads at a time are load, too.
            looked = {id_: await self.job(id_) for id_ in open_[:: max(1, len(open_) // 10)]}
            if sum(job["status"] in ENDS for job in looked.values()) >= min(3, len(looked)):
                rest = [id_ for id_ in open_ if id_ not in looked]
                looked |= dict(zip(rest, await asyncio.gather(*map(self.job, rest)), strict=True))
            found |= {id_: job for id_, job in looked.items() if job["status"] in ENDS}
            open_ = [id_ for id_ in open_ if id_ not in found]
            if open_:
                last = [(id_, looked.get(id_, {}).get("status")) for id_ in open_[:3]]
                assert loop.time() < until, f"{len(open_)} of {len(ids)} jobs are still open: {last}"
                await asyncio.sleep(every_s)
        return [found[id_] for id_ in ids]


ENDS = ("done", "failed", "expired", "cancelled")


@contextmanager
def batches(
    name: str,
    folder: Path,
    cloud: Cloud,
    layout: Layout,
    client: Callable[[str], Any],
    *,
    batch: Mapping[str, object],
    more: Mapping[str, object] | None = None,
) -> Iterator[Batches]:
    """Deploy a stack with a batch lane from a copy of the program in `folder`, and take it down again."""
    for part in ("infra", "policies"):
        shutil.copytree(project_root() / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "functions").symlink_to(project_root() / "functions")
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    (folder / "policies/batches.yaml").write_text(_POLICY)
    package(folder / "mixed", _CODE)
    stack = yaml.safe_load((project_root() / "Pulumi.local.yaml").read_text())
    stack["config"] = {
        "aws:region": "us-east-1",
        "inferlane:stage": "mature",
        "inferlane:auth": "api_key",
        "inferlane:policy": "policies/batches.yaml",
        "inferlane:protect": False,
        "inferlane:router": stack["config"]["inferlane:router"],
        "inferlane:models": {
            MODEL: {
                "package": "mixed",
                "serverless": {"memory_mb": 1024, "max_concurrency": 8},
                "batch": {"instance_type": "ml.c5.xlarge", "usd_per_instance_hour": 0.204, **batch},
            }
        },
        **(more or {}),
    }

    def up() -> Deployment:
        (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(stack))
        return deployment.run("up", name, cloud=cloud, layout=layout, project=folder)

    def redeploy(another: str, settings: Mapping[str, object]) -> Deployment:
        package(folder / another, f"{_CODE}# {another}\n")
        stack["config"] |= settings
        stack["config"]["inferlane:models"][MODEL]["package"] = another
        return up()

    deployed = up()
    try:
        made = {
            tenant: {"X-Api-Key": keys.create(client("dynamodb"), name, tenant, datetime.now(UTC)).key}
            for tenant in ("red", "blue")
        }
        yield Batches(deployed, client, made, redeploy)
    finally:
        deployment.run("destroy", name, cloud=cloud, layout=layout, project=folder)
