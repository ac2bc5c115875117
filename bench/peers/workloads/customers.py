"""A slowly changing table: upserts by key, most of them of keys that were changed before."""

from __future__ import annotations

from pathlib import Path

from peers.workload import Table, Workload
from peers.workloads.history import History, file_bytes, seeded, write_rows

TABLE = Table("customers", "customers.parquet", ("id", "changed"), ("id",))

_CUSTOMERS = """
SELECT {id} AS id, TIMESTAMP '2026-01-01' + to_hours({hour}) AS changed,
    'customer ' || hash({id} + {hour})::VARCHAR AS name,
    ['retail', 'wholesale', 'public', 'partner'][1 + (random() * 3)::INTEGER] AS segment,
    (random() * 200)::INTEGER AS country, md5(random()::VARCHAR) AS address,
    (random() * 1e6)::DECIMAL(12, 2) AS balance, random() < 0.8 AS active
FROM {source}
"""

QUERIES = {
    "key": "SELECT id, changed, name, segment, country, address, balance, active FROM customers WHERE id = 4711",
    "keys": "SELECT id, balance FROM customers WHERE id IN (17, 1700, 17000, 29999)",
    "key range": "SELECT count(*), sum(balance) FROM customers WHERE id BETWEEN 5000 AND 5999",
    "changed lately": "SELECT count(*) FROM customers WHERE changed >= TIMESTAMP '2026-02-01 00:00:00'",
    "segment": "SELECT segment, country, sum(balance) AS b FROM customers GROUP BY 1, 2",
}


def make(folder: Path, scale: float, rounds: int) -> Workload:
    """Makes the workload.

    Args:
        folder: an empty folder.
        scale: 1 is 3,000,000 rows, about 250 MB.
        rounds: number of upserts, each of 0.2 % of the keys.
    """
    rows, database = int(3_000_000 * scale), seeded(0.38)
    loaded = _CUSTOMERS.format(id="range", hour="(random() * 700)::BIGINT", source=f"range({rows})")
    database.execute(f"CREATE TABLE customers AS {loaded}")
    write_rows(database, "SELECT * FROM customers ORDER BY changed", folder / TABLE.rows)
    history = History(folder, database, QUERIES)
    history.measure("bulk")
    for number in range(rounds):
        # Keys of the last tenth are changed most; one in ten is new.
        keys = (
            f"(SELECT DISTINCT ({rows} * (1 - pow(random(), 4)))::BIGINT AS id FROM range({rows // 500}) "
            f"UNION SELECT {rows} + {number} * {rows // 5000} + range FROM range({rows // 5000}))"
        )
        history.upsert("customers", ("id",), _CUSTOMERS.format(id="id", hour=744 + number, source=keys))
        history.maintain()
    if rounds:
        history.measure("upserted")
    return history.end(file_bytes(scale, 8e6), (TABLE,))
