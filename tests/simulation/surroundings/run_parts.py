"""What stands for the threads and the progress display of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.surroundings.sessions import Session


class Threads:
    """See ``procedures.loop.group_runs.SparkThreads``."""

    def __init__(self, spark: Session, run: Any) -> None:
        self._spark = spark

    def start(self, number: int, work: Callable[[], None]) -> Any:
        """See ``GroupThreads.start``."""
        thread = self._spark.world.threading.Thread(target=work)
        thread.start()
        return thread

    def prepare(self) -> None:
        """See ``GroupThreads.prepare``."""


class Progress:
    """See ``procedures.loop.progress.Progress``."""

    def __init__(self, spark: Session, title: str) -> None:
        """Shows nothing."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Shows nothing."""

    def planned(self, size: int, note: str) -> None:
        """Shows nothing."""

    def done(self, size: int) -> None:
        """Shows nothing."""
