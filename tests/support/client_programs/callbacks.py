"""A driver in which a streaming query has started PySpark's callback server before ``attach``; ends with ``all held``.

Its arguments: a folder of its own.
"""

import sys
import threading
from pathlib import Path

import loopback
from pyspark.sql import SparkSession

import sql_ext

folder = Path(sys.argv[1])
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.databricks.delta.snapshotPartitions", "2")
    .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
)
spark = sql_ext.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
source = str(folder / "source")
spark.range(10).write.format("delta").save(source)
arrived, resume = threading.Event(), threading.Event()
batches = []


def receive(rows, number):
    if number == 0:
        arrived.set()
        assert resume.wait(120)
    # The JVM is called back on the connection that this call came on.
    batches.append(rows.count())


query = (
    spark.readStream.format("delta")
    .option("maxBytesPerTrigger", 1)
    .load(source)
    .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    .foreachBatch(receive)
    .start()
)
assert arrived.wait(120)
gateway = spark.sparkContext._gateway
open_server = gateway._callback_server
open_port = open_server.port
early = loopback.connect(open_port)
early.sendall(b"c\np0\ncall\ne\n")
assert early.recv(1000).startswith(b"!x"), "PySpark's server answers everybody"

sql_ext.attach(spark)  # while a batch is at work
server = gateway._callback_server
assert server is not open_server
assert server.port != open_port
for number in range(30):
    early.sendall(f"c\np{number}\n__class__\ne\ng\np{number}\ne\n".encode())
early.shutdown(1)
answers = loopback.heard(early)
assert b"class" not in answers, answers
try:
    loopback.connect(open_port).close()
except ConnectionRefusedError:
    pass
else:
    raise AssertionError("the server without a token still listens")
for command in loopback.COMMANDS:
    assert loopback.answer_to(server.port, command.format(id="p0")) == b""
assert spark.sql("CALL use.help()").count() > 10

resume.set()
query.processAllAvailable()
spark.range(10, 15).write.format("delta").mode("append").save(source)
query.processAllAvailable()
query.stop()
assert sum(batches) == 15, batches

sql_ext.attach(spark)  # again does no harm
assert gateway._callback_server is server
late = []
again = spark.readStream.format("delta").load(source).writeStream.trigger(availableNow=True)
again.foreachBatch(lambda rows, _: late.append(rows.count())).start().awaitTermination()
assert sum(late) == 15, late

# Threads without a connection to Python, while another process floods the port.
ending = threading.Event()
opened = []


def flood():
    while not ending.is_set():
        try:
            opened.append(loopback.connect(server.port))
        except OSError:
            continue
        if len(opened) > 200:
            opened.pop(0).close()


strangers = [threading.Thread(target=flood) for _ in range(2)]
for stranger in strangers:
    stranger.start()
counts, callers = [], []
for _ in range(8):
    callers.append(threading.Thread(target=lambda: counts.append(spark.sql("CALL use.help()").count())))
    callers[-1].start()
for caller in callers:
    caller.join(120)
ending.set()
for stranger in strangers:
    stranger.join(120)
assert len(counts) == 8, counts
assert min(counts) > 10, counts
spark.stop()
print("all held", flush=True)
