"""Diagnosis from Python: what reads of tables cost today, and what an index would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import Any

from catalog.errors import InvalidArgumentError
from catalog.settings.setting import SIZE
from sql_ext.diagnosis.html_page import diagnosis_page
from sql_ext.diagnosis.many_tables import Diagnoses, diagnose_tables
from sql_ext.diagnosis.results import DEFAULT_BUDGET_BYTES, Request
from sql_ext.diagnosis.text_page import diagnoses_text
from sql_ext.readers.arguments import checked_location, checked_storage_options

_Path = str | PathLike[str]
_PATHS = "a path or URL of a table or a folder, or a list of them"


@dataclass(frozen=True)
class DiagnosisReport(Diagnoses):
    """Diagnoses that can be shown."""

    def to_html(self) -> str:
        """Returns a page for a browser or for mail."""
        return diagnosis_page(self)

    def __str__(self) -> str:
        """Returns text for a terminal of 110 characters."""
        return diagnoses_text(self)


def diagnose(
    paths: _Path | Sequence[_Path],
    queries: str | Sequence[str] | None = None,
    *,
    budget: int | str = DEFAULT_BUDGET_BYTES,
    target_file_bytes: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    processes: int = 1,
) -> DiagnosisReport:
    """Diagnoses Delta tables without Spark: what reads cost today, what an index would change, and what to do.

    Reads the logs and a sample of the rows. Writes nothing, and needs no property on a table.

    Args:
        paths: a table, a folder or prefix with tables, or several of them.
        queries: SELECT statements over the one table that it is judged by; ranges of its columns if None.
        budget: bytes of data files to read at most, such as ``"256MB"``.
        target_file_bytes: size of the files of an index; that of the table's properties, or 128 MB, if None.
        storage_options: for object stores, as deltalake takes them.
        processes: number of processes for many tables; more than one needs a main module that can be imported.

    Returns:
        The diagnoses, those with the largest gain first, and what could not be read.

    Raises:
        InvalidArgumentError: an argument is not accepted, or queries are given for several tables.
        UnknownNameError: a query names a column that the table lacks.
        TableError: there is no table at the only path.
        UseError: the only table cannot be read.
    """
    names: Any = [paths] if isinstance(paths, (str, PathLike)) else paths
    if not isinstance(names, Sequence) or not names:
        raise InvalidArgumentError.of("paths", str(paths), _PATHS)
    locations = [checked_location("paths", name, _PATHS) for name in names]
    _check_queries(queries)
    text = queries if queries is None or isinstance(queries, str) else ";".join(queries)
    request = Request(
        SIZE.parse("budget", str(budget)),
        None if target_file_bytes is None else SIZE.parse("target_file_bytes", str(target_file_bytes)),
        text,
        checked_storage_options(storage_options),
    )
    _check_processes(processes)
    found = diagnose_tables(locations, request, processes=int(processes))
    return DiagnosisReport(found.tables, found.unreadable)


def _check_processes(processes: Any) -> None:
    is_whole = isinstance(processes, Integral) and not isinstance(processes, bool)
    if not (is_whole and processes >= 1):
        raise InvalidArgumentError.of("processes", str(processes), "a whole number from 1")


def _check_queries(queries: Any) -> None:
    is_list = isinstance(queries, Sequence) and not isinstance(queries, (str, bytes))
    if queries is None or isinstance(queries, str) or (is_list and all(isinstance(query, str) for query in queries)):
        return
    raise InvalidArgumentError.of("queries", str(queries), "SELECT statements, as a text or a list of texts")
