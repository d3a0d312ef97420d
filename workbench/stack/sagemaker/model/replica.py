"""One running copy of a model: a model process, its health, what it is doing, and what makes its hardware busy.

A dedicated variant calls it an instance, a serverless one a container; both start, answer /ping and stop alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from workbench.stack.sagemaker.faults import VariantFaults
from workbench.stack.sagemaker.model.artifacts import Artifact, ArtifactError, ArtifactStore
from workbench.stack.sagemaker.model.child import Child, child_environment
from workbench.stack.sagemaker.model.connection import Connections
from workbench.stack.sagemaker.records import PlannedVariant
from workbench.stack.sagemaker.settings import Settings

PACKAGE = "workbench.stack.sagemaker.model"
GIB = 1024**3
START_POLL_S = 0.03
MISSED_PINGS = 3
"""Consecutive failed health checks after which a replica counts as dead."""


class StartError(Exception):
    """A replica could not be started; the message is fit for an endpoint's FailureReason."""

    def __init__(self, message: str, unhealthy: str | None = None) -> None:
        super().__init__(message)
        self.unhealthy = unhealthy
        """Where its health checks failed: how, without the endpoint's words around it."""


@dataclass(slots=True)
class Replica:
    """A model process that has passed its first health check."""

    id: str
    number: int
    child: Child
    url: str
    artifact: Artifact
    start_s: float
    in_flight: int = 0
    uses: int = 0
    """Requests it has been given, ever."""
    draining: bool = False
    missed_pings: int = 0
    burners: list[Child] = field(default_factory=list)
    burnt_cores: float = 0.0
    burning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while burners change."""
    connections: Connections = field(init=False)

    def __post_init__(self) -> None:
        self.connections = Connections(self.url)
        self.child.exited.add_done_callback(lambda _: self.connections.close())

    @property
    def ready(self) -> bool:
        """Whether it may be given requests."""
        return self.child.alive and not self.draining

    @property
    def state(self) -> str:
        """In one word, for people."""
        if not self.child.alive:
            return "dead"
        return "draining" if self.draining else "ready"

    @property
    def pids(self) -> list[int]:
        """Roots of the process trees whose work counts as this replica's."""
        return [self.child.pid, *(b.pid for b in self.burners)]

    async def stop(self, grace_s: float) -> None:
        """End it and its burners."""
        await asyncio.gather(self.child.stop(grace_s), *(b.kill() for b in self.burners))

    async def kill(self) -> None:
        """End it at once."""
        await asyncio.gather(self.child.kill(), *(b.kill() for b in self.burners))


