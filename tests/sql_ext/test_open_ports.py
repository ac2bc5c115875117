"""What other processes of the machine reach through the ports of an attached driver."""

import os

import loopback
import process_tree
from tables import NUMBERS, numbers

_IDS = [f"p{number}" for number in range(20)] + ["t", "GATEWAY_SERVER", "j", "o1"]


def test_nobody_reaches_python_without_the_token(spark):
    """Attributes, methods, garbage collection: nothing is answered, and calls from SQL go on afterwards."""
    ports = set(process_tree.listening([os.getpid()]))
    # Serves one connection, that of the JVM, and asks it for a token; see docs/security.md.
    ports -= {spark.sparkContext._accumulatorServer.server_address[1]}
    assert ports
    for port in ports:
        for command in loopback.COMMANDS:
            for identity in _IDS if "{id}" in command else [""]:
                assert loopback.answer_to(port, command.format(id=identity)) == b"", (port, command, identity)
    assert spark.sql("CALL use.help()").count() > 10


def test_the_jvm_is_not_kept_out_by_a_flood(spark):
    """A thread of the JVM that has no connection to Python yet gets one."""
    port = spark.sparkContext._gateway._callback_server.port
    flood = [loopback.connect(port) for _ in range(200)]
    try:
        rows = spark._jvm.io.usespark.testing.JvmThread.sql(spark._jsparkSession, "CALL use.help()")
        assert "optimize" in rows
    finally:
        for connection in flood:
            connection.close()


def test_streams_call_python_behind_the_token(spark, new_table):
    """``foreachBatch`` and listeners of queries use the same server."""
    from pyspark.sql.streaming import StreamingQueryListener

    source = new_table(NUMBERS)
    source.append(numbers(spark, 5))
    before = spark.sparkContext._gateway._callback_server
    started, batches = [], []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event):  # noqa: N802  # Spark's name
            started.append(event.id)

        def onQueryProgress(self, event):  # noqa: N802  # Spark's name
            pass

        def onQueryIdle(self, event):  # noqa: N802  # Spark's name
            pass

        def onQueryTerminated(self, event):  # noqa: N802  # Spark's name
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        stream = spark.readStream.table(source.name).writeStream
        query = stream.foreachBatch(lambda rows, _: batches.append(rows.count())).trigger(availableNow=True).start()
        query.awaitTermination()
    finally:
        spark.streams.removeListener(listener)
    assert batches == [5]
    assert len(started) == 1
    assert spark.sparkContext._gateway._callback_server is before
