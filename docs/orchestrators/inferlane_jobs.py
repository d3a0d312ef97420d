"""Jobs of an inferlane stack, from a program that outlives its own restarts: an orchestrator's task.

One file without dependencies, to be copied beside your DAGs. (Signing as IAM asks for it needs botocore, which is there
wherever boto3 is.)

Rules
- What is started has an idempotency key made of what names the task (`key_of`), never of the try: a task that is
  started again after a crash finds the job that it started before.
- A job that has ended badly is not found again for ever: try number n may start job number n under the same name
  (`attached`), and takes an earlier one that is open or done, if there is one.
- What may pass by itself (no connection, 429, 5xx) is tried again after a pause; what the service refuses is not.
- Between two looks at a job as much time passes as the service asks for (Retry-After).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

OPEN = ("queued", "running")
DONE = "done"
TRIES = 5
LONGEST_PAUSE_S = 60.0

Headers = dict[str, str]
Authorize = Callable[[str, str, bytes, Headers], Mapping[str, str]]
"""(method, URL, body, headers) to the headers that say who calls."""


class JobsError(Exception):
    """The service did not do what was asked, and asking again will not help. `status` 0: it could not be reached."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EndedBadlyError(Exception):
    """The job failed, expired or was cancelled."""

    def __init__(self, job: Job) -> None:
        error = job.document.get("error") or {}
        super().__init__(f"job {job.id} {job.status}: {error.get('detail', 'no reason is given')}")
        self.job = job


@dataclass(frozen=True)
class Job:
    """What the service says of a job, and how long it asks to be left alone."""

    document: Mapping[str, Any]
    wait_s: float = 5.0

    @property
    def id(self) -> str:
        """Its name, for whoever started it."""
        return str(self.document["id"])

    @property
    def status(self) -> str:
        """queued, running, done, failed, expired or cancelled."""
        return str(self.document["status"])

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.status in OPEN

    def checked(self) -> Job:
        """The job, if it is open or done. Raises `EndedBadlyError`."""
        if not self.open and self.status != DONE:
            raise EndedBadlyError(self)
        return self


def key_of(*names: object) -> str:
    """An idempotency key of what names a task: the same for the same names, of characters that a header takes."""
    text = json.dumps([str(name) for name in names])
    return hashlib.sha256(text.encode()).hexdigest()


def api_key(key: str) -> Authorize:
    """For a stack with `auth: api_key`."""
    return lambda *_: {"X-Api-Key": key}


def bearer(token: Callable[[], str]) -> Authorize:
    """For a stack with `auth: jwt`; `token` is asked for every call, since tokens expire."""
    return lambda *_: {"Authorization": f"Bearer {token()}"}


