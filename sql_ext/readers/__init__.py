"""Samples and boxes of indexed tables without Spark and without a JVM, for Arrow, pandas, Polars and DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sql_ext.readers.table_scan import Scan, scan

__all__ = ["Scan", "scan"]


def __getattr__(name: str) -> Any:
    """Imports a name with its first use: readers of the log alone parse no conditions."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sql_ext.readers import table_scan

    return getattr(table_scan, name)
