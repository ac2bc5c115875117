"""``<table>.revisions``: one row per index space, and one for what is not indexed."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from catalog.virtual_tables.spaces import column_names, descriptions
from catalog.virtual_tables.virtual_table import VirtualTable

_SCHEMA = (
    "revision_id bigint, timestamp bigint, columns array<string>, transformations array<string>, cube_size bigint, "
    "files bigint, bytes bigint, rows bigint"
)


def _rows(table: ManagedTable) -> DataFrame:
    snapshot = table.snapshot()
    # NULL in place of a sum that would leave out the files without statistics.
    known = F.when(F.count("rows") == F.count(F.lit(1)), F.sum("rows")).alias("rows")
    totals = {
        r.revision: (r.files, r.bytes, r["rows"])
        for r in snapshot.files.groupBy("revision")
        .agg(F.count(F.lit(1)).alias("files"), F.sum("size").alias("bytes"), known)
        .collect()
    }
    numbers = sorted({*totals, *snapshot.stored_revisions.numbers})
    rows = [(number, *_space(snapshot, number), *totals.get(number, (0, 0, 0))) for number in numbers]
    return table.spark.createDataFrame(rows, _SCHEMA)


def _space(snapshot: TableSnapshot, number: int) -> tuple[Any, ...]:
    """Timestamp, columns, transformations and cube size; nothing of one that cannot be read."""
    revision = snapshot.revisions.get(number)
    if revision is None:
        return None, None, None, None
    columns = column_names(snapshot.schema, revision.columns)
    return revision.timestamp, columns, descriptions(revision), revision.desired_cube_size


REVISIONS = VirtualTable("revisions", _SCHEMA, _rows)