def iam(region: str, session: Any = None) -> Authorize:
    """For a stack with `auth: iam`: signed with the credentials that botocore finds, or with those of a session."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.session import get_session

    credentials = (session or get_session()).get_credentials()
    if credentials is None:
        raise JobsError(0, "no AWS credentials were found")

    def signed(method: str, url: str, body: bytes, headers: Headers) -> Mapping[str, str]:
        request = AWSRequest(method=method, url=url, data=body, headers=headers)
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(request)
        return dict(request.headers.items())

    return signed


@dataclass
class Jobs:
    """The jobs of one stack, as one caller sees them. `url` is the stack's front door."""

    url: str
    authorize: Authorize
    timeout_s: float = 30.0
    sleep: Callable[[float], None] = field(default=time.sleep)

    def __post_init__(self) -> None:
        if urllib.parse.urlsplit(self.url).scheme not in ("https", "http"):
            raise JobsError(0, f"{self.url!r} is no URL of a front door")

    def dataset(
        self,
        model: str,
        source: str,
        target: str,
        key: str,
        *,
        content_type: str | None = None,
        accept: str | None = None,
    ) -> Job:
        """Have the data set at `source` (s3://…) run into `target`, or find the job of this key. Raises `JobsError`."""
        asked = {"input": source, "output": target, "content_type": content_type, "accept": accept}
        body = json.dumps({name: value for name, value in asked.items() if value is not None}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return self._job("POST", f"/v1/models/{_quoted(model)}/batches", body, headers)

    def request(
        self,
        model: str,
        body: bytes,
        key: str,
        *,
        content_type: str = "application/json",
        within_s: float | None = None,
    ) -> Job:
        """Have one request answered later, or find the job of this key. Raises `JobsError`."""
        headers = {"Content-Type": content_type, "Idempotency-Key": key, "Prefer": "respond-async"}
        if within_s is not None:
            headers["X-Inferlane-Deadline-Ms"] = str(round(within_s * 1000))
        return self._job("POST", f"/v1/models/{_quoted(model)}/invocations", body, headers)

    def attached(self, start: Callable[[str], Job], tries: int, *names: object) -> Job:
        """The job of the task with these names: started by an earlier try and open or done, or a new one.

        `start` makes a job under the key it is given; `tries` is the number of this try, from 1. Raises `JobsError`,
        and `EndedBadlyError` when as many jobs as tries have ended badly.
        """
        for number in range(1, tries):
            job = start(key_of(*names, number))
            if job.open or job.status == DONE:
                return job
        job = start(key_of(*names, tries))
        return job if job.open or job.status == DONE else self.look(job.id).checked()

    def look(self, job_id: str) -> Job:
        """How a job stands. Raises `JobsError`."""
        return self._job("GET", f"/v1/jobs/{_quoted(job_id)}")

    def wait(self, job: Job, timeout_s: float) -> Job:
        """The job once it has ended well. Raises `EndedBadlyError`, `TimeoutError` and `JobsError`."""
        deadline = time.monotonic() + timeout_s
        while job.checked().open:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"job {job.id} is still {job.status} after {timeout_s:.0f} s")
            self.sleep(min(job.wait_s, LONGEST_PAUSE_S))
            job = self.look(job.id)
        # The answer to a start says only that it is done; a look has all that there is to say.
        return job if "accepted_at" in job.document else self.look(job.id).checked()

    def cancel(self, job_id: str) -> bool:
        """Cancel what has not started; False: it runs, or has ended, and so it stays. Raises `JobsError`."""
        try:
            self._job("DELETE", f"/v1/jobs/{_quoted(job_id)}")
        except JobsError as error:
            if error.status == http.client.CONFLICT:
                return False
            raise
        return True

    def _job(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Job:
        document, answered = self._call(method, path, body, {"Accept": "application/json", **(headers or {})})
        return Job(document, _seconds(answered.get("Retry-After")) or 5.0)

    def _call(self, method: str, path: str, body: bytes, headers: Headers) -> tuple[Any, Mapping[str, str]]:
        """One call, tried again while that may help."""
        url = self.url.rstrip("/") + path
        for attempt in range(1, TRIES + 1):
            sent = {**headers, **self.authorize(method, url, body, headers)}
            # urllib adds a form's content type to a body without one; an empty body is none.
            request = urllib.request.Request(url, body or None, sent, method=method)  # noqa: S310 - see __post_init__
            try:
                with _OPENER.open(request, timeout=self.timeout_s) as answer:
                    return json.loads(answer.read()), answer.headers
            except urllib.error.HTTPError as error:
                problem = JobsError(error.code, f"{method} {path}: {error.code} {_detail(error)}")
                passing = error.code == http.client.TOO_MANY_REQUESTS or error.code >= 500
                pause_s = _seconds(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem, passing, pause_s = JobsError(0, f"{method} {path}: {error}"), True, None
            if not passing or attempt == TRIES:
                raise problem
            backoff_s = 2.0**attempt * random.uniform(0.5, 1.0)
            self.sleep(min(pause_s or backoff_s, LONGEST_PAUSE_S))
        raise AssertionError("unreachable")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The front door has none, and whoever sends one shall not be told who calls."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """None of them is followed: the answer is an error."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def _detail(error: urllib.error.HTTPError) -> str:
    """What a problem document says, else the status's own words."""
    try:
        problem = json.loads(error.read())
        return str(problem.get("detail") or problem.get("title") or error.reason)
    except (ValueError, AttributeError, OSError):
        return str(error.reason)


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
