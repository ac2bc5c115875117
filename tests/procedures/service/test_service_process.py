"""The service across processes: one that alters and appends without our extension, and the end of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fake_clock import FakeClock
from tables import NUMBERS, numbers

from procedures.service.service import Service

SUPPORT = Path(__file__).resolve().parents[2] / "support"

# A session as anybody makes it: Delta's extension and catalog, and nothing of ours.
PLAIN = """
    import sys
    from pathlib import Path
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    folder, path = Path({folder!r}), {path!r}
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.warehouse.dir", str(folder / "plain"))
        .config("spark.ui.enabled", "false")
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    for line in sys.stdin:
        spark.sql(line.strip().replace("PLACE", f"delta.`{{path}}`"))
        print("done", flush=True)
"""


@pytest.mark.slow
def test_another_process_alters_appends_and_unsets(spark, new_table, tmp_path, set_conf):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 300))
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(PLAIN).format(folder=str(tmp_path), path=str(table.path)))
    set_conf("spark.qbeast.use.service.enabled", "true")
    clock = FakeClock()
    service = Service(spark, clock=clock)
    process = subprocess.Popen(
        [sys.executable, str(child)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def elsewhere(statement):
        process.stdin.write(statement + "\n")
        process.stdin.flush()
        assert any(line.strip() == "done" for line in iter(process.stdout.readline, ""))

    def intervals(count):
        for _ in range(count):
            clock.go_on(600_000)
            service.tick()
            assert service.join(300)

    append = "INSERT INTO PLACE VALUES (9001, 0.5D, 7, 's1')"
    try:
        intervals(1)
        assert table.unindexed
        elsewhere("ALTER TABLE PLACE SET TBLPROPERTIES ('use.optimization.autoOptimize.enabled'='true')")
        elsewhere(append)
        intervals(2)
        assert not table.unindexed
        assert table.data.count() == 301
        elsewhere("ALTER TABLE PLACE UNSET TBLPROPERTIES ('use.optimization.autoOptimize.enabled')")
        elsewhere(append)
        intervals(2)
        assert table.unindexed
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
        service.stop()


ENDING = """
    import sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from pyspark.sql import SparkSession
    import sessions
    from procedures.process.application import application
    from tables import NUMBERS, create, numbers

    made = SparkSession.Builder.getOrCreate

    def with_service(builder):
        builder.config("spark.qbeast.use.service.enabled", "true")
        builder.config("spark.qbeast.use.listener-interval", "1s")
        return made(builder)

    def wait(condition):
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.05)

    SparkSession.Builder.getOrCreate = with_service
    for name in ("t", "u"):
        spark = sessions.start_session(Path({folder!r}))
        context = spark.sparkContext
        pools = context._jsc.sc()
        assert pools.getPoolForName("default").get().weight() > pools.getPoolForName("use").get().weight()
        table = create(spark, f"default.{{name}}", NUMBERS, index="x,y").append(numbers(spark, 20000))
        table.sql("ALTER TABLE {{t}} SET TBLPROPERTIES ('use.optimization.type'='UnindexedFiles')")
        wait(lambda: application().automations.all() and application().runs.live())
        print("running", name, file=sys.stdout, flush=True)
        if name == "t":
            # In the middle of a run; the next session has a service of its own.
            spark.stop()
            wait(lambda: not application().runs.live())
    # The interpreter ends in the middle of a run.
"""


@pytest.mark.slow
def test_the_end_of_spark_and_of_the_interpreter_is_quiet(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(ENDING).format(support=str(SUPPORT), folder=str(tmp_path)))
    done = subprocess.run(
        [sys.executable, str(child)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(SUPPORT.parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("running")[1:] == [" t\n", " u\n"]
    for noise in ("Traceback", "Py4J", "Exception in thread", "Fatal Python error"):
        assert noise not in done.stderr, done.stderr
