"""A Delta table in the JVM: looking it up, its state, its transactions, and small text files below it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.java_values import JavaValue, data_frame, java_class, java_list, jvm_session
from catalog.jvm.table_state import TableState
from catalog.jvm.table_transaction import TableTransaction
from catalog.jvm.table_vacuum import TableVacuum
from catalog.jvm.table_versions import TableVersions

_OF_DELTA = "org.apache.spark.sql.delta.usespark"


class TableHandle:
    """The shim's ``FoundTable``: what a name stands for. Only a handle of kind ``delta`` has more than attributes.

    Args:
        spark: session in which the name was looked up.
        java: the shim's object.

    Attributes:
        kind: ``delta``, ``view``, ``virtual``, ``version``, ``inside``, ``files``, ``other``, ``missing`` or
            ``invalid``.
        name: fully qualified name, quoted as SQL reads it.
        detail: the table meant, where another one is, or what is wrong.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java
        self.kind = str(java.kind())
        self.name = str(java.name())
        self.detail = str(java.detail())

    @classmethod
    def find(cls, spark: SparkSession, name: str) -> TableHandle:
        """Looks up a name, `` delta.`/path` `` or a bare path, as SQL in this session would.

        Args:
            spark: session whose catalogs and current database apply.
            name: as a user gives it.
        """
        return cls(spark, java_class(spark, "io.usespark.TableLookup").find(jvm_session(spark), name))

    def location(self) -> str:
        """Returns the root of the table with the scheme and authority of its file system, however it was named."""
        return str(self._java.location())

    def exists(self) -> bool:
        """Returns whether the log is still there, which a drop removes."""
        return bool(self._java.exists())

    def state(self, session: SparkSession | None = None) -> TableState:
        """Returns the newest version.

        Args:
            session: session of the DataFrames of the state; that of the handle when left out.
        """
        return TableState(session or self.spark, self._java.state())

    def begin(self, session: SparkSession) -> TableTransaction:
        """Begins a transaction, which reads the newest version.

        Args:
            session: session of the transaction.
        """
        return TableTransaction(
            session, java_class(session, "io.usespark.TableTransaction")(jvm_session(session), self._java.table())
        )

    def vacuum(self, session: SparkSession, delete_before: int, retention_hours: int) -> TableVacuum:
        """Returns a vacuum of the table, which has not begun.

        Args:
            session: session of the work, with its settings.
            delete_before: epoch milliseconds; files that are younger, or were removed later, are kept.
            retention_hours: the retention for Delta's history, in whole hours.
        """
        vacuum = java_class(session, f"{_OF_DELTA}.TableVacuum")
        java = vacuum(jvm_session(session), self._java.table(), delete_before, retention_hours)
        return TableVacuum(session, java, self.versions(session), delete_before)

    def versions(self, session: SparkSession) -> TableVersions:
        """Returns the versions of the table.

        Args:
            session: session of the work.
        """
        versions = java_class(session, f"{_OF_DELTA}.TableVersions")
        return TableVersions(session, versions(jvm_session(session), self._java.table()))

    def list_files(self, session: SparkSession) -> DataFrame:
        """Returns the ``path`` of every file below the table, apart from its log; Spark tasks list them."""
        return data_frame(self._java.listFiles(jvm_session(session)), session)

    def write_text(self, file: str, text: str) -> None:
        """Writes a small text file below the table; replaces an existing one."""
        self._java.writeText(file, text, True)

    def create_text(self, file: str, text: str) -> bool:
        """Writes a small text file below the table unless it exists; returns whether it was written."""
        return bool(self._java.writeText(file, text, False))

    def read_text(self, file: str) -> str | None:
        """Returns the text of a small file below the table, None when there is none."""
        text = self._java.readText(file)
        return None if text is None else str(text)

    def list_names(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder below the table, sorted; none when the folder is missing."""
        return self.list_names_containing(folder, [""])

    def list_names_containing(self, folder: str, texts: Sequence[str]) -> list[str]:
        """Returns the names that contain one of the texts; other names stay in the JVM, which may list a million.

        Args:
            folder: relative to the table; a missing one has no names.
            texts: parts of names.
        """
        return sorted(json.loads(self._java.listNames(folder, java_list(self.spark, texts))))

    def delete(self, file: str) -> None:
        """Deletes a file below the table; a missing one is no error."""
        self._java.delete(file)

    def check_rights(self) -> None:
        """Asks the catalog for the right to change rows; fails as the catalog does when it denies that."""
        check_rights(self.spark, self.name)

    def probe_write(self, file: str) -> None:
        """Creates and deletes an empty file below the table; fails as the file system does when it denies that."""
        self._java.probeWrite(file)


def check_rights(spark: SparkSession, name: str) -> None:
    """Asks the catalog of a table for the right to change rows; fails as the catalog does when it denies that.

    The catalogs of USE and of Delta know no rights, and are not asked.

    Args:
        spark: session of the user.
        name: name of the table, which need not be a Delta table.
    """
    java_class(spark, "io.usespark.TableLookup").checkRights(jvm_session(spark), name)
