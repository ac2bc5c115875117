"""The Spark session of the tests."""

import fcntl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import sql_ext

TEST_JAR = Path(__file__).resolve().parents[2] / "jars-build" / "target" / "use-shim-test.jar"
CATALOGS_JAR = TEST_JAR.with_name("use-shim-test-catalogs.jar")
_JVM = "-Duser.timezone=UTC -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -XX:MetaspaceSize=512m -Xmn600m"
# A test session lives for minutes: the optimizing compiler would take more time than it saves.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"


def start_session(folder: Path, *, short_lived: bool = True, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Starts a small attached session that writes below ``folder`` only; ``settings`` come on top of the usual ones."""
    jvm = f"{_JVM} {_SHORT_LIVED}" if short_lived else _JVM
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.driver.extraJavaOptions", f"-Dderby.stream.error.file={folder}/derby.log {jvm}")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.memory", "2g")
        # The launcher looks at files before it knows the jars of the session.
        .config("spark.driver.extraClassPath", str(TEST_JAR))
        .config("spark.jars", f"{TEST_JAR},{CATALOGS_JAR}")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "4")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        # Hundreds of small queries: compiling each, or adapting it to its size, takes longer than running it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.sql.artifact.isolation.enabled", "false")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
        .config("spark.hadoop.fs.file.impl", "io.usespark.testing.ForklessFileSystem")
        .config("spark.hadoop.fs.AbstractFileSystem.file.impl", "io.usespark.testing.ForklessFileSystem$Abstract")
        .config("spark.hadoop.fs.deny.impl", "io.usespark.testing.DenyingFileSystem")
        .config("spark.delta.logStore.deny.impl", "io.delta.storage.LocalLogStore")
        # Their tables are so small that every answer would be exact.
        .config("spark.qbeast.use.approximate.bytes", "1")
        # Tests make a service of their own, with a clock of their own.
        .config("spark.qbeast.use.service.enabled", "false")
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    with _alone_with_the_download():
        session = sql_ext.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(session)
    return session


@contextmanager
def _alone_with_the_download() -> Iterator[None]:
    """Lets one process at a time download Delta: Ivy's cache is not made for two."""
    if any((Path.home() / ".ivy2.5.2" / "jars").glob("io.delta_delta-spark_*.jar")):
        yield
        return
    with (Path(tempfile.gettempdir()) / "use-tests-download.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
