"""The Delta tables that the session's catalog knows, listed without looking at any of their logs."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import UnknownNameError
from catalog.jvm.java_values import java_class, java_list, jvm_session
from catalog.sql_names import name_parts, quoted

SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class KnownTable:
    """A table as the metastore lists it; its log may be missing or damaged.

    Attributes:
        catalog: name of its catalog.
        namespace: its database.
        name: its name, without quotes.
        location: root directory, as ``ManagedTable.location``.
        provider: the format's name, as the metastore has it.
    """

    catalog: str
    namespace: str
    name: str
    location: str
    provider: str

    @property
    def full_name(self) -> str:
        """The three parts as SQL reads them, and as ``ManagedTable.name`` has them."""
        return ".".join(quoted(part) for part in (self.catalog, self.namespace, self.name))


def database_of(name: str) -> str | None:
    """The database of a table of ``spark_catalog`` by its full name; None for a table that is named by its path."""
    parts = name_parts(name)
    return parts[1] if len(parts) == 3 and parts[0] == SESSION_CATALOG and parts[1] != "delta" else None


def is_restricting(spark: SparkSession) -> bool:
    """Whether ``spark_catalog`` is a catalog of the deployment, which may hide tables from users or refuse them.

    Args:
        spark: session of the user.
    """
    return bool(java_class(spark, "io.usespark.Metastore").isRestricting(jvm_session(spark)))


def is_shown(spark: SparkSession, name: str) -> bool:
    """Whether the user may know of a table: whether its catalog loads it. Asks only catalogs of the deployment.

    Args:
        spark: session of the user.
        name: full name as SQL reads it; a path is always shown.
    """
    return bool(java_class(spark, "io.usespark.TableLookup").isShown(jvm_session(spark), name))


def tables_of(spark: SparkSession, *, every: bool = False) -> list[KnownTable]:
    """The Delta tables of all databases of ``spark_catalog``, in the metastore's order.

    A database costs two requests to the metastore, and one more per 500 tables. Temporary views and views are left
    out, and so is what the metastore itself cannot read. Catalogs besides ``spark_catalog`` are not looked at: Delta
    supports none of its own there.

    A table that a catalog of the deployment does not load is left out, which costs a request for each table. The
    catalogs of USE and of Delta are not asked.

    Args:
        spark: its catalog is listed.
        every: whether tables that the catalog does not load are listed, too. Nothing of them may be shown.
    """
    return _listed(spark, None, every=every)


def tables_of_schema(spark: SparkSession, schema: str) -> list[KnownTable]:
    """The same for one database.

    Args:
        spark: its catalog is listed.
        schema: name of the database, with or without ``spark_catalog``, as SQL reads it.

    Raises:
        UnknownNameError: there is no such database.
    """
    parts = name_parts(schema)
    if len(parts) > 1 and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) != 1 or not spark.catalog.databaseExists(f"{SESSION_CATALOG}.{quoted(parts[0])}"):
        raise UnknownNameError.of("schema", schema, [row.name for row in spark.catalog.listDatabases()])
    return _listed(spark, parts[0])


def properties_of_databases(
    spark: SparkSession, databases: Collection[str]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Properties of USE that tables may inherit; the metastore is asked again after ten seconds.

    Args:
        spark: its catalog and settings count.
        databases: names of databases in ``spark_catalog``.

    Returns:
        Those of the session by property, and those of each database.
    """
    names = java_list(spark, sorted(databases))
    found = json.loads(java_class(spark, "io.usespark.InheritedProperties").ofDatabases(jvm_session(spark), names))
    return found["session"], found["databases"]


def _listed(spark: SparkSession, database: str | None, *, every: bool = False) -> list[KnownTable]:
    rows = json.loads(java_class(spark, "io.usespark.Metastore").deltaTables(jvm_session(spark), database or "", every))
    return [KnownTable(SESSION_CATALOG, *row) for row in rows]
