"""The cost of a command from its start to its end, compared with the start of a bare Spark session with Delta.

``make bench-commands`` runs each command in turn with the bare session and prints CPU seconds, which a busy machine
changes less than elapsed time. A process counts with the JVM that it starts and waits for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sql_ext.class_archive import ClassArchive

BARE = """
from delta import configure_spark_with_delta_pip
from pyspark import SparkContext
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[*]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
configure_spark_with_delta_pip(builder).getOrCreate().stop()
driver = SparkContext._gateway.proc
driver.stdin.close()
driver.wait()
"""
TABLE = """CREATE TABLE delta.`{folder}` (a BIGINT, b DOUBLE) USING delta
TBLPROPERTIES ('use.index.columns' = 'a,b'); INSERT INTO delta.`{folder}` SELECT id, id / 7 FROM range(100000)"""


def main() -> None:
    """Prints the medians of all commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table")
        use("sql", TABLE.format(folder=table))
        store_classes(table)
        bare = [sys.executable, "-c", BARE]
        print(f"{'command':<20} {'CPU seconds':>12} {'elapsed':>8} {'CPU / bare':>11}")
        show("bare session", [measured(bare) for _ in range(runs)], None)
        for name, arguments in {
            "--help": ["--help"],
            "inspect": ["inspect", str(table)],
            "optimize --dry-run": ["optimize", "--table", str(table), "--dry-run"],
            "optimize": ["optimize", "--table", f"{table}-copy"],
        }.items():
            pairs = []
            for _ in range(runs):
                shutil.rmtree(f"{table}-copy", ignore_errors=True)
                shutil.copytree(table, f"{table}-copy")
                pairs.append((measured([sys.executable, "-m", "sql_ext", *arguments]), measured(bare)))
            ratio = statistics.median(own[0] / other[0] for own, other in pairs)
            show(name, [own for own, _ in pairs], ratio)


def store_classes(table: Path) -> None:
    """Runs a command, as the first one on a machine, and waits until its JVM has stored the archive of classes."""
    use("inspect", str(table))
    archive = ClassArchive.of({}, os.environ)
    while archive is not None and archive.options(may_write=False) is None:
        time.sleep(1)


def use(*arguments: str) -> None:
    """Runs a command that is not measured."""
    subprocess.run([sys.executable, "-m", "sql_ext", *arguments], check=True, stdout=subprocess.DEVNULL)


def measured(command: list[str]) -> tuple[float, float]:
    """Runs a command and returns its CPU seconds and the seconds that it took."""
    before, started = os.times(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.monotonic() - started


def show(name: str, runs: list[tuple[float, float]], ratio: float | None) -> None:
    """Prints the medians of a command."""
    cpu, elapsed = (statistics.median(values) for values in zip(*runs, strict=True))
    print(f"{name:<20} {cpu:>12.2f} {elapsed:>8.2f} {'' if ratio is None else f'{ratio:.2f}':>11}", flush=True)


if __name__ == "__main__":
    main()