class LogNumbers:
    """Numbers of log files: the lowest that no living replica of the variant has, so there are never many files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: dict[tuple[str, str], set[int]] = {}

    def claim(self, endpoint: str, variant: str) -> tuple[int, Path]:
        """A free number and its file."""
        taken = self._taken.setdefault((endpoint, variant), set())
        number = next(n for n in range(1, len(taken) + 2) if n not in taken)
        taken.add(number)
        return number, self._folder / f"{endpoint}-{variant}-{number}.log"

    def release(self, endpoint: str, variant: str, number: int) -> None:
        """The replica of that number is gone."""
        self._taken.get((endpoint, variant), set()).discard(number)


@dataclass(frozen=True, slots=True)
class Host:
    """What all replicas of this server share."""

    settings: Settings
    session: aiohttp.ClientSession
    artifacts: ArtifactStore
    logs: LogNumbers


class ReplicaFactory:
    """Starts the replicas of one variant of one endpoint, or of one transform job.

    `extra_s` is added to a start; None stands for the settings' figure for the variant's kind.
    """

    def __init__(
        self,
        host: Host,
        endpoint: str,
        planned: PlannedVariant,
        faults: VariantFaults,
        extra_s: float | None = None,
    ) -> None:
        self.host = host
        self.endpoint = endpoint
        self.planned = planned
        self.faults = faults
        serverless = planned.variant.serverless is not None
        settings = host.settings
        usual_s = settings.cold_start_extra_s if serverless else settings.instance_start_s
        self._extra_s = usual_s if extra_s is None else extra_s
        self.timeout_s = planned.variant.startup_timeout_s or settings.startup_timeout_s

    async def fetch(self) -> Artifact:
        """The variant's model archive. Raises `StartError`."""
        url = self.planned.container.model_data_url
        if url is None:
            raise StartError(
                f"The model of production variant {self.planned.variant.name} has no model data. Images are not pulled "
                "here: the code to run comes from the model archive (ModelDataUrl)."
            )
        if self.faults.disk_full:
            raise StartError(f'Failed to extract model data of "{url}": [Errno 28] No space left on device')
        try:
            async with asyncio.timeout(self.planned.variant.download_timeout_s):
                artifact = await self.host.artifacts.fetch(url, self.planned.container.data_kind)
        except TimeoutError as error:
            raise StartError(f'Model data of "{url}" was not downloaded and extracted in time.') from error
        except ArtifactError as error:
            raise StartError(str(error)) from error
        if artifact.size_bytes > self.planned.variant.disk_gb * GIB:
            raise StartError(
                f'Failed to extract model data of "{url}": {artifact.size_bytes / GIB:.1f} GB do not fit on the '
                f"{self.planned.variant.disk_gb} GB disk of production variant {self.planned.variant.name}."
            )
        return artifact

    async def start(self) -> Replica:
        """A replica that answers /ping. Raises `StartError`; leaves no process behind when it fails."""
        began = time.monotonic()
        artifact = await self.fetch()
        await self.host.settings.clock.sleep(self._extra_s)
        number, log = self.host.logs.claim(self.endpoint, self.planned.variant.name)
        try:
            offset = log.stat().st_size if log.exists() else 0
            child = await self._spawn(artifact, log)
            try:
                url = await self._wait_until_healthy(child, log, offset)
            except BaseException:
                await child.kill()
                raise
        except BaseException:
            self.host.logs.release(self.endpoint, self.planned.variant.name, number)
            raise
        id_ = f"i-{secrets.token_hex(8)}"
        return Replica(id_, number, child, url, artifact, time.monotonic() - began)

    def discard(self, replica: Replica) -> None:
        """A replica of this factory has ended: its number is free."""
        self.host.logs.release(self.endpoint, self.planned.variant.name, replica.number)

    async def ping(self, replica: Replica) -> None:
        """One health check, kept in `missed_pings`."""
        answered = await self._ping(replica.url)
        replica.missed_pings = 0 if answered else replica.missed_pings + 1

    async def burn(self, replica: Replica) -> None:
        """Make the replica's burners match the `stress` faults in force."""
        async with replica.burning:
            wanted = self.faults.burnt_cores
            if wanted == replica.burnt_cores or not replica.child.alive:
                return
            replica.burnt_cores = wanted
            old, replica.burners = replica.burners, []
            await asyncio.gather(*(b.kill() for b in old))
            whole = math.floor(wanted)
            for share in [1.0] * whole + ([wanted - whole] if wanted > whole else []):
                replica.burners.append(await self._burner(share))
            if not replica.child.alive:  # it ended meanwhile
                await asyncio.gather(*(b.kill() for b in replica.burners))

    async def _burner(self, share: float) -> Child:
        folder = self.host.settings.state_dir
        log = folder / "logs" / "stress.log"
        arguments = ["--share", f"{share:.3f}"]
        return await Child.spawn(arguments, env=child_environment({}), cwd=folder, log=log, module=f"{PACKAGE}.burn")

    async def _spawn(self, artifact: Artifact, log: Path) -> Child:
        # The toolkit's own variable tells model code where AWS's /opt/ml is here.
        extra = dict(self.planned.container.environment) | {
            "SAGEMAKER_BASE_DIR": str(artifact.base_dir),
            "AWS_REGION": self.host.settings.region,
            "AWS_DEFAULT_REGION": self.host.settings.region,
        }
        return await Child.spawn(
            ["--model-dir", str(artifact.model_dir)],
            env=child_environment(extra),
            cwd=artifact.base_dir,
            log=log,
            module=f"{PACKAGE}.container",
        )

    async def _wait_until_healthy(self, child: Child, log: Path, offset: int) -> str:
        try:
            async with asyncio.timeout(self.timeout_s):
                word, _, port = (await child.first_line()).partition(" ")
                url = f"http://127.0.0.1:{port}"
                while child.alive and word == "port":
                    if await self._ping(url):
                        return url
                    await asyncio.sleep(START_POLL_S)
                status = await asyncio.shield(child.exited)
        except TimeoutError as error:
            raise self._unhealthy(f"No /ping succeeded within {self.timeout_s:g} s.", log, offset) from error
        raise self._unhealthy(f"Its process ended with status {status}.", log, offset)

    def _unhealthy(self, cause: str, log: Path, offset: int) -> StartError:
        last = _last_line(log, offset)
        told = f"Last line of its log ({log.name}): {last}" if last else f"Its log ({log.name}) is empty."
        return StartError(
            f"The primary container for production variant {self.planned.variant.name} did not pass the ping health "
            f"check. Please check CloudWatch logs for this endpoint. {cause} {told}",
            f"{cause} {told}",
        )

    async def _ping(self, url: str) -> bool:
        if self.faults.fails_pings:
            return False
        timeout = aiohttp.ClientTimeout(total=self.host.settings.ping_timeout_s)
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.host.session.get(f"{url}/ping", timeout=timeout) as response:
                return response.status == 200
        return False


def _last_line(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
