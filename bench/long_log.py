"""The cost of loading a table with 20,000 commits, before and after its log is consolidated.

Each commit adds a file with statistics of five columns. The log is written as JSON, since only the log is read here.

* ``commits only``: no writer has written a checkpoint, as with writers that write none.
* ``use.consolidate_log``: the same log afterwards.
* ``checkpoint of Delta``: the same log after Delta's own checkpoint.
* ``9 commits later``: a table of which Delta writes a checkpoint every 10 commits, just before the next one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import sql_ext
from catalog.jvm.session import work_session
from catalog.table.managed_table import ManagedTable

_COLUMNS = ("id", "price", "city", "time", "day")
_START = 1_700_000_000_000


def _statistics(number: int) -> str:
    low = {"id": number * 100, "price": 1.5, "city": "Aachen", "time": "2024-01-01T00:00:00.000Z", "day": "2024-01-01"}
    high = {**low, "id": number * 100 + 99, "price": 99.5, "city": "Zwickau"}
    nulls = dict.fromkeys(_COLUMNS, 0)
    return json.dumps({"numRecords": 100, "minValues": low, "maxValues": high, "nullCount": nulls})


def _commit(number: int) -> list[dict[str, object]]:
    time_of_commit = _START + number * 1000
    info = {"timestamp": time_of_commit, "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    file = {
        "path": f"part-{number:05d}-00000000-0000-0000-0000-{number:012d}-c000.snappy.parquet",
        "partitionValues": {},
        "size": 50_000,
        "modificationTime": time_of_commit,
        "dataChange": True,
        "stats": _statistics(number),
    }
    return [{"commitInfo": info}, {"add": file}]


def _first(schema: str) -> list[dict[str, object]]:
    metadata = {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": _START,
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def write_log(folder: Path, first: int, last: int, schema: str) -> None:
    """Writes the commits of some versions.

    Args:
        folder: the table.
        first: first version.
        last: last version.
        schema: of the table, in JSON.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for number in range(first, last + 1):
        actions = (_first(schema) if number == 0 else []) + _commit(number)
        (log / f"{number:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def _load(spark: SparkSession, folder: Path) -> str:
    table = ManagedTable.find(spark, str(folder))
    loads = [table.handle.versions(work_session(spark)).load() for _ in range(3)]
    best = min(loads, key=lambda load: load.milliseconds)
    return f"{best.milliseconds / 1000:8.2f} {best.files:8d} {best.bytes / 1e6:8.1f}"


def _delta_checkpoint(spark: SparkSession, folder: Path) -> None:
    # The driver's view of Delta, which has no other way in Python.
    delta_log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    delta_log.forTable(spark._jsparkSession, str(folder)).checkpoint()


def _timed(work: object) -> float:
    started = time.monotonic()
    work()  # type: ignore[operator]
    return time.monotonic() - started


def main() -> None:
    """Prints a line per state of the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=20_000)
    count = parser.parse_args().commits
    folder = Path(tempfile.mkdtemp(prefix="use-long-log-"))
    builder = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g").config("spark.ui.enabled", "false")
    )
    spark = sql_ext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    schema = spark.sql(
        "SELECT 1L AS id, 1D AS price, '' AS city, current_timestamp() AS time, current_date() AS day"
    ).schema
    try:
        write_log(folder / "ours", 0, count - 1, schema.json())
        for name in ("delta", "later"):
            shutil.copytree(folder / "ours", folder / name)
        _load(spark, folder / "later")
        print(f"{'state of the log':24} {'load s':>8} {'files':>8} {'MB':>8} {'written in s':>13}")
        print(f"{'commits only':24} {_load(spark, folder / 'ours')}")
        ours = _timed(lambda: spark.sql(f"CALL use.consolidate_log('{folder}/ours')").collect())
        print(f"{'use.consolidate_log':24} {_load(spark, folder / 'ours')} {ours:13.1f}")
        delta = _timed(lambda: _delta_checkpoint(spark, folder / "delta"))
        print(f"{'checkpoint of Delta':24} {_load(spark, folder / 'delta')} {delta:13.1f}")
        _delta_checkpoint(spark, folder / "later")
        write_log(folder / "later", count, count + 8, schema.json())
        print(f"{'9 commits later':24} {_load(spark, folder / 'later')}")
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
