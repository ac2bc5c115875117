"""Questions of the JVM's own threads, as a server's statements ask them: the session, the job group, interrupts, and
the threads that they leave."""

import threading

import pytest
from py4j.java_gateway import JavaObject
from tables import NUMBERS, numbers

import sql_ext
from catalog.jvm.local_rows import local_data_frame
from catalog.jvm.session_threads import in_threads
from procedures.process.application import application


@pytest.fixture
def threads(spark):
    return spark._jvm.io.usespark.testing.JvmThread


@pytest.fixture
def told(spark):
    """What a procedure of ours sees when it is called, and a way to hold it there."""
    seen = []

    def run(call):
        seen.append(
            {
                "python": threading.current_thread().ident,
                "jvm": spark._jvm.java.lang.Thread.currentThread().getName(),
                "group": call.spark.sparkContext.getLocalProperty("spark.jobGroup.id"),
                "setting": call.spark.conf.get("spark.qbeast.use.test", "none"),
                "interrupted": spark._jvm.java.lang.Thread.currentThread().isInterrupted(),
            }
        )
        return call.spark.range(1).selectExpr("int(id) AS n")

    sql_ext.register_procedure(spark, sql_ext.Procedure("seen", "For tests.", (), "n int", run))
    yield seen
    application().own_procedures.pop("seen", None)


def test_session_and_job_group_come_along(spark, threads, told):
    own = spark.newSession()
    own.conf.set("spark.qbeast.use.test", "mine")
    assert threads.start(own._jsparkSession, "CALL use.seen()", "my group").rows() == "[[0]]"
    assert threads.sql(spark._jsparkSession, "CALL use.seen()") == "[[0]]"
    assert [(s["group"], s["setting"]) for s in told] == [("my group", "mine"), (None, "none")]
    assert all(s["jvm"].startswith("use-python-") for s in told)


def test_a_thread_does_not_keep_the_session_of_its_creator(spark, threads):
    spark._jsparkSession.setActiveSession(spark._jsparkSession)
    task = threads.hasSession()
    spark._jvm.org.apache.spark.sql.usespark.CallbackThread(task, "for tests").start()
    assert not task.get()


def test_work_in_several_threads_has_the_rights_of_the_caller(spark, threads):
    """The connections of new threads of Python would have those of the process."""
    users = []

    def run(call):
        of_hadoop = spark._jvm.org.apache.hadoop.security.UserGroupInformation
        users.append(in_threads(call.spark, lambda _: of_hadoop.getCurrentUser().getShortUserName(), [1, 2, 3]))
        return call.spark.range(1).selectExpr("int(id) AS n")

    sql_ext.register_procedure(spark, sql_ext.Procedure("users", "For tests.", (), "n int", run))
    try:
        threads.sqlAs("alice", spark._jsparkSession, "CALL use.users()")
        threads.sql(spark._jsparkSession, "CALL use.users()")
    finally:
        application().own_procedures.pop("users", None)
    own = spark._jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser().getShortUserName()
    assert users == [["alice"] * 3, [own] * 3]


def test_threads_are_used_again(spark, threads, told):
    for _ in range(20):
        threads.sql(spark._jsparkSession, "CALL use.seen()")
    assert len({s["jvm"] for s in told}) <= 2
    assert len({s["python"] for s in told}) <= 2


def test_long_questions_do_not_wait_for_acknowledgements(spark, told):
    # Py4J writes 8 KiB at a time; by default, the second part waits until the first is acknowledged, 40 ms later.
    spark.sql("CALL use.seen()").collect()
    client = JavaObject("GATEWAY_SERVER", spark.sparkContext._gateway._gateway_client).getCallbackClient()
    assert client.getPerThreadConnection().getSocket().getTcpNoDelay()


def test_a_thread_that_serves_python_asks_itself(spark, told):
    own = spark._jvm.java.lang.Thread.currentThread().getName()
    spark.sql("CALL use.seen()").collect()
    assert told[0]["jvm"] == own


@pytest.mark.slow
def test_writes_see_the_transaction_that_they_are_part_of(spark, threads, new_table):
    """Delta looks for it in its thread, and what it reads there is what the commit is checked against."""
    table = new_table(NUMBERS, index="x,y", properties={"use.index.onWrite": "true"})
    table.append(numbers(spark, 50)).index()
    rows = table.checksum()
    statement = f"INSERT OVERWRITE {table.name} SELECT * FROM {table.name}"
    threads.sql(spark._jsparkSession, statement)
    assert table.checksum() == rows
    assert table.unindexed == []
    threads.sql(spark._jsparkSession, f"INSERT INTO {table.name} SELECT * FROM {table.name}")
    assert table.data.count() == 100


def test_a_question_that_leads_to_another(spark, threads, told):
    def outer(call):
        return call.spark.sql("CALL use.seen()")

    sql_ext.register_procedure(spark, sql_ext.Procedure("outer_one", "For tests.", (), "n int", outer))
    try:
        assert threads.sql(spark._jsparkSession, "CALL use.outer_one()") == "[[0]]"
    finally:
        application().own_procedures.pop("outer_one", None)


def test_a_report_is_returned_by_an_interrupted_thread(spark, threads):
    """Spark reads the rows of a report from a file, which an interrupted thread cannot do."""

    def run(call):
        spark._jvm.java.lang.Thread.currentThread().interrupt()
        return local_data_frame(call.spark, [(7,)], "n int")

    sql_ext.register_procedure(spark, sql_ext.Procedure("late", "For tests.", (), "n int", run))
    try:
        assert threads.sql(spark._jsparkSession, "CALL use.late()") == "[[7]]"
    finally:
        application().own_procedures.pop("late", None)


@pytest.mark.slow
def test_an_interrupt_ends_an_optimization_between_groups(spark, threads, new_table):
    """As a JDBC client's cancel does it: the thread of the statement is interrupted, and its job group cancelled."""
    table = new_table(NUMBERS, index="x,y")
    for number in range(4):
        table.append(numbers(spark, 20, start=20 * number))
    rows = table.checksum()
    statement = f"CALL use.optimize('{table.name}', options => map('batch_bytes', '1'), bytes_per_iter => 1)"
    thread = threads.start(spark._jsparkSession, statement, "statement")
    _until(
        lambda: application().runs.live(lambda run: run.table.endswith(table.name.split(".")[-1]) and run.committed > 0)
    )
    thread.interrupt()
    spark.sparkContext.cancelJobGroup("statement")
    report = thread.rows()
    assert thread.endsInterrupted()
    assert "INTERRUPTED" in report
    assert "committed" in report
    assert table.checksum() == rows
    assert table.unindexed
    # The next one on the same thread of ours is not interrupted.
    assert "committed" in threads.sql(spark._jsparkSession, f"CALL use.optimize('{table.name}')")
    assert table.unindexed == []


def _until(happened):
    waited = threading.Event()
    for _ in range(600):
        if happened():
            return
        waited.wait(0.05)
    raise AssertionError("nothing happened")
