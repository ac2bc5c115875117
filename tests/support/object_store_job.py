"""Appends, optimizes, samples, checks and vacuums a table in an S3 bucket; prints what it saw as JSON.

``python object_store_job.py ENDPOINT BUCKET FOLDER``. The folder is for what Spark keeps on the machine.
"""

import json
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import sql_ext


def hadoop_version():
    """The version of Hadoop in the installed Spark, which that of the connector must equal."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def session(endpoint, folder, more=()):
    settings = {
        "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{hadoop_version()}",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": "test",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.qbeast.use.service.enabled": "false",
        **dict(more),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = sql_ext.configure(builder).getOrCreate()
    sql_ext.attach(spark)
    return spark


def _checked(spark, table):
    return sql_ext.call(spark, "check", table=table, deep=True).collect()


def main():
    endpoint, bucket, folder = sys.argv[1:]
    spark = session(endpoint, folder)
    path = f"s3a://{bucket}/lake/flights"
    table = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, distance BIGINT) USING delta "
        "TBLPROPERTIES ('use.index.columns' = 'id,distance', 'use.index.targetFileBytes' = '50000')"
    )
    states = []
    for number in range(3):
        rows = spark.range(number * 20_000, (number + 1) * 20_000).selectExpr("id", "id * 7919 % 2500 AS distance")
        rows.coalesce(1).write.format("delta").mode("append").save(path)
        states += [row.state for row in sql_ext.call(spark, "optimize", table=table).collect()]
    data = spark.read.format("delta").load(path)
    (scan,) = sql_ext.read_report(data.sample(0.01)).scans
    seen = {
        "states": states,
        "rows": data.count(),
        "sum": data.selectExpr("sum(id)").first()[0],
        "sample": data.sample(0.01).count(),
        "sample_files": scan.kept_files,
        "files": scan.total_files,
        "problems": [row.check for row in _checked(spark, table) if row.severity == "error"],
    }
    # What the rewrites have replaced is deleted, and what the table needs stays.
    vacuumed = sql_ext.call(spark, "vacuum", table=table, retention_hours=0.0, force=True).collect()
    seen["deleted"] = sum(row.files for row in vacuumed if row.state == "deleted" and row.reason != "EMPTY_FOLDER")
    seen["rows_after_vacuum"] = spark.read.format("delta").load(path).count()
    print(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main()
