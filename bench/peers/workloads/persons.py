"""Deletes of persons: the rows of one key, which are in every file."""

from __future__ import annotations

from pathlib import Path

from peers.workload import Table, Workload
from peers.workloads.history import History, file_bytes, seeded, write_rows

TABLE = Table("actions", "actions.parquet", ("time", "person"))
PERSONS = 5000

_ACTIONS = f"""
SELECT TIMESTAMP '2026-01-01' + to_seconds((range * 5184000.0 / {{rows}})::BIGINT) AS time,
    ({PERSONS} * pow(random(), 2))::INTEGER AS person,
    ['view', 'buy', 'sell', 'return'][1 + (random() * 3)::INTEGER] AS kind,
    (random() * 10000)::DECIMAL(10, 2) AS amount, md5(random()::VARCHAR) AS device, (random() * 500)::INTEGER AS shop
FROM range({{rows}})
"""

QUERIES = {
    "a day": "SELECT kind, sum(amount) AS a FROM actions "
    "WHERE time >= TIMESTAMP '2026-02-10 00:00:00' AND time < TIMESTAMP '2026-02-11 00:00:00' GROUP BY 1",
    "person": "SELECT time, kind, amount FROM actions WHERE person = 2500",
    "person, week": "SELECT count(*), sum(amount) FROM actions "
    "WHERE person BETWEEN 1000 AND 1010 AND time >= TIMESTAMP '2026-02-20 00:00:00'",
    "all": "SELECT shop, count(*) AS n FROM actions GROUP BY 1",
}


def make(folder: Path, scale: float, rounds: int) -> Workload:
    """Makes the workload.

    Args:
        folder: an empty folder.
        scale: 1 is 5,000,000 rows, about 300 MB.
        rounds: number of deleted persons.
    """
    rows, database = int(5_000_000 * scale), seeded(0.39)
    database.execute(f"CREATE TABLE actions AS {_ACTIONS.format(rows=rows)}")
    write_rows(database, "SELECT * FROM actions", folder / TABLE.rows)
    history = History(folder, database, QUERIES)
    history.measure("bulk")
    for number in range(rounds):
        history.delete("actions", f"person = {(number * 37 + 11) % PERSONS}")
        history.maintain()
    if rounds:
        history.measure("after deletes")
    return history.end(file_bytes(scale, 8e6), (TABLE,))
