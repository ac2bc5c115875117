"""Attaching Python to a Spark application, and calling and registering procedures."""

from __future__ import annotations

import atexit
import os
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import NotAttachedError, NotSupportedError
from catalog.jvm.python_handler import PythonHandler
from catalog.jvm.session import give_jars_to_executors, has_jvm, is_stopped
from catalog.jvm.shim_bridge import ShimBridge
from catalog.jvm.spark_lines import UnsupportedVersionError, shim_name
from catalog.settings.session_settings import SESSION_SETTINGS
from procedures.calls.registry import procedure, register
from procedures.declare.declaration import Procedure
from procedures.process.application import application
from procedures.service.service import Service
from procedures.service.service_settings import ServiceSettings
from sql_ext.bridge import answer, declarations
from sql_ext.callback_server import start_callback_server
from sql_ext.configuration import EXTENSION
from sql_ext.dataframe_methods import add_dataframe_methods
from sql_ext.remote_calls import call_from_client, is_client, refuse_client

# How long the end of the interpreter waits for a group that is being written; a killed one leaves files behind.
_SECONDS_AT_EXIT = 10

atexit.register(lambda: application().services.stop_attached(_SECONDS_AT_EXIT))


def attach(spark: SparkSession) -> None:
    """Makes SQL reach Python: ``CALL use.…``, virtual tables, and the reading of indexed tables.

    Starts the automatic service too, which is idle until a table's properties turn it on, unless
    ``spark.qbeast.use.service.enabled`` is false.

    Call it once per Spark application, after the session was created with ``configure``; repeated calls have no effect.
    It also replaces PySpark's callback server, which any process of the machine can use, by one that requires a token.

    Args:
        spark: a session of this driver (not a Spark Connect client).

    Raises:
        NotAttachedError: the session has ended, or lacks our settings.
        NotSupportedError: a kind of session that cannot be attached, or versions that USE does not run on.
        InvalidArgumentError: a setting of the session or of the service is not accepted.
    """
    refuse_client(spark, "attach")
    check_running(spark)
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        raise NotSupportedError("PYSPARK_PIN_THREAD = false is not available: calls from SQL would deadlock.")
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    if EXTENSION not in extensions:
        raise NotAttachedError(
            "This session was created without sql_ext.configure(SparkSession.builder): stop it and create it so, "
            "or pass the settings of sql_ext.spark_conf() to spark-submit."
        )
    _check_versions(spark)
    for setting in SESSION_SETTINGS:
        if (text := spark.conf.get(setting.name, None)) is not None:
            setting.parse(text)
    give_jars_to_executors(spark)
    start_callback_server(spark.sparkContext)
    ShimBridge(spark).attach(PythonHandler(answer))
    ShimBridge(spark).record_scans()
    # Functions that are registered last are called first, and a function is registered once.
    atexit.unregister(_flush_scans)
    atexit.register(_flush_scans)
    _declare(spark)
    add_dataframe_methods()
    if ServiceSettings.of(spark.conf.get).enabled:
        application().services.start_attached(lambda: Service(spark))
    elif application().services.attached is None:
        ShimBridge(spark).listen(False)


def _check_versions(spark: SparkSession) -> None:
    """Raises an error if the session's Spark, Delta and shim do not belong together."""
    shim, delta = ShimBridge(spark).versions()
    try:
        wanted = shim_name(spark.version, delta)
    except UnsupportedVersionError as error:
        raise NotSupportedError(str(error)) from None
    if shim != wanted.removesuffix(".jar"):
        raise NotSupportedError(
            f"The session has {shim}.jar, but Spark {spark.version} with Delta {delta} needs {wanted}."
        )


def register_procedure(spark: SparkSession, declared: Procedure) -> None:
    """Makes a procedure of yours callable as ``CALL use.<name>(…)`` and through ``call``.

    Args:
        spark: an attached session.
        declared: the procedure.

    Raises:
        NotSupportedError: a Spark Connect client; register it in the driver.
    """
    refuse_client(spark, "register_procedure")
    register(declared)
    _declare(spark)


def call(spark: SparkSession, name: str, /, **arguments: Any) -> DataFrame:
    """Calls a procedure from Python: the same as ``CALL use.<name>(…)``, with typed errors.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.
        name: procedure.
        **arguments: by the names that ``CALL use.help('<name>')`` lists.

    Returns:
        The procedure's result rows.

    Raises:
        UseError: a refusal or failure; its ``code`` is the condition that SQL shows.
    """
    if is_client(spark):
        return call_from_client(spark, name, arguments)
    check_running(spark)
    return procedure(name).call(spark, arguments)


def check_running(spark: SparkSession) -> None:
    """Rejects a session of an application that has ended; a server raises the error itself.

    Raises:
        NotAttachedError: it has.
    """
    if not is_client(spark) and is_stopped(spark.sparkContext):
        raise NotAttachedError.ended()


def _flush_scans() -> None:
    """Stores the last records of queries where the interpreter ends and its SparkContext still runs."""
    context = SparkContext._active_spark_context
    if context is None or is_stopped(context):
        return
    spark = SparkSession.getActiveSession()
    if spark is not None and has_jvm(spark):
        ShimBridge(spark).flush_scans()


def _declare(spark: SparkSession) -> None:
    ShimBridge(spark).declare(declarations())
