"""The shim's end of the bridge: its Python handler, and the declarations sent by Python."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.jvm.java_values import JavaValue, java_class, jvm_session
from catalog.jvm.python_handler import PythonHandler


@dataclass(frozen=True)
class ShimBridge:
    """The shim's ``Bridge``, of which a JVM has one.

    Attributes:
        spark: a session of the JVM.
    """

    spark: SparkSession

    @property
    def _java(self) -> JavaValue:
        return java_class(self.spark, "io.usespark.Bridge")

    def attach(self, handler: PythonHandler) -> None:
        """Makes the shim call this handler instead of an earlier one."""
        self._java.instance().attach(handler)

    def is_attached(self) -> bool:
        """Returns whether the shim has a handler; False where the JVM has no shim."""
        try:
            return self._java.handler() is not None
        except TypeError:  # what Py4J raises when the JVM has no such class
            return False

    def versions(self) -> tuple[str, str]:
        """Returns the title of the shim's jar, which names the versions that it is for, and the version of Delta."""
        title = self._java.instance().getClass().getPackage().getImplementationTitle()
        return str(title), str(java_class(self.spark, "io.delta.package").VERSION())

    def declare(self, declarations: str) -> None:
        """Sends the names, parameters and schemas of procedures and virtual tables, as JSON."""
        self._java.instance().declare(declarations)

    def record_scans(self) -> None:
        """Makes the shim record the scans of queries, once a table that asks for it is read."""
        java_class(self.spark, "org.apache.spark.sql.usespark.ScanListener").register(jvm_session(self.spark))

    def flush_scans(self) -> None:
        """Stores the records of the queries that have ended."""
        java_class(self.spark, "org.apache.spark.sql.usespark.ScanListener").flush(jvm_session(self.spark))

    def listen(self, wanted: bool) -> None:
        """Sets whether the shim reports changes of the catalog."""
        self._java.instance().listen(wanted)
