"""A consolidation plan that two spark-submit processes execute at once.

    python examples/plan_in_processes.py --folder /tmp/plan-demo

The folder must not exist. The processes run on this machine; on a cluster, give ``--master``, and a folder that all
hosts see.
"""

from __future__ import annotations

import argparse
import importlib.resources
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import sql_ext

PAIRS = 6


def filled(spark: SparkSession, path: str) -> None:
    """Pairs of files with the same range of values."""
    for first in range(0, PAIRS * 1000, 1000):
        for offset in (0, 1):
            rows = spark.range(first + offset, first + 1000, 2, 1)
            rows.write.format("delta").mode("append").save(path)


def submitted(path: str, plan_id: str, master: str, conf: list[str]) -> subprocess.Popen[str]:
    """A process that rewrites groups of the plan until none is left."""
    settings = [f"--conf={key}={value}" for key, value in sql_ext.spark_conf().items()]
    main = str(importlib.resources.files(sql_ext) / "__main__.py")
    own = [f"--conf={setting}" for setting in conf]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    command = [submit, f"--master={master}", *settings, *own, main]
    return subprocess.Popen(
        [*command, "optimize", f"--table={path}", f"--plan={plan_id}", "--json", "--no-progress"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def main() -> None:
    """Makes a table and a plan, executes it in two processes, and shows which process rewrote which group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--master", default="local[1]")
    parser.add_argument("--conf", action="append", default=[])
    given = parser.parse_args()
    path = str(given.folder / "table")
    builder: SparkSession.Builder = SparkSession.builder
    spark = sql_ext.configure(builder.master("local[2]")).getOrCreate()
    sql_ext.attach(spark)
    filled(spark, path)
    before = spark.read.format("delta").load(path).selectExpr("count(*)", "sum(xxhash64(id) % 1000003)").collect()
    table = sql_ext.table(spark, path)
    groups = table.maintenance.store_consolidation_plan(columns="id", max_file_bytes=8_000)
    plan_id = groups[0].plan_id
    print(f"plan {plan_id} has {len(groups)} groups")
    processes = [submitted(path, str(plan_id), given.master, given.conf) for _ in range(2)]
    printed = [process.communicate()[0] for process in processes]
    codes = [process.returncode for process in processes]
    done = table.inspect.plans().collect()
    print(f"exit codes {codes}; groups by process: {dict(Counter(row.holder for row in done))}")
    after = spark.read.format("delta").load(path).selectExpr("count(*)", "sum(xxhash64(id) % 1000003)").collect()
    # A process that found no group left ends with 3.
    if {row.state for row in done} != {"done"} or before != after or not set(codes) <= {0, 3}:
        print(*printed, sep="\n")
        sys.exit("the plan was not executed as it should be")
    print("every group is done, and the rows are the same")


if __name__ == "__main__":
    main()
