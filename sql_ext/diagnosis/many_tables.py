"""Diagnosis of many tables, those with the largest gain first."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import Any

from catalog.errors import InvalidArgumentError, TableError, UseError, first_line
from sql_ext.diagnosis.results import Effort, Request, TableDiagnosis
from sql_ext.diagnosis.table_diagnosis import diagnose_table
from sql_ext.diagnosis.table_search import find_tables

# All tables together, unless there are so many that each would have too few.
_ROWS_OF_ALL, _LEAST_ROWS = 500_000, 4_000
_LEAST_BYTES = 2_000_000
# With more tables, a part of the places and of the files is enough to find those with the largest gain.
_FEW, _GROUPS_OF_MANY, _PLACES_OF_MANY, _COLUMNS_OF_MANY = 8, 6, 3, 4
# A process takes half a second to start. With fewer tables per process, it saves nothing.
_TABLES_PER_PROCESS = 20
_MOST_PROCESSES = 8
# Without processes, the threads wait for the object store and the disk.
_THREADS = 4


@dataclass(frozen=True)
class UnreadableTable:
    """A table, or a path, that could not be diagnosed.

    Attributes:
        location: path or URL.
        code: of the error.
        message: why.
    """

    location: str
    code: str
    message: str


@dataclass(frozen=True)
class Diagnoses:
    """Diagnoses of several tables.

    Attributes:
        tables: those with the largest gain first.
        unreadable: what could not be read.
    """

    tables: tuple[TableDiagnosis, ...]
    unreadable: tuple[UnreadableTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as dicts, lists, texts and numbers."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


def diagnose_tables(
    paths: Sequence[str],
    request: Request,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    processes: int = 1,
) -> Diagnoses:
    """Diagnoses the tables of some paths and below them; what cannot be read stops no other table.

    If there is a single table, its errors are raised.

    Args:
        paths: tables, or folders and prefixes with tables.
        request: what is asked for; its budget is that of all tables together.
        progress: is called with the number of tables that are done, and of all.
        processes: number of processes for many tables. With more than one, the main module must be importable, as
            ``multiprocessing`` asks for.

    Raises:
        InvalidArgumentError: queries were given for several tables.
        UseError: the only table cannot be read, or a query cannot be used.
    """
    locations, unreadable = _locations(paths, request.storage_options or {})
    if len(locations) == 1 and not unreadable:
        progress(0, 1)
        return Diagnoses((_diagnosed(locations[0], request),), ())
    if request.queries is not None and len(locations) > 1:
        raise InvalidArgumentError.of("queries", f"{len(locations)} tables", "queries of one table")
    request = _shared(request, len(locations))
    found: list[TableDiagnosis] = []
    progress(0, len(locations))
    with _pool(min(processes, len(locations) // _TABLES_PER_PROCESS)) as pool:
        tasks = [pool.submit(_outcome, location, request) for location in locations]
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                outcome = task.result()
                if isinstance(outcome, UnreadableTable):
                    unreadable.append(outcome)
                else:
                    found.append(outcome)
                progress(done, len(locations))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    found.sort(key=lambda one: (-one.verdict.saved_bytes, one.location))
    return Diagnoses(tuple(found), tuple(sorted(unreadable, key=lambda one: one.location)))


def _shared(request: Request, tables: int) -> Request:
    """The request for each of several tables."""
    if tables <= 1:
        return request
    rows = min(request.effort.rows, max(_ROWS_OF_ALL // tables, _LEAST_ROWS))
    effort = replace(request.effort, rows=rows)
    if tables > _FEW:
        effort = Effort(rows, _GROUPS_OF_MANY, _PLACES_OF_MANY, _COLUMNS_OF_MANY, is_brief=True)
    return replace(request, budget_bytes=max(request.budget_bytes // tables, _LEAST_BYTES), effort=effort)


def _pool(processes: int) -> Executor:
    if processes < 2:
        return ThreadPoolExecutor(_THREADS)
    # A copy of this process could have locks of threads that it lacks.
    return ProcessPoolExecutor(min(processes, _MOST_PROCESSES), multiprocessing.get_context("spawn"))


def _outcome(location: str, request: Request) -> TableDiagnosis | UnreadableTable:
    try:
        return _diagnosed(location, request)
    except UseError as error:
        return UnreadableTable(location, error.code, error.message)


def _diagnosed(location: str, request: Request) -> TableDiagnosis:
    try:
        return diagnose_table(location, request)
    except (UseError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # A damaged file may end in any error, also in one of Rust that is no Exception.
        raise TableError.unreadable(location, f"{type(error).__name__}: {first_line(error)}") from error


def _locations(paths: Sequence[str], options: Mapping[str, str]) -> tuple[list[str], list[UnreadableTable]]:
    locations: dict[str, None] = {}
    unreadable = []
    if len(paths) == 1:
        return find_tables(paths[0], options), []
    for path in paths:
        try:
            locations.update(dict.fromkeys(find_tables(path, options)))
        except UseError as error:  # noqa: PERF203 - a few paths
            unreadable.append(UnreadableTable(path, error.code, error.message))
    return list(locations), unreadable
