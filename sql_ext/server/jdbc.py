"""Spark's Thrift server for JDBC and ODBC clients, in this driver."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from catalog.errors import UseError, first_line
from catalog.jvm.java_values import jvm, jvm_session
from sql_ext.driver_process import unless_jvm_has_ended
from sql_ext.server.settings import NONE, ServerSettings

_SETTINGS = "hive.server2."
_AUTHENTICATION_CLASS = "hive.server2.custom.authentication.class"
_IMPERSONATION = f"{_SETTINGS}enable.doAs"
_LOG_FOLDER = f"{_SETTINGS}logging.operation.log.location"
_SCRATCH_FOLDER = "hive.exec.local.scratchdir"


class JdbcServer:
    """A running server.

    Args:
        spark: an attached session; each client gets a new session of the same application.
        settings: checked settings.
        token: password of clients; unused without authentication.

    Raises:
        UseError: the server could not start.
    """

    def __init__(self, spark: SparkSession, settings: ServerSettings, token: str) -> None:
        self._spark = spark
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set(f"{_SETTINGS}thrift.port", str(settings.port))
        hadoop.set(f"{_SETTINGS}thrift.bind.host", settings.host)
        hadoop.set(f"{_SETTINGS}transport.mode", "binary")
        if hadoop.get(_IMPERSONATION) is None:
            # The token grants the rights of the server's user, whatever name a client sends. With impersonation, Hive
            # would also close the file systems of a client that disconnects, while its rewrites still use them.
            hadoop.set(_IMPERSONATION, "false")
        # All servers of a user would share Hive's default folder, and the first one that stops would delete it.
        self._folder = Path(tempfile.mkdtemp(prefix="use-spark-"))
        hadoop.set(_LOG_FOLDER, str(self._folder))
        if hadoop.get(_SCRATCH_FOLDER) is None:
            # At the end of a session, Hive logs an error if the folder does not exist, and nothing creates its default.
            hadoop.set(_SCRATCH_FOLDER, str(self._folder))
        if settings.auth == NONE:
            hadoop.set(f"{_SETTINGS}authentication", "NONE")
        else:
            jvm(spark).io.usespark.TokenAuthentication.secret().set(token)
            # Hive creates new settings for each connection, which contain only the properties of the JVM.
            jvm(spark).java.lang.System.setProperty(_AUTHENTICATION_CLASS, "io.usespark.TokenAuthentication")
            hadoop.set(f"{_SETTINGS}authentication", "CUSTOM")
        try:
            thriftserver = jvm(spark).org.apache.spark.sql.hive.thriftserver
            self._server: Any = thriftserver.usespark.JdbcServer.serve(jvm_session(spark))
        except BaseException as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            if not isinstance(error, Py4JJavaError):
                raise
            raise UseError(f"The JDBC server did not start: {first_line(error.java_exception)}") from error

    @property
    def port(self) -> int:
        """The port on which it listens."""
        for service in self._server.getServices():
            if "Thrift" in str(service.getName()):
                return int(service.getPortNumber())
        raise UseError("The JDBC server has no port.")

    def stop(self) -> None:
        """Closes the port and all sessions."""
        with unless_jvm_has_ended():
            self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
