"""Readings of sensors: appends in the order of time, with some that arrive days late."""

from __future__ import annotations

from pathlib import Path

from peers.workload import Table, Workload
from peers.workloads.history import History, file_bytes, seeded, write_rows

TABLE = Table("readings", "readings.parquet", ("time", "sensor"))
DAYS = 60

# Sensors report once in a while; a twentieth of the rows is up to three days late.
_READINGS = """
SELECT TIMESTAMP '2026-01-01' + to_microseconds((({first} + {days} * random()
        - CASE WHEN random() < {late} THEN 3 * random() ELSE 0 END) * 86400e6)::BIGINT) AS time,
    (random() * 2000)::INTEGER AS sensor, (20 + 10 * random())::DOUBLE AS temperature,
    (random() * 100)::DECIMAL(6, 2) AS humidity, (random() * 3)::INTEGER AS status,
    'v' || (random() * 4)::INTEGER AS firmware
FROM range({rows})
"""


def _between(first: str, last: str) -> str:
    return f"time >= TIMESTAMP '{first} 00:00:00' AND time < TIMESTAMP '{last} 00:00:00'"


QUERIES = {
    "newest day": f"SELECT avg(temperature), count(*) FROM readings WHERE {_between('2026-03-01', '2026-03-03')}",
    "sensor, month": "SELECT time, temperature FROM readings "
    f"WHERE sensor = 777 AND {_between('2026-01-10', '2026-02-10')}",
    "sensor, ever": "SELECT count(*), max(humidity) FROM readings WHERE sensor = 42",
    "some sensors, a day": "SELECT sensor, avg(temperature) AS t FROM readings "
    f"WHERE sensor < 40 AND {_between('2026-02-27', '2026-02-28')} GROUP BY 1",
    "a week": f"SELECT status, count(*) AS n FROM readings WHERE {_between('2026-02-20', '2026-02-27')} GROUP BY 1",
    "all": "SELECT firmware, avg(humidity) AS h FROM readings GROUP BY 1",
}


def make(folder: Path, scale: float, rounds: int) -> Workload:
    """Makes the workload.

    Args:
        folder: an empty folder.
        scale: 1 is 10,000,000 rows, about 200 MB.
        rounds: number of appends, each of a tenth of a day.
    """
    rows, database = int(10_000_000 * scale), seeded(0.37)
    loaded = _READINGS.format(first=0, days=DAYS, late=0, rows=rows)
    database.execute(f"CREATE TABLE readings AS {loaded} ORDER BY time")
    write_rows(database, "SELECT * FROM readings", folder / TABLE.rows)
    history = History(folder, database, QUERIES)
    history.measure("bulk")
    for number in range(rounds):
        history.append(
            "readings", _READINGS.format(first=DAYS + number / 10, days=0.1, late=0.05, rows=rows // DAYS // 10)
        )
        history.maintain()
    if rounds:
        history.measure("with late data")
    return history.end(file_bytes(scale, 8e6), (TABLE,))
