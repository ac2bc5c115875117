"""Spark's Thrift server, for JDBC and ODBC clients, in this driver."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from catalog.errors import UseError, first_line
from catalog.jvm.java_values import jvm, jvm_session
from sql_ext.server.settings import NONE, ServerSettings

_SETTINGS = "hive.server2."
_AUTHENTICATION_CLASS = "hive.server2.custom.authentication.class"
_IMPERSONATION = f"{_SETTINGS}enable.doAs"
_LOG_FOLDER = f"{_SETTINGS}logging.operation.log.location"


class JdbcServer:
    """A running server.

    Args:
        spark: an attached session; each client gets a new session beside it.
        settings: checked.
        token: what clients give as their password; unused without authentication.

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
            # A token stands for the server's user, whatever name comes with it; and when a client leaves, Hive would
            # close its file systems under the rewrites that it began.
            hadoop.set(_IMPERSONATION, "false")
        # Hive's is one that all servers of a user share, and the first that stops removes it.
        self._logs = Path(tempfile.mkdtemp(prefix="use-spark-"))
        hadoop.set(_LOG_FOLDER, str(self._logs))
        if settings.auth == NONE:
            hadoop.set(f"{_SETTINGS}authentication", "NONE")
        else:
            jvm(spark).io.usespark.TokenAuthentication.secret().set(token)
            # Hive makes settings of its own for each connection, which know the JVM's properties only.
            jvm(spark).java.lang.System.setProperty(_AUTHENTICATION_CLASS, "io.usespark.TokenAuthentication")
            hadoop.set(f"{_SETTINGS}authentication", "CUSTOM")
        try:
            thriftserver = jvm(spark).org.apache.spark.sql.hive.thriftserver
            self._server: Any = thriftserver.usespark.JdbcServer.serve(jvm_session(spark))
        except Py4JJavaError as error:
            raise UseError(f"The JDBC server did not start: {first_line(error.java_exception)}") from error

    @property
    def port(self) -> int:
        """Where it listens."""
        for service in self._server.getServices():
            if "Thrift" in str(service.getName()):
                return int(service.getPortNumber())
        raise UseError("The JDBC server has no port.")

    def stop(self) -> None:
        """Lets no one in any more and ends sessions."""
        self._server.stop()
        shutil.rmtree(self._logs, ignore_errors=True)
