"""What stands for Spark and the shim below the product's code: sessions, handles, transactions, versions, vacuums."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.types import StructType

from catalog.files.file_table import UNKNOWN, Blocks, FileTable
from catalog.history.events import EVENT_KEY
from catalog.jvm.file_writer import DataFile
from catalog.jvm.table_state import LogExtent, TableFacts
from catalog.jvm.table_vacuum import TableVacuum
from catalog.jvm.table_versions import TableVersions
from catalog.table.managed_table import ManagedTable
from otree.block import REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG
from simulation.delta_log import AddedFile, Commit
from simulation.faults import StoreError
from simulation.frames import Frame

if TYPE_CHECKING:
    from simulation.world import World

ROOT = "sim:/t"
ROW_BYTES = 10
TABLE_ID = "simulated"
SCHEMA = StructType().add("id", "long")
# An indexed table's property, so that events are copied from the log.
PROPERTIES = {"qbeast.lastRevisionID": "0"}
_SLOW_WRITES = 0.3
_PHASES = {
    "lease.json": "lease",
    "protected": "protect",
    "reclaimed.json": "reclaim",
    "events": "events",
    "lists": "events",
    "reconciled.json": "events",
    "writes": "write record",
    "cancels": "cancel",
    "suspended.json": "suspend",
    "plans": "plan",
}


def phase_of(file: str) -> str:
    """The phase in which a state file is read and written.

    Args:
        file: path below the table.
    """
    parts = file.split("/")
    if len(parts) > 3 and parts[1] == "plans":
        return "claims" if parts[3] == "groups" else "lease" if parts[3] == "runs" else "plan"
    return _PHASES.get(parts[1] if len(parts) > 1 else "", "write check")


class Session:
    """Stands for a ``SparkSession`` of one process."""

    def __init__(self, world: World) -> None:
        self.world = world
        settings: dict[str, str] = {}
        self.conf = SimpleNamespace(set=settings.__setitem__, get=settings.get)
        self.sparkContext = SimpleNamespace(
            getLocalProperty=lambda _: None,
            setLocalProperty=lambda *_: None,
            defaultParallelism=2,
            applicationId="app",
        )
        self.table = ManagedTable(self, "t", ROOT, Handle(world, self))  # type: ignore[arg-type]

    def createDataFrame(self, rows: Iterable[tuple[Any, ...]], schema: str) -> Frame:  # noqa: N802
        """See ``SparkSession.createDataFrame``."""
        names = [column.split()[0] for column in schema.split(", ")]
        return Frame(names, [dict(zip(names, row, strict=True)) for row in rows])

    def sql(self, text: str) -> Frame:
        """Answers ``DESCRIBE HISTORY``, newest first."""
        log = self.world.log
        newest = log.read("history")
        limit = int(text.rsplit(" LIMIT ", 1)[1]) if " LIMIT " in text else newest + 1
        rows = [
            {
                "version": commit.version,
                "operation": commit.operation,
                "operationParameters": dict(commit.parameters),
                "operationMetrics": dict(commit.metrics),
            }
            for commit in reversed(log.commits)
            if commit.version in log.stored
        ]
        return Frame(["version", "operation", "operationParameters", "operationMetrics"], rows[:limit])


def events_in_log(table: ManagedTable, limit: int | None = None) -> Frame:
    """See ``catalog.history.event_rows.events_in_log``; as many columns as a commit looks at."""
    return committed_events(table.history(limit))


def committed_events(history: Frame) -> Frame:
    """See ``catalog.history.event_rows.committed_events``."""
    rows = []
    for row in history.rows:
        if EVENT_KEY in row["operationParameters"]:
            event = json.loads(row["operationParameters"][EVENT_KEY])
            rows.append({"version": row["version"], "write_id": event["write_id"], "parameters": event["parameters"]})
    return Frame(["version", "write_id", "parameters"], rows)


def short_commits(spark: Session, location: str, versions: tuple[int, int]) -> dict[int, str] | None:
    """See ``catalog.files.log_changes.short_commits``."""
    log = spark.world.log
    log.read("events")
    texts = {}
    for version in range(versions[0] + 1, versions[1] + 1):
        if version not in log.stored:
            return None
        commit = log.commits[version]
        info = {"operation": commit.operation, "operationParameters": dict(commit.parameters)}
        texts[version] = json.dumps({"commitInfo": info}, separators=(",", ":"))
    return texts


class State:
    """See ``catalog.jvm.table_state.TableState``."""

    def __init__(self, world: World, spark: Session, version: int) -> None:
        self.spark = spark
        self._world = world
        self.version = version

    @property
    def _files(self) -> dict[str, AddedFile]:
        return self._world.log.live[self.version]

    def facts(self) -> TableFacts:
        """See ``TableState.facts``."""
        committed_at = self._world.log.commits[self.version].time
        return TableFacts(
            self.version, committed_at, TABLE_ID, PROPERTIES, SCHEMA, (), self._world.retention_hours, {}, {}
        )

    def extent(self) -> LogExtent:
        """See ``TableState.extent``."""
        log = self._world.log
        first = max((c for c in log.checkpoints if c <= self.version), default=-1)
        return LogExtent(len(self._files), 40_000 * (self.version - first), 40_000 * (self.version - first))

    def size_in_bytes(self) -> int:
        """See ``TableState.size_in_bytes``."""
        return sum(file.size for file in self._files.values())

    def files(self) -> Frame:
        """See ``TableState.files``."""
        rows = [{"path": file.path, "size": file.size, "deletion_vector": file.vector} for file in self._files.values()]
        return Frame(["path", "size", "deletion_vector"], rows)

    def actions(self) -> Frame:
        """The files that the version names, as ``TableVersions`` gets them out of its actions."""
        rows: list[dict[str, Any]] = [
            {"path": f"{ROOT}/{path}", "size": file.size, "is_added": True, "removed_at": None}
            for file in self._files.values()
            for path in file.needs
        ]
        rows += [
            {"path": f"{ROOT}/{path}", "size": file.size, "is_added": False, "removed_at": removed_at}
            for path, file, removed_at in self._world.log.tombstones(self.version)
        ]
        return Frame(["path", "size", "is_added", "removed_at"], rows)

    def file_table(self) -> FileTable:
        """All files of the version."""
        cache = self._world.log.cache
        if self.version not in cache:
            cache[self.version] = file_table(sorted(self._files.values(), key=lambda file: file.path))
        return cache[self.version]  # type: ignore[return-value]


_NO_NUMBERS = np.zeros(0, np.int64)
_NO_BLOCKS = Blocks(_NO_NUMBERS, _NO_NUMBERS, (), _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


def file_table(files: Sequence[AddedFile]) -> FileTable:
    """The table of some unindexed files, in the order of their paths."""
    count = len(files)
    spans = [
        tuple(map(int, file.tags[TIME_RANGE_TAG].split(","))) if TIME_RANGE_TAG in file.tags else (file.time,) * 2
        for file in files
    ]

    def integers(values: Iterable[int]) -> Any:
        return np.fromiter(values, np.int64, count)

    def objects(values: Iterable[str]) -> Any:
        made = np.empty(count, np.object_)
        made[:] = list(values)
        return made

    unknown, no, none = np.full(count, UNKNOWN), np.zeros(count, np.bool_), np.zeros((count, 0))
    return FileTable(
        path=objects(file.path for file in files),
        deletion_vector=objects(file.vector for file in files),
        size=integers(file.size for file in files),
        modification_time=integers(file.time for file in files),
        rows=integers(file.rows - len(file.hidden) for file in files),
        revision=np.zeros(count, np.int64),
        write=np.arange(count),
        first_time=integers(span[0] for span in spans),
        last_time=integers(span[1] for span in spans),
        outdated=no,
        unreadable=no,
        band_first=unknown,
        band_end=unknown,
        rewrites=np.array([float(file.tags.get(REWRITES_TAG, 0)) for file in files]),
        low=none,
        high=none,
        tagged_revision=unknown,
        deleted=integers(len(file.hidden) for file in files),
        tier=integers(int(file.tags.get(TIER_TAG, 0)) for file in files),
        partition=objects("" for _ in files),
        blocks=_NO_BLOCKS,
        write_ids=tuple(file.path for file in files),
    )


class Handle:
    """See ``catalog.jvm.table_handle.TableHandle``."""

    kind, name, detail = "delta", "t", ""

    def __init__(self, world: World, spark: Session) -> None:
        self._world = world
        self._spark = spark

    def location(self) -> str:
        """See ``TableHandle.location``."""
        return ROOT

    def exists(self) -> bool:
        """See ``TableHandle.exists``."""
        self._world.faults.before("snapshot")
        return True

    def state(self, session: Session | None = None) -> State:
        """See ``TableHandle.state``."""
        return State(self._world, session or self._spark, self._world.log.read())

    def begin(self, session: Session) -> Transaction:
        """See ``TableHandle.begin``."""
        return Transaction(self._world, session, self._world.log.read("begin"))

    def versions(self, session: Session) -> Versions:
        """See ``TableHandle.versions``."""
        return Versions(session, JavaVersions(self._world))  # type: ignore[arg-type]

    def vacuum(self, session: Session, delete_before: int, retention_hours: int) -> Vacuum:
        """See ``TableHandle.vacuum``."""
        java = JavaVacuum(self._world, delete_before)
        return Vacuum(session, java, self.versions(session), delete_before)  # type: ignore[arg-type]

    def write_text(self, file: str, text: str) -> None:
        """See ``TableHandle.write_text``."""
        self._world.store.write_text(f"{ROOT}/{file}", text, phase_of(file))

    def create_text(self, file: str, text: str) -> bool:
        """See ``TableHandle.create_text``."""
        return self._world.store.create_text(f"{ROOT}/{file}", text, phase_of(file))

    def read_text(self, file: str) -> str | None:
        """See ``TableHandle.read_text``."""
        return self._world.store.read_text(f"{ROOT}/{file}", phase_of(file))

    def list_names(self, folder: str) -> list[str]:
        """See ``TableHandle.list_names``."""
        return self._world.store.names(f"{ROOT}/{folder}", phase_of(f"{folder}/"))

    def list_names_containing(self, folder: str, texts: Sequence[str]) -> list[str]:
        """See ``TableHandle.list_names_containing``."""
        place = "/".join(filter(None, (ROOT, folder)))
        names = self._world.store.names(place, "vacuum: list")
        return [name for name in names if any(text in name for text in texts)]

    def delete(self, file: str) -> None:
        """See ``TableHandle.delete``."""
        self._world.store.delete(f"{ROOT}/{file}", phase_of(file))

    def probe_write(self, file: str) -> None:
        """See ``TableHandle.probe_write``."""
        self._world.faults.before("write check")


class Transaction:
    """See ``catalog.jvm.table_transaction.TableTransaction``; over rows that are numbers."""

    def __init__(self, world: World, spark: Session, version: int) -> None:
        self.spark = spark
        self._world = world
        self._version = version
        self._mark = ""
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

    def replace_files(self, files: Iterable[tuple[str, str]]) -> int:
        """See ``TableTransaction.replace_files``."""
        live = self._world.log.live[self._version]
        self._taken = [live[path] for path, vector in files if path in live and live[path].vector == vector]
        return len(self._taken)

    def scan(self, paths: Iterable[str], numbered: bool = False) -> list[str]:
        """See ``TableTransaction.scan``; the rows are read when they are written."""
        return list(paths)

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
            of_run = [row for path in run for row in world.rows_of(live[path])]
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
        return world.log.commit(wanted, self._version)

    def discard(self) -> int:
        """See ``TableTransaction.discard``."""
        left = 0
        for file in self._written:
            with suppress(StoreError):
                self._world.delete_data(f"{ROOT}/{file.path}", "discard")
            left += f"{ROOT}/{file.path}" in self._world.store.objects
        return left


class JavaVersions:
    """The shim's object behind ``Versions``."""

    def __init__(self, world: World) -> None:
        self.world = world

    def oldest(self) -> int:
        self.world.log.read("versions")
        return self.world.log.oldest()

    def newest(self) -> int:
        return self.world.log.read("versions")

    def at(self, millis: int, or_oldest: bool) -> int:
        self.world.log.read("versions")
        return self.world.log.at(millis, or_oldest)

    def timeOf(self, version: int) -> int:  # noqa: N802
        return self.world.log.commits[version].time

    def logGuard(self) -> str:  # noqa: N802
        return ""

    def checkpointBefore(self, version: int) -> int:  # noqa: N802
        self.world.faults.before("clean log")
        return max((c for c in self.world.log.checkpoints if c <= version), default=-1)

    def checkpoint(self, version: int) -> None:
        self.world.faults.before("checkpoint")
        if not self.world.log.can_make(version):
            raise StoreError(f"version {version} cannot be made")
        self.world.log.checkpoints.add(version)

    def logBefore(self, version: int) -> tuple[int, int]:  # noqa: N802
        count = sum(v < version for v in self.world.log.stored)
        return count, 1000 * count

    def deleteLogBefore(self, version: int) -> tuple[int, int]:  # noqa: N802
        log, count = self.world.log, 0
        if version not in log.checkpoints:
            raise StoreError(f"version {version} has no checkpoint")
        for number in sorted({*log.stored, *log.checkpoints}):
            if number < version:
                self.world.faults.before("clean log")
                log.stored.discard(number)
                log.checkpoints.discard(number)
                self.world.invariants.on_log_deletion(number)
                count += 1
        return count, 1000 * count

    def commits(self, first: int, last: int) -> Frame:
        log = self.world.log
        log.read("versions")
        rows: list[dict[str, Any]] = []
        numbers = [v for v in range(max(first, 0), last + 1) if v in log.stored]
        if first >= 0 and len(numbers) < last + 1 - first:
            raise StoreError("the log lacks a commit")
        for version in numbers:
            commit = log.commits[version]
            for files, is_added in ((commit.added, True), (commit.removed, False)):
                rows += [
                    {
                        "version": version,
                        "is_added": is_added,
                        "path": f"{ROOT}/{path}",
                        "size": file.size,
                        "removed_at": None if is_added else commit.removed_at,
                    }
                    for file in files
                    for path in file.needs
                ]
        return Frame(["version", "is_added", "path", "size", "removed_at"], rows)

    def existing(self, paths: Frame, parallelism: int) -> Frame:
        self.world.faults.before("vacuum: look")
        return inventory(self.world, sorted({row["path"] for row in paths.rows}))


