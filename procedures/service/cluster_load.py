"""Whether the cluster is busy with other jobs, so that runs of the service wait."""

from __future__ import annotations

from dataclasses import dataclass

from procedures.service.service_settings import MAX_QUEUED_TASKS


@dataclass(frozen=True)
class ClusterLoad:
    """The queue of the cluster at one moment.

    Attributes:
        queued: tasks that have not started, of active stages outside the pool of the service.
        limit: so many may be queued when a run starts.
    """

    queued: int
    limit: int

    @property
    def is_busy(self) -> bool:
        """Whether a run that is due waits."""
        return self.queued > self.limit


@dataclass(frozen=True)
class Wait:
    """A run that is due and waits for the cluster; times in epoch milliseconds.

    Attributes:
        since: when it was due.
        until: when it starts at the latest.
        load: the queue at the last check.
    """

    since: int
    until: int
    load: ClusterLoad

    @property
    def note(self) -> str:
        """The reason why it waits, for display."""
        return (
            f"a run waits, because {self.load.queued} tasks of other jobs are queued, and it starts with at most "
            f"{self.load.limit} ({MAX_QUEUED_TASKS.name}); next_run is when it starts at the latest"
        )
