"""Deletion at a limited rate, in batches that are checked against the newest version of the table."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from catalog.clock import Clock
from catalog.jvm.table_vacuum import TableVacuum
from catalog.table.snapshot import FilesTotal
from procedures.loop.progress import Progress

_MOST_FILES_OF_BATCH = 1000


class DeletableFile(NamedTuple):
    """A file or empty folder to delete.

    Attributes:
        path: absolute.
        length: bytes.
        reason: why it is deleted.
    """

    path: str
    length: int
    reason: str


class PacedDeletion:
    """Deletes files at a limited rate.

    Args:
        vacuum: the vacuum of the table.
        rate: files per second.
        threads: number of concurrent requests.
        clock: the time.
        progress: display of the bytes.

    Attributes:
        deleted: totals by reason so far.
    """

    def __init__(self, vacuum: TableVacuum, rate: float, threads: int, clock: Clock, progress: Progress) -> None:
        self._vacuum = vacuum
        self._rate = rate
        self._threads = threads
        self._clock = clock
        self._progress = progress
        self.deleted: dict[str, FilesTotal] = defaultdict(lambda: FilesTotal(0, 0))

    def run(self, files: Iterable[DeletableFile]) -> None:
        """Deletes files, except those that the newest version needs when their batch is deleted.

        Args:
            files: files and empty folders.
        """
        started, tried = self._clock.monotonic(), 0
        for batch in _batches(files, max(1, min(_MOST_FILES_OF_BATCH, int(self._rate)))):
            due = started + tried / self._rate
            self._clock.wait(threading.Event(), max(0.0, due - self._clock.monotonic()))
            sizes = self._vacuum.delete([file.path for file in batch], self._threads)
            for file, size in zip(batch, sizes, strict=True):
                if size >= 0:
                    total = self.deleted[file.reason]
                    self.deleted[file.reason] = FilesTotal(total.files + 1, total.bytes + size)
                self._progress.done(file.length)
            tried += len(batch)


def _batches(files: Iterable[DeletableFile], size: int) -> Iterator[list[DeletableFile]]:
    rest = iter(files)
    while batch := list(islice(rest, size)):
        yield batch
