"""An attached driver that serves Spark Connect: prints its port, and ends with its standard input."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import sql_ext


def main(folder: Path) -> None:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.qbeast.use.service.enabled", "false")
        .config("spark.connect.grpc.binding.port", "0")
    )
    spark = sql_ext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    calls = []

    def count_calls(call: sql_ext.Call):
        calls.append(1)
        return call.spark.createDataFrame([(len(calls),)], "n int")

    sql_ext.register_procedure(spark, sql_ext.Procedure("count_calls", "For tests.", (), "n int", count_calls))
    services = spark._jvm.org.apache.spark.sql.connect.service
    services.SparkConnectService.start(spark.sparkContext._jsc.sc())
    port = getattr(getattr(services, "SparkConnectService$"), "MODULE$").localPort()
    print(port, flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
