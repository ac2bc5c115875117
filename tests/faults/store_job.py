"""Operations on a table in a bucket while a fault is on, and once more after it; prints what it saw as JSON.

``python store_job.py ENDPOINT BUCKET TABLE KIND FOLDER``; see ``store.py``.
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable

from object_store_job import session
from pyspark.sql import SparkSession

import sql_ext
from catalog.clock import SystemClock
from catalog.jvm.java_errors import known_error
from catalog.table.managed_table import ManagedTable
from faults.templates import rows

_STEP = 50
# The client gives up early, so that the product sees errors.
_SETTINGS = {
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    "spark.hadoop.fs.s3a.retry.limit": "1",
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "1",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
    "spark.hadoop.fs.s3a.connection.timeout": "10s",
    "spark.sql.shuffle.partitions": "1",
}


def _switch(endpoint: str, kind: str) -> None:
    urllib.request.urlopen(f"{endpoint}/_faults/{urllib.parse.quote(kind)}").close()


def main() -> None:
    """Prints a line of JSON."""
    endpoint, bucket, name, kind, folder = sys.argv[1:]
    spark = session(endpoint, folder, _SETTINGS)
    path = f"s3a://{bucket}/{name}"
    table = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, x DOUBLE, y INT) USING delta "
        "TBLPROPERTIES ('use.index.columns' = 'x,y', 'use.index.cubeSize' = '20')"
    )
    for number in range(4):
        _append(spark, path, number)
    errors: dict[str, str] = {}
    unclear: dict[str, str] = {}
    appended: set[int] = set()
    _switch(endpoint, kind)
    for lap in range(3):
        for operation, work in _operations(spark, path, lap).items():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the parent judges it
                known = known_error(error)
                errors[f"{operation} on S3"] = known.code
                if known.code == "USE_INTERNAL" or not known.message.strip():
                    unclear[operation] = repr(error)[:300]
                continue
            errors.setdefault(f"{operation} on S3", "")
            if operation == "append":
                appended.add(lap)
    _switch(endpoint, "")
    recovery = _recovered(spark, path)
    # An append that failed may be there.
    certain = [n for number in (0, 1, 2, 3, *(10 + lap for lap in appended)) for n in _ids(number)]
    uncertain = [lap for lap in range(3) if lap not in appended]
    ids = []
    for mask in range(2 ** len(uncertain)):
        more = [n for i, lap in enumerate(uncertain) if mask >> i & 1 for n in _ids(10 + lap)]
        ids.append(sorted([*certain, *more]))
    print(json.dumps({"errors": errors, "unclear": unclear, "ids": ids, "recovery": recovery}))
    spark.stop()


def _ids(number: int) -> range:
    return range(number * _STEP, number * _STEP + _STEP)


def _append(spark: SparkSession, path: str, number: int) -> None:
    rows(spark, number * _STEP, _STEP).write.format("delta").mode("append").save(path)


def _operations(spark: SparkSession, path: str, lap: int) -> dict[str, Callable[[], object]]:
    def call(procedure: str, **arguments: object) -> Callable[[], object]:
        return lambda: sql_ext.call(spark, procedure, table=path, **arguments).collect()

    return {
        "append": lambda: _append(spark, path, 10 + lap),
        "optimize": call("optimize"),
        "protect": call("protect", version=2, name=f"p{lap}"),
        "store plan": call("plan", columns="x", store=True),
        "consolidate log": call("consolidate_log"),
        "unprotect": call("unprotect", name=f"p{lap}"),
        "vacuum": call("vacuum", retention_hours=0.0, force=True),
        "purge": call("purge", older_than="1 second", force=True),
    }


def _recovered(spark: SparkSession, path: str) -> str:
    """The next run without a fault, and a vacuum; '' if both succeed."""
    real = SystemClock.now
    SystemClock.now = lambda clock: real(clock) + 60_000  # type: ignore[method-assign]
    try:
        states = {row.state for row in sql_ext.call(spark, "optimize", table=path).collect()}
        left = ManagedTable.find(spark, path).list_state("protected")
        for file in left:
            sql_ext.call(spark, "unprotect", table=path, name=file.removesuffix(".json"))
        sql_ext.call(spark, "vacuum", table=path, retention_hours=0.0, force=True).collect()
    except Exception as error:  # noqa: BLE001 - the parent judges it
        return f"{type(error).__name__}: {error}"[:500]
    return "" if states <= {"committed", "skipped"} else f"optimize ended with {states}"


if __name__ == "__main__":
    main()
