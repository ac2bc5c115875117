"""Samples and boxes of indexed tables without Spark and without a JVM, for Arrow, pandas, Polars and DuckDB."""

from sql_ext.readers.table_scan import Scan, scan

__all__ = ["Scan", "scan"]
