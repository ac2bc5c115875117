"""The type of virtual tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from catalog.table.managed_table import ManagedTable


@dataclass(frozen=True)
class VirtualTable:
    """Rows about a table that are read as ``<table>.<name>``.

    Attributes:
        name: last part of the table name in SQL.
        schema: DDL; a contract with users.
        rows: computes the rows of one table.
    """

    name: str
    schema: str
    rows: Callable[[ManagedTable], DataFrame]
