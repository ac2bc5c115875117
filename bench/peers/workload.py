"""What all systems are given: tables, queries and a history of statements, as Parquet files and one JSON file.

This module needs the standard library only, because each system runs in an environment of its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["append", "upsert", "delete", "relayout", "maintain", "measure"]


@dataclass(frozen=True)
class Table:
    """A table of a workload.

    Attributes:
        name: of the table.
        rows: the Parquet file with its first rows, relative to the workload's folder.
        layout: the columns by which its rows are laid out, the most important first; without any, a system stores the
            rows as they come.
        key: the columns that name a row; none if no statement needs them.
    """

    name: str
    rows: str
    layout: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A step of a history.

    Attributes:
        kind: ``append`` and ``upsert`` (by the table's key) write the rows of a Parquet file, ``delete`` deletes the
            rows that fulfil a condition, ``relayout`` changes a table's columns of layout, ``maintain`` lets the system
            rewrite what its allowance permits, and ``measure`` runs queries.
        table: what a statement changes.
        rows: the Parquet file.
        condition: of a deletion, in SQL, with literals only.
        columns: the new columns of layout.
        name: of the measurement.
        queries: the names of the queries to run.
    """

    kind: Kind
    table: str = ""
    rows: str = ""
    condition: str = ""
    columns: tuple[str, ...] = ()
    name: str = ""
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Tables, queries, and a history.

    Attributes:
        file_bytes: how large a file of a table is to be.
        tables: in the order in which they are made.
        queries: SQL by name, with bare names of tables.
        steps: the history, after the tables were loaded and laid out once.
        answers: rows as texts, by measurement and query.
    """

    file_bytes: int
    tables: tuple[Table, ...]
    queries: dict[str, str]
    steps: tuple[Step, ...]
    answers: dict[str, dict[str, list[list[str]]]] = field(default_factory=dict)

    def store(self, folder: Path) -> None:
        """Writes the workload beside its Parquet files."""
        (folder / "workload.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @property
    def written_tables(self) -> tuple[Table, ...]:
        """The tables that the history changes and that have a layout, in order."""
        changed = {step.table for step in self.steps}
        return tuple(table for table in self.tables if table.layout and table.name in changed)


def load(folder: Path) -> Workload:
    """Reads a workload."""
    stored = json.loads((folder / "workload.json").read_text("utf-8"))
    tables = tuple(
        Table(each["name"], each["rows"], tuple(each["layout"]), tuple(each["key"])) for each in stored["tables"]
    )
    steps = tuple(
        Step(**each | {"queries": tuple(each["queries"]), "columns": tuple(each["columns"])})
        for each in stored["steps"]
    )
    return Workload(stored["file_bytes"], tables, stored["queries"], steps, stored["answers"])
