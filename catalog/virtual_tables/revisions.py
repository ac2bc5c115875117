"""``<table>.revisions``: one row per index space, and one for files that are not indexed."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from catalog.files.arrays import UNKNOWN
from catalog.jvm.local_rows import local_data_frame
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
    totals = _totals(snapshot)
    numbers = sorted({*totals, *snapshot.stored_revisions.numbers})
    rows = [(number, *_space(snapshot, number), *totals.get(number, (0, 0, 0))) for number in numbers]
    return local_data_frame(table.spark, rows, _SCHEMA)


def _totals(snapshot: TableSnapshot) -> dict[int, tuple[int, int, int | None]]:
    """Files, bytes and rows of each revision; None in place of a sum without the files that have no statistics."""
    columns = snapshot.file_table
    totals: dict[int, tuple[int, int, int | None]] = {}
    for number in np.unique(columns.revision):
        own = columns.revision == number
        rows = columns.rows[own]
        known = None if (rows == UNKNOWN).any() else int(rows.sum())
        totals[int(number)] = int(own.sum()), int(columns.size[own].sum()), known
    return totals


def _space(snapshot: TableSnapshot, number: int) -> tuple[Any, ...]:
    """Timestamp, columns, transformations and cube size; nothing of one that cannot be read."""
    revision = snapshot.revisions.get(number)
    if revision is None:
        return None, None, None, None
    columns = column_names(snapshot.schema, revision.columns)
    return revision.timestamp, columns, descriptions(revision), revision.desired_cube_size


REVISIONS = VirtualTable("revisions", _SCHEMA, _rows)
