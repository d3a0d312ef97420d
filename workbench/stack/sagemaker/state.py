"""What the emulator keeps beyond its own end, and how it comes back to it. Rules of each part: the rooms' `snapshot`.

Kept: models, configurations, endpoints with their counts, weights and sizes, tags, scalable targets with policies and
scheduled actions, transform jobs, quotas that were set, asynchronous requests that were not served. Not kept: faults,
scaling activities, metrics that were not published yet. It is kept before the call that changed it is answered, at
every new status, and once a second for what changes by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.control import snapshot as control
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.journal import Journal, JournalError, Key
from workbench.stack.sagemaker.runtime.asynchronous import snapshot as requests
from workbench.stack.sagemaker.runtime.asynchronous.request import Request
from workbench.stack.sagemaker.scaling import snapshot as scaling
from workbench.stack.sagemaker.scaling.service import AutoScaling
from workbench.stack.sagemaker.settings import Settings
from workbench.stack.sagemaker.transform import snapshot as transform
from workbench.stack.sagemaker.transform.runner import Runner

log = logging.getLogger(__name__)
FILE = "state.db"
KEEP_EVERY_S = 1.0


def open_journal(settings: Settings) -> Journal:
    """The journal in the state folder. Raises `JournalError`, also for the state of another region or account."""
    journal = Journal(settings.state_dir / FILE)
    ours = {"region": settings.region, "account": settings.account}
    found = next((row.document for row in journal.rows() if row.kind == "home"), ours)
    if found != ours:
        journal.close()
        raise JournalError(
            f"{settings.state_dir / FILE} holds the state of account {found['account']} in {found['region']}: "
            "choose another --state-dir"
        )
    return journal


@dataclass(slots=True)
class State:
    """The emulator's state, over the journal it is kept in."""

    journal: Journal
    home: dict[str, str]
    catalog: Catalog
    endpoints: Endpoints
    lifecycle: Lifecycle
    scaling: AutoScaling
    runner: Runner
    problem: str | None = None
    """Why the latest state is not kept."""
    _closed: bool = field(default=False)

    def restore(self, moment: float) -> None:
        """Take up what the journal holds: start every endpoint anew. `moment` is the emulated time."""
        now, ended = time.time(), []
        for row in self.journal.rows():
            if control.load(row, self.catalog, self.endpoints, now):
                continue
            match row.kind:
                case "scalable-target":
                    for target in scaling.load([row.document], moment):
                        self.scaling.targets.add(target)
                case transform.KIND:
                    ended.append(transform.load(row, self.runner.jobs, now))
                case "quotas":
                    self.endpoints.quotas.changed = {**row.document, **self.endpoints.quotas.changed}
        self.scaling.changed.set()
        starting = [e for e in self.endpoints.all() if e.status != "Failed"]
        for endpoint in starting:
            self.lifecycle.restart(endpoint)
        broken_off = [job for job in ended if job is not None]
        for job in broken_off:
            self.runner.on_change(job)
        if starting or broken_off:
            log.warning(
                "an earlier run's state is taken up: %d endpoints start anew (%s), %d transform jobs are ended",
                len(starting),
                ", ".join(e.name for e in starting) or "none",
                len(broken_off),
            )

    def keep(self) -> None:
        """Bring the journal up to date. What stands in the way is logged, and `problem` until it works again."""
        if not self._closed:
            self._try(lambda: self.journal.keep(self._documents()))

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except JournalError as error:
            if str(error) != self.problem:
                log.warning("changes will not survive: %s", error)
            self.problem = str(error)
        else:
            self.problem = None

    def taken(self, request: Request) -> None:
        """See `Keeper`."""
        self._try(lambda: self.journal.put(request.key, requests.save(request)))

    def ended(self, request: Request) -> None:
        """See `Keeper`."""
        if not self._closed:
            self._try(lambda: self.journal.drop(request.key))

    def unserved(self, clock: Clock) -> list[Request]:
        """The asynchronous requests that an earlier run has taken and not served."""
        found = [requests.load(document, clock, time.time()) for document in self.journal.requests()]
        if found:
            log.warning("%d asynchronous requests of an earlier run are served now", len(found))
        return found

    async def keep_forever(self) -> None:
        """For what changes without a call: scheduled actions, ends of deletions."""
        while True:
            await asyncio.sleep(KEEP_EVERY_S)
            self.keep()

    def close(self) -> None:
        """The server ends; what happens to its endpoints from here on is no change of theirs."""
        self.keep()
        self._closed = True
        self.journal.close()

    def _documents(self) -> dict[Key, Any]:
        documents: dict[Key, Any] = {("home", "home"): self.home}
        for row in control.save(self.catalog, self.endpoints):
            documents[row.kind, row.name] = row.document
        for target, document in zip(self.scaling.targets.all(), scaling.save(self.scaling.targets.all()), strict=True):
            documents["scalable-target", " ".join(target.key)] = document
        for row in transform.save(self.runner.jobs):
            documents[row.kind, row.name] = row.document
        if self.endpoints.quotas.changed:
            documents["quotas", "changed"] = self.endpoints.quotas.changed
        return documents
