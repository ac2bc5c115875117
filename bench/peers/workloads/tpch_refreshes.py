"""TPC-H: 22 queries, and refreshes of orders and line items.

Data and queries come from DuckDB's generator. A refresh inserts and deletes a thousandth of the orders with their
items, as the benchmark prescribes: new orders have keys from the gaps that the generator leaves (it uses 8 of 32),
and the values of other orders.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from peers.workload import Table, Workload
from peers.workloads.history import History, file_bytes, seeded, write_rows

TABLES = (
    Table("lineitem", "lineitem.parquet", ("l_shipdate", "l_orderkey"), ("l_orderkey", "l_linenumber")),
    Table("orders", "orders.parquet", ("o_orderdate", "o_orderkey"), ("o_orderkey",)),
    Table("partsupp", "partsupp.parquet", ("ps_partkey", "ps_suppkey"), ("ps_partkey", "ps_suppkey")),
    Table("customer", "customer.parquet", ("c_custkey",), ("c_custkey",)),
    Table("part", "part.parquet", ("p_partkey",), ("p_partkey",)),
    Table("supplier", "supplier.parquet"),
    Table("nation", "nation.parquet"),
    Table("region", "region.parquet"),
)


def make(folder: Path, scale: float, rounds: int) -> Workload:
    """Makes the workload.

    Args:
        folder: an empty folder.
        scale: the scale factor; 1 is a gigabyte of text.
        rounds: number of refreshes.
    """
    database = seeded(0.22)
    queries = generate(database, scale)
    for table in TABLES:
        write_rows(database, f"SELECT * FROM {table.name}", folder / table.rows)
    history = History(folder, database, {f"Q{number}": query for number, query in queries.items()})
    history.measure("bulk")
    for number in range(rounds):
        _refresh(history, database, number)
        history.maintain()
    if rounds:
        history.measure("refreshed")
    return history.end(file_bytes(scale, 8e6), TABLES)


def generate(database: duckdb.DuckDBPyConnection, scale: float) -> dict[int, str]:
    """Fills a database with the tables of TPC-H; returns the queries by number."""
    import duckdb_extension_tpch

    (extension,) = Path(duckdb_extension_tpch.__path__[0]).rglob("tpch.duckdb_extension")
    database.execute(f"LOAD '{extension}'; CALL dbgen(sf={scale})")
    return dict(database.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())


def _refresh(history: History, database: duckdb.DuckDBPyConnection, number: int) -> None:
    database.execute(
        "CREATE OR REPLACE TEMP TABLE chosen AS "
        "SELECT o_orderkey AS old, o_orderkey + 8 + 8 * (? % 3) AS new FROM orders "
        "WHERE o_orderkey % 32 BETWEEN 1 AND 7 AND hash(o_orderkey + ?) % 1000 = 0 "
        "AND new NOT IN (SELECT o_orderkey FROM orders)",
        [number, number],
    )
    history.append("orders", "SELECT orders.* REPLACE (new AS o_orderkey) FROM orders JOIN chosen ON o_orderkey = old")
    history.append(
        "lineitem", "SELECT lineitem.* REPLACE (new AS l_orderkey) FROM lineitem JOIN chosen ON l_orderkey = old"
    )
    # One order in a thousand, all over the table.
    leaving = database.execute(
        "SELECT o_orderkey FROM orders WHERE hash(o_orderkey + ?) % 1000 = 1 ORDER BY 1", [number]
    ).fetchall()
    listed = ", ".join(str(key) for (key,) in leaving)
    history.delete("lineitem", f"l_orderkey IN ({listed})")
    history.delete("orders", f"o_orderkey IN ({listed})")
