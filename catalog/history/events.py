"""The event that each optimization stores in its commit and below ``_use/``: its schema and construction."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

OPERATION = "USE OPTIMIZE"
# Every reader of the log parses every commit, so longer lists of file names are stored in files of their own.
MAX_NAMES_IN_COMMIT = 1000
EVENT_KEY = "event"
# Folders below the state folder: of events, and of these lists.
EVENTS_FOLDER = "events"
LISTS_FOLDER = "lists"

_STATS_TYPE = (
    "struct<files:array<string>,file_levels:array<bigint>,element_count:bigint,bytes:bigint,num_files:bigint,"
    "num_cubes:bigint,num_blocks:bigint,avg_num_blocks_per_file:double,avg_block_element_count_per_file:double>"
)
EVENT_FIELDS = (
    "optimization_name string, write_id string, table_id string, revision_id bigint, started_at bigint, "
    "finished_at bigint, process_time_ms bigint, "
    f"input_files_stats {_STATS_TYPE}, output_files_stats {_STATS_TYPE}"
)
_LOG_FIELDS = "kind string, trigger string, state string, reason string, parameters map<string,string>, error string"
OPTIMIZATIONS_SCHEMA = (
    f"{EVENT_FIELDS}, version bigint, {_LOG_FIELDS}, error_code string, write_amplification double, "
    "started_time timestamp_ltz, finished_time timestamp_ltz"
)

# States: a rewrite in a commit, one without, a trigger or group that led to no rewrite, a vacuum.
COMMITTED, FAILED, IGNORED, DELETED = "committed", "failed", "ignored", "deleted"
# Kinds.
OPTIMIZE, VACUUM = "optimize", "vacuum"


@dataclass(frozen=True)
class FileFacts:
    """Statistics of one file in an event.

    Attributes:
        path: as in the log.
        size: bytes.
        rows: number of rows, or None when the log does not record it.
        block_counts: elements per block; empty for an unindexed file.
        cube_ids: cube of each block, aligned with ``block_counts``.
        level: level of the largest block, -1 when unindexed.
    """

    path: str
    size: int
    rows: int | None
    block_counts: tuple[int, ...]
    cube_ids: tuple[str, ...]
    level: int


@dataclass(frozen=True)
class FilesStats:
    """Statistics of an optimization's input or output files."""

    files: tuple[str, ...]
    file_levels: tuple[int, ...]
    element_count: int
    bytes: int
    num_files: int
    num_cubes: int
    num_blocks: int
    avg_num_blocks_per_file: float
    avg_block_element_count_per_file: float

    @classmethod
    def of(cls, files: Sequence[FileFacts]) -> FilesStats:
        """Sums up files; ``element_count`` is -1 if the number of rows of a file is unknown."""
        count = len(files)
        blocks = sum(len(f.block_counts) for f in files)
        cubes = {cube for f in files for cube in f.cube_ids}
        averages = [sum(f.block_counts) / len(f.block_counts) for f in files if f.block_counts]
        known = all(f.rows is not None for f in files)
        return cls(
            files=tuple(f.path for f in files),
            file_levels=tuple(f.level for f in files),
            element_count=sum(f.rows or 0 for f in files) if known else -1,
            bytes=sum(f.size for f in files),
            num_files=count,
            num_cubes=len(cubes),
            num_blocks=blocks,
            avg_num_blocks_per_file=blocks / count if count else 0.0,
            avg_block_element_count_per_file=sum(averages) / len(averages) if averages else 0.0,
        )


@dataclass(frozen=True)
class FilesTotals:
    """Number and size of files whose other statistics are unknown; missing values are NULL.

    ``element_count`` is -1 when some file's rows are not known.
    """

    num_files: int | None
    bytes: int | None
    files: tuple[str, ...] | None = None
    file_levels: tuple[int, ...] | None = None
    element_count: int | None = None

    @classmethod
    def of(cls, files: Sequence[FileFacts]) -> FilesTotals:
        """Sums up number and size of files, without their blocks."""
        stats = FilesStats.of(files)
        return cls(stats.num_files, stats.bytes, stats.files, stats.file_levels, stats.element_count)


@dataclass(frozen=True)
class OptimizationEvent:
    """One optimization or vacuum; times in epoch milliseconds.

    The statistics of files are None where nothing was read or written. ``table_bytes`` are the bytes of the table's
    live files after it, None where nothing was written.
    """

    optimization_name: str
    write_id: str
    table_id: str
    revision_id: int
    started_at: int
    finished_at: int
    input_files_stats: FilesStats | FilesTotals | None
    output_files_stats: FilesStats | None
    trigger: str
    reason: str
    parameters: Mapping[str, str]
    table_bytes: int | None = None
    kind: str = OPTIMIZE

    def to_json(self) -> str:
        """Returns the complete event."""
        return json.dumps(self._record(), separators=(",", ":"))

    @property
    def overflow_file(self) -> str | None:
        """The file of the complete event if its lists are too long for a commit; relative to the state folder."""
        lists = (stats.files for stats in (self.input_files_stats, self.output_files_stats) if stats is not None)
        longest = max((len(names) for names in lists if names is not None), default=0)
        return f"{LISTS_FOLDER}/{self.write_id}.json" if longest > MAX_NAMES_IN_COMMIT else None

    def commit_json(self) -> str:
        """Returns the event in the commit: without the lists if they are in ``overflow_file``."""
        record = self._record()
        if self.overflow_file is not None:
            record["overflow_file"] = self.overflow_file
            for stats in (record["input_files_stats"], record["output_files_stats"]):
                if stats is not None:
                    stats["files"] = stats["file_levels"] = None
        return json.dumps(record, separators=(",", ":"))

    def _record(self) -> dict[str, Any]:
        record = asdict(self)
        record["process_time_ms"] = self.finished_at - self.started_at
        return record


def event_without_commit(
    strategy: str,
    trigger: str,
    reason: str,
    parameters: Mapping[str, str],
    times: tuple[int, int],
    inputs: FilesTotals | None = None,
    table_id: str = "",
    write_id: str | None = None,
) -> OptimizationEvent:
    """Builds the event of a failed group or an ignored trigger, which have no commit.

    Args:
        strategy: name of the strategy or of the requested operation.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        reason: reason code.
        parameters: arguments of the call.
        times: start and end, epoch milliseconds.
        inputs: what the group would have read; not known when left out.
        table_id: Delta's metadata id; the event store fills it in when left out.
        write_id: of the rewrite whose commit may yet appear; one of its own when left out.
    """
    return OptimizationEvent(
        optimization_name=strategy,
        write_id=write_id or uuid.uuid4().hex,
        table_id=table_id,
        revision_id=-1,
        started_at=times[0],
        finished_at=times[1],
        input_files_stats=inputs,
        output_files_stats=None,
        trigger=trigger,
        reason=reason,
        parameters=parameters,
    )


def event_of_vacuum(
    trigger: str,
    reason: str,
    parameters: Mapping[str, str],
    times: tuple[int, int],
    removed: FilesTotals | None = None,
    table_bytes: int | None = None,
) -> OptimizationEvent:
    """Builds the event of a vacuum: its input is the removed files, and it has no output.

    Args:
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        reason: reason code.
        parameters: arguments of the call.
        times: start and end, epoch milliseconds.
        removed: number and bytes of the removed files, None when it failed.
        table_bytes: bytes of the table's live files after it.
    """
    event = event_without_commit(VACUUM, trigger, reason, parameters, times, removed)
    return replace(event, kind=VACUUM, table_bytes=table_bytes)
