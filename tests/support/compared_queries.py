"""Queries compared with the same queries that skip no file."""

from collections import Counter

from tables import PlainReads

from sql_ext import read_report


def compared(spark, query):
    """The report of a query after it ran; its rows equal those of the same query without the rules."""
    with PlainReads(spark):
        wanted = Counter(map(str, spark.sql(query).collect()))
    data = spark.sql(query)
    assert Counter(map(str, data.collect())) == wanted, query
    return read_report(data)


def scan_of(report, table):
    """The scan of a table in a report."""
    (scan,) = (scan for scan in report.scans if scan.table.endswith(table.name))
    return scan
