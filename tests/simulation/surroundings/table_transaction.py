"""What stands for a transaction; rows are numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from catalog.jvm.file_writer import DataFile
from simulation.delta_log import AddedFile, Commit
from simulation.faults import StoreError
from simulation.surroundings.paths import ROOT, ROW_BYTES
from simulation.surroundings.table_state import State

if TYPE_CHECKING:
    from simulation.surroundings.sessions import Session
    from simulation.world import World


_SLOW_WRITES = 0.3


class Transaction:
    """See ``catalog.jvm.table_transaction.TableTransaction``; over rows that are numbers."""

    def __init__(self, world: World, spark: Session, version: int) -> None:
        self.spark = spark
        self._world = world
        self._version = version
        self._mark = ""
        self._hold: Callable[[int], int] | None = None
        self._taken: list[AddedFile] = []
        self._needed: list[AddedFile] = []
        self._written: list[AddedFile] = []

    def state(self) -> State:
        """See ``TableTransaction.state``."""
        return State(self._world, self.spark, self._version)

    def mark(self, text: str) -> None:
        """See ``TableTransaction.mark``."""
        self._mark = text

    def hold(self, wait: Callable[[int], int]) -> None:
        """See ``TableTransaction.hold``."""
        self._hold = wait

    def replace_files(self, files: Iterable[tuple[str, str]]) -> int:
        """See ``TableTransaction.replace_files``."""
        live = self._world.log.live[self._version]
        self._taken = [live[path] for path, vector in files if path in live and live[path].vector == vector]
        return len(self._taken)

    def scan(self, paths: Iterable[str], numbered: bool = False) -> list[str]:
        """See ``TableTransaction.scan``; the rows are read when they are written."""
        return list(paths)

    def count(self, paths: Iterable[str]) -> int:
        """See ``TableTransaction.count``."""
        live = self._world.log.live[self._version]
        return sum(len(self._world.rows_of(live[path])) for path in paths)

    def rows_by_time(self) -> dict[str, tuple[int, int]]:
        """See ``TableTransaction.rows_by_time``; the table has no partitions."""
        return {}

    def in_runs(self, rows: list[str], runs: Sequence[Sequence[str]]) -> list[list[str]]:
        """See ``TableTransaction.in_runs``."""
        return [list(run) for run in runs]

    def write(self, rows: list[list[str]], cube: Any = None, weight: Any = None) -> list[DataFile]:
        """See ``FileWriter.write``."""
        world = self._world
        most = int(self.spark.conf.get("spark.sql.files.maxRecordsPerFile") or 0)
        live = world.log.live[self._version]
        files = []
        if world.random.random() < _SLOW_WRITES:
            # Longer than a lease lasts without a renewal.
            world.scheduler.sleep(world.random.randrange(120_000))
        for number, run in enumerate(rows):
            try:
                of_run = [row for path in run for row in world.rows_of(live[path])]
            except FileNotFoundError as error:
                # A purge that could not read the lease may have deleted the file; Spark's job fails like this.
                raise StoreError(str(error)) from error
            step = most or max(len(of_run), 1)
            for start in range(0, len(of_run), step):
                part = tuple(of_run[start : start + step])
                name = f"part-{number:05d}-{self._mark}-use{len(files)}.parquet"
                size = ROW_BYTES * len(part)
                self._written.append(AddedFile(name, size, len(part), world.scheduler.now))
                world.store.put_data(f"{ROOT}/{name}", part, size, "write rows")
                files.append(DataFile(name, size, len(part)))
        return files

    def commit(
        self,
        operation: str,
        parameters: Mapping[str, str],
        tags_by_path: Mapping[str, Mapping[str, str]],
        data_change: bool = False,
    ) -> int:
        """See ``TableTransaction.commit``."""
        world = self._world
        added = tuple(
            AddedFile(f.path, f.size, f.rows, f.time, tags=dict(tags_by_path.get(f.path, {}))) for f in self._written
        )
        now = world.clock.now()
        wanted = Commit(-1, -1, operation, added, tuple(self._taken), now, data_change, dict(parameters))
        return world.log.commit(wanted, self._version, hold=self._hold)

    def discard(self) -> int:
        """See ``TableTransaction.discard``."""
        left = 0
        for file in self._written:
            with suppress(StoreError):
                self._world.delete_data(f"{ROOT}/{file.path}", "discard")
            left += f"{ROOT}/{file.path}" in self._world.store.objects
        return left
