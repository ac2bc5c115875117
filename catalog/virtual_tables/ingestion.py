"""``<table>.ingestion``: one row per commit, newest first, from the log and from the rows that the service keeps."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.insights.commit_rows import INGESTION_SCHEMA
from catalog.insights.ingestion import ingestion_rows
from catalog.jvm.local_rows import local_data_frame
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables.virtual_table import VirtualTable


def _rows(table: ManagedTable) -> DataFrame:
    rows = [tuple(row.shown.values()) for row in ingestion_rows(table)]
    return local_data_frame(table.spark, rows, INGESTION_SCHEMA)


INGESTION = VirtualTable("ingestion", INGESTION_SCHEMA, _rows)
