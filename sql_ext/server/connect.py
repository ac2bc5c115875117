"""The Spark Connect server of this driver."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from catalog.errors import UseError, first_line
from catalog.jvm.java_values import jvm
from sql_ext.driver_process import unless_jvm_has_ended
from sql_ext.server.settings import NONE, ServerSettings

# With this setting, Spark sends clients the JVM's stack trace with each error. Errors of USE are one line.
STACKS_KEY = "spark.sql.connect.serverStacktrace.enabled"
_TOKEN_KEY = "spark.connect.authenticate.token"  # noqa: S105  # the name of a setting
# At level DEBUG, these loggers log the headers of each request, which contain the token.
_LOGGERS_OF_HEADERS = "org.sparkproject.connect.grpc"


class ConnectServer:
    """A running server.

    Args:
        spark: an attached session.
        settings: checked settings with a ``connect_port``.
        token: bearer token of clients; unused without authentication.

    Raises:
        UseError: the server could not start.
    """

    def __init__(self, spark: SparkSession, settings: ServerSettings, token: str) -> None:
        package = jvm(spark).org.apache.spark
        self._service: Any = package.sql.connect.service.SparkConnectService
        log4j = jvm(spark).org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_LOGGERS_OF_HEADERS, log4j.Level.INFO)
        conf = package.SparkEnv.get().conf()
        conf.set("spark.connect.grpc.binding.address", settings.host)
        conf.set("spark.connect.grpc.binding.port", str(settings.connect_port))
        if settings.auth != NONE:
            # Set in the running driver: as a setting at its start, the token would be visible in the process list.
            conf.set(_TOKEN_KEY, token)
        try:
            self._service.start(spark.sparkContext._jsc.sc())
        except Py4JJavaError as error:
            raise UseError(f"Spark Connect did not start: {first_line(error.java_exception)}") from error
        finally:
            # The server has read the token. Sessions copy these settings, and SQL shows them.
            conf.remove(_TOKEN_KEY)
        self._module: Any = getattr(getattr(package.sql.connect.service, "SparkConnectService$"), "MODULE$")

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._module.localPort())

    def stop(self) -> None:
        """Closes the port and cancels the queries of clients."""
        with unless_jvm_has_ended():
            default = [getattr(self._service, f"stop$default${number}")() for number in (1, 2)]
            self._service.stop(*default)
