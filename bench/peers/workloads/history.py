"""Making workloads: a DuckDB database is the oracle that runs each statement and answers each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb

from peers.answers import texts_of
from peers.workload import Kind, Step, Table, Workload


class History:
    """A history that is run on DuckDB while it is written down."""

    def __init__(self, folder: Path, database: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> None:
        """Begins a history.

        Args:
            folder: where the Parquet files go.
            database: has the first rows of all tables.
            queries: SQL by name.
        """
        self._folder = folder
        self._database = database
        self._queries = dict(queries)
        self._steps: list[Step] = []
        self._answers: dict[str, dict[str, list[list[str]]]] = {}

    def append(self, table: str, rows: str) -> None:
        """Appends the rows of a query."""
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE step_rows AS {rows}")
        self._database.execute(f"INSERT INTO {table} SELECT * FROM step_rows")
        self._add("append", table)

    def upsert(self, table: str, key: Iterable[str], rows: str) -> None:
        """Updates the rows of a query by their key, and inserts those whose key is new."""
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE step_rows AS {rows}")
        same = " AND ".join(f"t.{column} = s.{column}" for column in key)
        self._database.execute(f"DELETE FROM {table} t USING step_rows s WHERE {same}")
        self._database.execute(f"INSERT INTO {table} SELECT * FROM step_rows")
        self._add("upsert", table)

    def delete(self, table: str, condition: str) -> None:
        """Deletes the rows that fulfil a condition."""
        self._database.execute(f"DELETE FROM {table} WHERE {condition}")
        self._steps.append(Step("delete", table, condition=condition))

    def lay_out_by(self, table: str, columns: tuple[str, ...]) -> None:
        """Changes the columns by which a table is laid out."""
        self._steps.append(Step("relayout", table, columns=columns))

    def maintain(self) -> None:
        """Lets the systems spend their allowance."""
        self._steps.append(Step("maintain"))

    def measure(self, name: str, queries: Iterable[str] = ()) -> None:
        """Runs queries: those named, else all.

        Args:
            name: of the measurement, another one each time.
            queries: their names.
        """
        chosen = tuple(queries) or tuple(self._queries)
        self._steps.append(Step("measure", name=name, queries=chosen))
        self._answers[name] = {
            query: texts_of(self._database.execute(self._queries[query]).fetchall()) for query in chosen
        }

    def end(self, file_bytes: int, tables: Iterable[Table]) -> Workload:
        """Stores the workload and returns it."""
        workload = Workload(file_bytes, tuple(tables), self._queries, tuple(self._steps), self._answers)
        workload.store(self._folder)
        return workload

    def _add(self, kind: Kind, table: str) -> None:
        rows = f"step-{len(self._steps)}.parquet"
        write_rows(self._database, "SELECT * FROM step_rows", self._folder / rows)
        self._steps.append(Step(kind, table, rows))


def file_bytes(scale: float, at_one: float) -> int:
    """How large a file is to be: in proportion to the scale, between 4 and 128 MB.

    Some readers take files of about a megabyte as a whole, whatever a query needs.

    Args:
        scale: of the workload.
        at_one: bytes at scale 1.
    """
    return int(min(max(at_one * scale, 4e6), 128e6))


def write_rows(database: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    """Writes the rows of a query as a Parquet file whose row groups two cores can share."""
    database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 100000)")


def seeded(seed: float) -> duckdb.DuckDBPyConnection:
    """A database whose random numbers are the same each time."""
    database = duckdb.connect()
    # Random numbers are repeatable with one thread only.
    database.execute(f"SET threads = 1; SELECT setseed({seed})")
    return database
