"""A Spark Connect client: requests and answers are JSON, one a line."""

import json
import os
import sys
import threading


def answer(**what) -> None:
    print(json.dumps(what, default=str), flush=True)


def failed(error) -> None:
    state = getattr(error, "getSqlState", lambda: None)()
    answer(error=str(error), sql_state=state)


def run(request) -> None:
    try:
        rows = spark.sql(request["sql"], args=request["parameters"] or None).collect()
        answer(rows=[list(row) for row in rows])
    except Exception as error:  # noqa: BLE001  # the other end tells the test
        failed(error)


try:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(os.environ["URL"]).getOrCreate()
    spark.sql("SELECT 1").collect()
except Exception as error:  # noqa: BLE001  # the other end tells the test
    failed(error)
    sys.exit(1)
answer(rows=[])
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "cancel":
        spark.interruptAll()
    else:
        threading.Thread(target=run, args=(request,)).start()
spark.stop()
