"""The most similar name of a table, for errors."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.similar_names import nearest_name
from catalog.sql_names import name_parts, quoted

# Names in a large schema would take long to compare.
_MOST_TABLES = 5000
_CUTOFF = 0.6


def near_table(spark: SparkSession, name: str, catalog_names: tuple[str, ...] = ("spark_catalog",)) -> str | None:
    """Returns the table of the same schema whose name is most similar; None if there is none, or for a path.

    Args:
        spark: session whose catalog is listed.
        name: name of a missing table.
        catalog_names: catalogs that the name may begin with.
    """
    parts = name_parts(name)
    if not parts or "/" in parts[-1]:
        return None
    if len(parts) > 2 and parts[0].lower() in catalog_names:
        parts = parts[1:]
    if len(parts) > 2:
        return None
    try:
        # Spark returns the name of the current database as SQL has it, with backquotes where it needs them.
        schema = quoted(parts[-2]) if len(parts) == 2 else spark.catalog.currentDatabase()
        rows = spark.sql(f"SHOW TABLES IN {schema}").take(_MOST_TABLES)
    except (PySparkException, Py4JError):
        return None  # the error about the table matters, not another one about its schema
    # Temporary views are listed in every schema.
    near = nearest_name(parts[-1], [row.tableName for row in rows if not row.isTemporary], _CUTOFF)
    if near is None:
        return None
    return ".".join([*(quoted(part) for part in parts[:-1]), quoted(near)])
