"""Where the faults of a job meet its work: before it starts, before an object, after an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.stack.sagemaker.transform.faults import OneJobsFaults
from workbench.stack.sagemaker.transform.instance import INJECTED, unusable
from workbench.stack.sagemaker.transform.jobs import JobError
from workbench.stack.sagemaker.transform.objects import Task
from workbench.stack.sagemaker.transform.work import TaskError

NO_CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type."
)
INTERNAL = "InternalServerError: We encountered an internal error.  Please try again."
"""The service's own words, as in events of jobs that public repositories keep."""


@dataclass(slots=True)
class Trouble:
    """What befalls a job."""

    faults: OneJobsFaults
    stop: Callable[[], None]
    """Stops the job, as StopTransformJob does."""
    through: int = 0
    """Objects that are through, done or failed."""

    def before_start(self) -> None:
        """The job's instances are asked for. Raises `JobError`."""
        if self.faults.no_capacity:
            raise JobError(NO_CAPACITY)

    def before(self, task: Task) -> None:
        """An object's turn has come. Raises `TaskError`."""
        if (whose := self.faults.file_fault(task.source.key)) is not None:
            cause = unusable(400 if whose == "client" else 500, INJECTED)
            raise TaskError(cause.lines, caller=cause.caller)

    def passed(self) -> None:
        """One more object is through. Raises `JobError`."""
        self.through += 1
        self.look()

    def look(self) -> None:
        """End the job, if it is to end now. Raises `JobError`."""
        what = self.faults.breaks_off(self.through)
        if what == "internal":
            raise JobError(INTERNAL)
        if what == "stop":
            self.stop()
