"""``consumption`` of all tables: the rows of each ``<table>.consumption``, with the table's name; read by Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.insights.consumption import scans_of
from catalog.insights.record_files import CONSUMPTION_FOLDER
from catalog.insights.scan_rows import CONSUMPTION_SCHEMA
from catalog.jvm.local_rows import local_data_frame
from catalog.system_tables.system_table import Listed, SystemQuery, SystemTable, error_text, listed_tables
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

_SCHEMA = f"table string, {CONSUMPTION_SCHEMA}, error string"


class _ScansOfAllTables(SystemTable):
    """Does not collect the rows, of which there may be millions."""

    def read(self, query: SystemQuery) -> DataFrame:
        """See ``SystemTable.read``."""
        # Its static type is that of any data type.
        schema: Any = StructType.fromDDL(_SCHEMA)
        frames = [local_data_frame(query.spark, [], schema)]
        frames += [frame for listed in listed_tables(query) if (frame := _scans(query, listed, schema)) is not None]
        return reduce(DataFrame.unionByName, frames).select(*(query.columns or schema.names[:1]))


def _scans(query: SystemQuery, listed: Listed, schema: StructType) -> DataFrame | None:
    """The rows of one table, or a row with the error; None without rows."""
    try:
        table = ManagedTable.find(query.spark, listed.lookup)
        if not table.list_state(CONSUMPTION_FOLDER):
            return None
        no_error = F.lit(None).cast("string").alias("error")
        return scans_of(table).select(F.lit(table.name).alias("table"), "*", no_error)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
        text = error_text(error)
        logger.warning("%s: the records of its queries cannot be read: %s", listed.lookup, text)
        return local_data_frame(query.spark, [(listed.lookup, *[None] * (len(schema) - 2), text)], schema)


def _no_rows(_: SystemQuery) -> Iterable[Mapping[str, Any]]:
    return ()


CONSUMPTION = _ScansOfAllTables("consumption", _SCHEMA, _no_rows)
