"""A small real HTTP server that answers as a stack's front door does, for what orchestrators call."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "test-key"


@dataclass
class FrontDoor:
    """Jobs by idempotency key. A job is queued, then after `looks` looks it ends as `ends` says for its number."""

    url: str = ""
    looks: int = 1
    ends: list[str] = field(default_factory=list)
    """How the first, second, … job ends; those beyond are done."""
    failures: list[int] = field(default_factory=list)
    """Statuses that the next calls are answered with, whatever they ask."""
    refused: str | None = None
    """A text; what is asked with it in the body is answered with 403."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers, lower-case."""
    bodies: list[bytes] = field(default_factory=list)

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, dict[str, str]]:
        """One call."""
        self.calls.append((method, path, headers))
        self.bodies.append(body)
        if self.failures:
            status = self.failures.pop(0)
            return status, {"title": "as told", "status": status, "detail": "as told"}, {"Retry-After": "2"}
        if self.refused is not None and self.refused in body.decode():
            return 403, {"title": "Forbidden", "detail": "as told"}, {}
        if headers.get("x-api-key") != KEY:
            return 403, {"title": "Forbidden", "detail": "who are you"}, {}
        if method == "POST":
            return self._start(path, headers, body)
        job = self.jobs.get(path.removeprefix("/v1/jobs/"))
        if job is None:
            return 404, {"title": "Not Found", "detail": "No job has this id."}, {}
        return self._cancel(job) if method == "DELETE" else self._look(job)

    def _start(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, dict[str, str]]:
        job_id = hashlib.sha256(headers["idempotency-key"].encode()).hexdigest()[:32]
        job = self.jobs.setdefault(
            job_id,
            {"asked": [path, body.decode()], "looks": 0, "status": "queued", "number": len(self.jobs)},
        )
        if job["asked"] != [path, body.decode()]:
            return 422, {"title": "Unprocessable", "detail": "This Idempotency-Key was used before."}, {}
        return 202, {"id": job_id, "status": job["status"], "deadline": "2026-12-02T00:00:00Z"}, {}

    def _look(self, job: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        job["looks"] += 1
        if job["looks"] > self.looks and job["status"] in ("queued", "running"):
            job["status"] = self.ends[job["number"]] if job["number"] < len(self.ends) else "done"
        shown: dict[str, Any] = {"id": self._id(job), "status": job["status"], "accepted_at": "2026-12-01T00:00:00Z"}
        if job["status"] == "failed":
            shown["error"] = {"status": 500, "detail": "the model ended"}
        if job["status"] == "done":
            shown |= {"output": json.loads(job["asked"][1]).get("output"), "cost_usd": 0.01}
        return 200, shown, {"Retry-After": "7"} if job["status"] in ("queued", "running") else {}

    def _cancel(self, job: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if job["status"] not in ("queued", "cancelled"):
            return 409, {"title": "Conflict", "detail": "The job runs already."}, {}
        job["status"] = "cancelled"
        return 200, {"id": self._id(job), "status": "cancelled"}, {}

    def _id(self, job: dict[str, Any]) -> str:
        return next(name for name, each in self.jobs.items() if each is job)


@contextmanager
def front_door(**settings: Any) -> Iterator[FrontDoor]:
    """One that listens while the context lasts."""
    door = FrontDoor(**settings)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, document, more = door.answer(self.command, self.path, headers, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**more, "Content-Type": "application/json", "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_DELETE(self) -> None:
            self._serve()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        door.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield door
        finally:
            server.shutdown()
            thread.join()
