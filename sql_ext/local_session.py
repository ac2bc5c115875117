"""Quiet sessions on one machine, for commands, notebooks and small programs."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.session import set_system_property
from catalog.locations import local_path
from sql_ext.attachment import attach
from sql_ext.class_archive import ClassArchive
from sql_ext.configuration import configure
from sql_ext.driver_process import started_driver
from sql_ext.environment_checks import check_environment
from sql_ext.lifetime import SUBMITTED, Lifetime
from sql_ext.startup_output import held_back
from sql_ext.warehouse import DERBY_LOG, JAVA_OPTIONS_KEY, metastore_log, open_warehouse, warehouse_conf, with_warehouse

LOG_LEVEL_KEY = "spark.log.level"
_WAREHOUSE_KEY = "spark.sql.warehouse.dir"
# At other levels, users want to see the output of Spark.
_QUIET_LEVELS = ("OFF", "ERROR", "FATAL")
_LOCAL = re.compile(r"local(\[.*\])?")
_LOCAL_DEFAULTS = {
    # Spark generates the secret if the driver is the only process. Without it, any process that reaches the ports of
    # the driver and of its block manager can run code in it.
    "spark.authenticate": "true",
    # The web pages have no authentication.
    "spark.ui.killEnabled": "false",
}
# Spark's and Delta's defaults suit a cluster: 200 and 50 tasks for each small shuffle.
_FEWEST_PARTITIONS = 4
_SMALL_TASKS = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")
# Most of the CPU time of a short program is spent on compilation for speed that it never reaches. With the JVM's
# default, space for classes grows by five collections of all objects.
_JVM_OF_SHORT_PROGRAMS = "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m"
_NEW_OBJECTS = "-Xmn256m"
_DRIVER_MEMORY = "spark.driver.memory"
_COLLECTOR = "-XX:+UseSerialGC"
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_SHORT_DEFAULTS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The pages of a session that ends after some seconds are not used.
    "spark.ui.enabled": "false",
}


def session(warehouse: str | Path | None = None, **conf: str) -> SparkSession:
    """Returns an attached session on this machine that prints nothing when it starts.

    It is for notebooks, tests and small programs: few partitions for each shuffle, no web pages, and no ports that
    other machines can reach. Use ``configure`` and ``attach`` for a session on a cluster. If this process has a
    session already, that one is returned and attached.

    Args:
        warehouse: folder of tables and their metastore, which is created if it is missing. Without it, table names
            exist only as long as the session.
        **conf: settings of Spark, which override these defaults: ``session(**{"spark.driver.memory": "4g"})``.

    Raises:
        InvalidArgumentError: a session exists, and its warehouse or a setting that cannot change is another one.
        UseError: the warehouse cannot be used, for example because another process has it open.
    """
    present = SparkSession.getActiveSession()
    folder = None if warehouse is None else Path(warehouse)
    if present is None:
        settings = {"spark.ui.enabled": "false", **conf}
        spark = new_session(settings, conf.get(LOG_LEVEL_KEY, "ERROR").upper(), folder)
    else:
        _refuse_other_settings(present, folder, conf)
        spark = present
        for key, value in conf.items():
            if spark.conf.get(key, None) != value:
                spark.conf.set(key, value)
    attach(spark)
    return spark


def _refuse_other_settings(present: SparkSession, folder: Path | None, conf: Mapping[str, str]) -> None:
    """Raises an error if an existing session cannot be made the one that the caller describes."""
    if folder is not None:
        place, configured = warehouse_conf(folder)[_WAREHOUSE_KEY], str(present.conf.get(_WAREHOUSE_KEY, ""))
        if (local_path(configured) or configured).rstrip("/") != place.rstrip("/"):
            raise InvalidArgumentError.of("warehouse", str(folder), "the warehouse of the existing session, or none")
    for key, value in conf.items():
        if present.conf.get(key, None) != value and not present.conf.isModifiable(key):
            raise InvalidArgumentError.of(key, value, "a setting that an existing session can change")


def new_session(
    conf: Mapping[str, str], log_level: str, warehouse: Path | None = None, lifetime: Lifetime = Lifetime.PROGRAM
) -> SparkSession:
    """Starts a session without attaching it.

    Args:
        conf: settings of Spark, which override the defaults of USE.
        log_level: level of Spark's log.
        warehouse: folder of tables and their metastore; None = Spark's settings apply.
        lifetime: what the session is optimized for.

    Raises:
        UseError: the warehouse cannot be used, or Spark cannot start on this machine.
    """
    starts_jvm = started_driver() is None and SUBMITTED not in os.environ
    if starts_jvm:
        check_environment(os.environ)
    # Errors show no place in Python code, and recording it takes PySpark thousands of calls of the JVM.
    settings = {"spark.python.sql.dataFrameDebugging.enabled": "false", **conf}
    is_submitted = SUBMITTED in os.environ
    if not is_submitted and lifetime is not Lifetime.SERVER:
        # No command waits for a JVM that writes an archive, so it must not keep a warehouse open or print.
        may_write = lifetime is Lifetime.SHORT and warehouse is None and log_level in _QUIET_LEVELS
        settings = with_archived_classes(settings, os.environ, may_write=may_write)
    if warehouse is not None:
        open_warehouse(warehouse)
        settings = with_warehouse(settings, warehouse)
    if not is_submitted:
        settings = with_private_ports(settings)
        if lifetime is not Lifetime.SERVER:
            settings = with_small_tasks(settings, os.cpu_count() or 1)
        if lifetime is Lifetime.SHORT:
            settings = with_quick_start(settings, os.environ)
    # pyspark logs the JVM's stack trace of each error that it raises. Callers show errors as one line.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder
    if not is_submitted:
        # Spark's progress bar would overwrite the one of USE.
        builder = builder.appName("use-spark").master("local[*]").config("spark.ui.showConsoleProgress", "false")
    for key, value in settings.items():
        builder = builder.config(key, value)
    if not is_submitted:
        builder = configure(builder)
    with held_back() if starts_jvm and log_level in _QUIET_LEVELS else nullcontext():
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel(log_level)
    if warehouse is not None:
        # Under spark-submit the JVM already runs, so its options have no effect.
        set_system_property(spark, DERBY_LOG, str(metastore_log(warehouse)))
    return spark


def with_private_ports(settings: dict[str, str]) -> dict[str, str]:
    """Limits Spark's ports to localhost and protects them by a secret if the driver is the only process.

    Args:
        settings: settings of the session, which take precedence, as does SPARK_LOCAL_IP in the environment.
    """
    if not _is_local(settings):
        return settings
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {**_LOCAL_DEFAULTS, **settings}


def with_small_tasks(settings: dict[str, str], cores: int) -> dict[str, str]:
    """Adds a number of partitions that suits one machine, if the driver is the only process.

    Args:
        settings: settings of the session, which take precedence.
        cores: cores of the machine.
    """
    if not _is_local(settings):
        return settings
    return {**dict.fromkeys(_SMALL_TASKS, str(max(_FEWEST_PARTITIONS, cores))), **settings}


def with_archived_classes(
    settings: dict[str, str], environment: Mapping[str, str], *, may_write: bool
) -> dict[str, str]:
    """Lets the JVM load its classes from an archive, if this machine has one, or write the archive when it ends.

    Args:
        settings: settings of the session, which take precedence.
        environment: variables.
        may_write: whether the JVM may write the archive.
    """
    archive = ClassArchive.of(settings, environment) if _is_local(settings) else None
    options = None if archive is None else archive.options(may_write=may_write)
    return settings if options is None else {**settings, JAVA_OPTIONS_KEY: options}


def with_quick_start(settings: dict[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Adds settings of the JVM and of Spark that save CPU time in a session that ends after a few small jobs.

    Args:
        settings: settings of the session, which take precedence.
        environment: variables, which may have options of the JVM.
    """
    if not _is_local(settings):
        return settings
    own = settings.get(JAVA_OPTIONS_KEY, "")
    others = " ".join([own, *(environment.get(name, "") for name in _JAVA_VARIABLES)])
    options = [_JVM_OF_SHORT_PROGRAMS]
    if "GC" not in others:  # the JVM refuses two collectors
        options.append(_COLLECTOR)
    if _DRIVER_MEMORY not in settings:
        options.append(_NEW_OBJECTS)
    if own:
        options.append(own)
    return {**_SHORT_DEFAULTS, **settings, JAVA_OPTIONS_KEY: " ".join(options)}


def _is_local(settings: Mapping[str, str]) -> bool:
    return _LOCAL.fullmatch(settings.get("spark.master", "local")) is not None
