"""The type of system tables, and the tables that they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.jvm.java_errors import known_error
from catalog.jvm.local_rows import local_data_frame
from catalog.jvm.log_probe import qualified
from catalog.jvm.metastore import SESSION_CATALOG, KnownTable, is_shown, tables_of
from catalog.state.automation import Automation, Automations
from catalog.state.state_files import printable
from catalog.table.managed_table import ManagedTable


@dataclass(frozen=True)
class SystemQuery:
    """A query of a system table.

    Attributes:
        spark: session of the query.
        columns: names of the columns that it needs.
        automations: the tables that the service of this process optimizes.
        now: epoch milliseconds.
        health: computes the score of a table's health, from 0 to 100; None if a table has none.
        fleet: returns the rows of ``fleet``.
    """

    spark: SparkSession
    columns: Sequence[str]
    automations: Automations
    now: int
    health: Callable[[ManagedTable], int | None] = lambda _: None
    fleet: Callable[[], Iterable[Mapping[str, Any]]] = tuple


@dataclass(frozen=True)
class SystemTable:
    """Rows about all tables of the metastore, and about the tables by path that the service of this process optimizes.

    Attributes:
        name: last part of its name in SQL.
        schema: DDL; a contract with users.
        rows: computes the rows: values by column, at least those of the requested columns.
    """

    name: str
    schema: str
    rows: Callable[[SystemQuery], Iterable[Mapping[str, Any]]]

    def read(self, query: SystemQuery) -> DataFrame:
        """The rows with the columns of the query; with one that costs nothing when there are none, as for a count."""
        # Its static type is that of any data type.
        schema: Any = StructType.fromDDL(self.schema)
        query = replace(query, columns=list(query.columns) or schema.names[:1])
        wanted = query.columns
        rows = [tuple(row[name] for name in wanted) for row in self.rows(query)]
        return local_data_frame(query.spark, rows, StructType([schema[name] for name in wanted]))


@dataclass(frozen=True)
class Listed:
    """A table to be shown.

    Attributes:
        lookup: the text by which ``ManagedTable.find`` finds it.
        shown: its values of catalog, namespace, name, location and provider.
        automation: its state in the service of this process.
    """

    lookup: str
    shown: Mapping[str, str | None]
    automation: Automation | None


def listed_tables(query: SystemQuery) -> list[Listed]:
    """The tables of the metastore, then those by path; no log is read for it."""
    spark, automations = query.spark, query.automations
    known = tables_of(spark)
    places = [qualified(spark, table.location) for table in known]
    tables = [
        Listed(table.full_name, _shown(table), automations.get(place))
        for table, place in zip(known, places, strict=True)
    ]
    locations = set(places)
    for automation in automations.all():
        if automation.location not in locations and is_shown(spark, automation.table):
            shown = {
                "catalog": None,
                "namespace": None,
                "name": automation.table.removeprefix(f"{SESSION_CATALOG}."),
                "location": automation.location,
                "provider": "delta",
            }
            tables.append(Listed(automation.location, shown, automation))
    return tables


def _shown(table: KnownTable) -> dict[str, str | None]:
    return {
        "catalog": table.catalog,
        "namespace": table.namespace,
        "name": table.name,
        "location": table.location,
        "provider": table.provider,
    }


def error_text(error: BaseException) -> str:
    """An error as one line: its code, where it has one, and what it says."""
    known = known_error(error)
    return printable(f"{known.code}: {known.message}")


def error_code(error: BaseException) -> str:
    """The code of an error, that of internal ones where it has none."""
    return known_error(error).code
