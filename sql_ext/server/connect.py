"""Spark Connect, for remote PySpark clients, in this driver."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from catalog.errors import UseError, first_line
from catalog.jvm.java_values import jvm
from sql_ext.server.settings import NONE, ServerSettings

# Spark shows clients the stack of the JVM below each error; ours are one line.
STACKS_KEY = "spark.sql.connect.serverStacktrace.enabled"
_TOKEN_KEY = "spark.connect.authenticate.token"  # noqa: S105  # the name of a setting
# At the level debug they tell the headers of each request, with the token among them.
_TELLS_HEADERS = "org.sparkproject.connect.grpc"


class ConnectServer:
    """A running server.

    Args:
        spark: an attached session.
        settings: checked, with a ``connect_port``.
        token: what clients send as their bearer token; unused without authentication.

    Raises:
        UseError: the server could not start.
    """

    def __init__(self, spark: SparkSession, settings: ServerSettings, token: str) -> None:
        package = jvm(spark).org.apache.spark
        self._service: Any = package.sql.connect.service.SparkConnectService
        log4j = jvm(spark).org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_TELLS_HEADERS, log4j.Level.INFO)
        conf = package.SparkEnv.get().conf()
        conf.set("spark.connect.grpc.binding.address", settings.host)
        conf.set("spark.connect.grpc.binding.port", str(settings.connect_port))
        if settings.auth != NONE:
            # Set in the running driver: as a setting of its start it would be seen in the list of processes.
            conf.set(_TOKEN_KEY, token)
        try:
            self._service.start(spark.sparkContext._jsc.sc())
        except Py4JJavaError as error:
            raise UseError(f"Spark Connect did not start: {first_line(error.java_exception)}") from error
        finally:
            # The server has read it; sessions begin with a copy of these settings, which SQL shows.
            conf.remove(_TOKEN_KEY)
        self._module: Any = getattr(getattr(package.sql.connect.service, "SparkConnectService$"), "MODULE$")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._module.localPort())

    def stop(self) -> None:
        """Lets no one in any more and ends what clients run."""
        default = [getattr(self._service, f"stop$default${number}")() for number in (1, 2)]
        self._service.stop(*default)