class Versions(TableVersions):
    """``TableVersions`` over the simulated log."""

    _java: Any

    def state(self, version: int) -> State:  # type: ignore[override]
        """See ``TableVersions.state``."""
        if not self._java.world.log.can_make(version):
            raise StoreError(f"version {version} cannot be made")
        return State(self._java.world, self.spark, version)  # type: ignore[arg-type]

    def _named(self, actions: Frame, *columns: str) -> Frame:  # type: ignore[override]
        return actions

    def files_with_deletes(self, version: int) -> Frame:  # type: ignore[override]
        """See ``TableVersions.files_with_deletes``."""
        return self.state(version).files().where("deletion_vector <> ''").select("path", "deletion_vector")


def inventory(world: World, paths: Iterable[str]) -> Frame:
    """The existing files of some paths, in the form of Delta's inventories."""
    objects = world.store.objects
    rows = [
        {
            "path": path,
            "length": objects[path].size,
            "isDir": False,
            "modificationTime": objects[path].modified_at,
        }
        for path in paths
        if path in objects
    ]
    return Frame(["path", "length", "isDir", "modificationTime"], rows)


class JavaVacuum:
    """The shim's object behind ``Vacuum``: the steps of Delta's vacuum."""

    def __init__(self, world: World, delete_before: int) -> None:
        self._world = world
        self._delete_before = delete_before

    def listing(self, parallelism: int) -> Frame:
        names = self._world.store.names(ROOT, "vacuum: list")
        return inventory(self._world, [f"{ROOT}/{name}" for name in names])

    def below(self, files: Frame) -> Frame:
        return files

    def _needed(self) -> set[str]:
        log = self._world.log
        newest = log.read("vacuum: look")
        live = {f"{ROOT}/{path}" for file in log.live[newest].values() for path in file.needs}
        recent = {f"{ROOT}/{path}" for path, _, at in log.tombstones(newest) if at >= self._delete_before}
        return live | recent

    def run(self, mode: str, files: Frame | None, dry: bool) -> Frame | None:
        needed = self._needed()
        if files is None:
            log = self._world.log
            names = {f"{ROOT}/{path}" for path, _, _ in log.tombstones(log.newest)}
            files = inventory(self._world, sorted(names))
        old = [
            row["path"]
            for row in files.rows
            if row["path"] not in needed and row["modificationTime"] < self._delete_before
        ]
        if dry:
            return Frame(["path"], [{"path": path} for path in old])
        self._world.log_operation("VACUUM START", {})
        count = sum(self._world.delete_data(path, "vacuum: delete") for path in old)
        self._world.log_operation("VACUUM END", {"numDeletedFiles": str(count)})
        return None

    def delete(self, paths: Sequence[str], threads: int) -> list[int]:
        sizes = []
        for path in paths:
            stored = self._world.store.objects.get(path)
            is_old = stored is not None and stored.modified_at < self._delete_before
            sizes.append(stored.size if is_old and self._world.delete_data(path, "vacuum: delete") else -1)  # type: ignore[union-attr]
        return sizes

    def started(self, paths: Frame, size: int) -> None:
        self._world.log_operation("VACUUM START", {})

    def ended(self, deleted: int, folders: int) -> None:
        self._world.log_operation("VACUUM END", {"numDeletedFiles": str(deleted)})

    def failed(self) -> None:
        self._world.log_operation("VACUUM END", {"numDeletedFiles": "0"})

    def cover(self, version: int) -> None:
        self._world.faults.before("vacuum: look")


class Vacuum(TableVacuum):
    """``TableVacuum`` over the simulated log and store."""

    def tombstones(self) -> Frame:  # type: ignore[override]
        """See ``TableVacuum.tombstones``."""
        rows = self._versions.state(self._versions.newest()).actions().rows  # type: ignore[attr-defined]
        removed = [{**row, "deletionTimestamp": row["removed_at"]} for row in rows if not row["is_added"]]
        return Frame(["path", "size", "deletionTimestamp"], removed)


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


@contextmanager
def replaced(values: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Gives attributes other values while the block runs."""
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in values]
    for owner, name, value in values:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
