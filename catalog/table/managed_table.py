"""Finding a Delta table by the name or path that a user gives."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import TableError, WriteDeniedError
from catalog.jvm.java_errors import looking_at, one_line, text_of
from catalog.jvm.table_handle import TableHandle, check_rights
from catalog.jvm.table_state import TableState
from catalog.jvm.table_transaction import TableTransaction
from catalog.locations import STATE_FOLDER
from catalog.sql_names import name_parts
from catalog.table.near_names import near_table
from catalog.table.snapshot import TableSnapshot

# What people write after a name in a query.
_TIME_TRAVEL = re.compile(
    r"(?P<table>.+?)(?:@(?:v\d+|\d{17})$|\s+(?:FOR\s+)?(?:SYSTEM_)?(?:VERSION|TIME|TIMESTAMP)\s+AS\s+OF\b)",
    re.IGNORECASE,
)
# Between attempts to read a file that may be under way.
_SECONDS_UNTIL_WRITTEN = (0.01, 0.04, 0.15, 0.3)


@dataclass(frozen=True)
class ManagedTable:
    """A Delta table: where it is, and the way to its current state.

    Attributes:
        name: fully qualified name, quoted as SQL reads it.
        location: root directory as a URI, the same however the table was named.
        handle: the JVM table, for transactions.
    """

    spark: SparkSession
    name: str
    location: str
    handle: TableHandle

    @classmethod
    def find(cls, spark: SparkSession, name: str | None) -> ManagedTable:
        """Finds the table.

        Args:
            spark: session whose catalogs and current database apply.
            name: ``db.table``, ``catalog.db.table``, ``delta.`/path` `` or a bare path.

        Raises:
            TableError: missing, a view, not Delta, a version or a folder of a table, unreadable, or not a name at all.
            FileSystemError: the file system is unknown, does not answer, or denies access.
        """
        if name is None or not name.strip():
            raise TableError.invalid_name(str(name or ""), "it is empty")
        with looking_at(name):
            handle = TableHandle.find(spark, name)
        match handle.kind:
            case "delta":
                return cls(spark, handle.name, handle.location(), handle)
            case "view":
                raise TableError.view(name)
            case "version":
                raise TableError.version(name, handle.detail)
            case "inside":
                raise TableError.inside(name, handle.detail)
            case "virtual":
                raise TableError.virtual(name, handle.detail)
            case "files":
                raise TableError.named_as(name, handle.detail)
            case "other":
                raise TableError.not_delta(name, handle.detail)
            case "invalid" if travel := _TIME_TRAVEL.match(name):
                raise TableError.version(name, travel["table"])
            case "invalid":
                raise TableError.invalid_name(name, one_line(handle.detail))
            case _:
                near = near_table(spark, name)
                if near is not None and name_parts(near)[-1].lower() == name_parts(name)[-1].lower():
                    raise TableError.gone()  # the metastore has it
                raise TableError.missing(name, one_line(handle.detail), near)

    @property
    def root(self) -> str:
        """The location with its scheme, as listings of its files begin: a table named by a bare path has none."""
        return self.handle.location()

    def exists(self) -> bool:
        """Whether the table's log is still there; a file system that does not answer is no reason to say no."""
        try:
            return self.handle.exists()
        except (Py4JJavaError, PySparkException):
            return True

    @contextmanager
    def _looking(self) -> Iterator[None]:
        try:
            with looking_at(self.name):
                yield
        except TableError as error:
            if error.is_missing or self.exists():
                raise
            raise TableError.gone() from error

    def snapshot(self) -> TableSnapshot:
        """Returns the newest version of the table.

        Raises:
            TableError: the table was dropped meanwhile.
        """
        return TableSnapshot.of(self.state(), self.location)

    def state(self, session: SparkSession | None = None) -> TableState:
        """The newest version as the shim has it.

        Args:
            session: session of its DataFrames; that of the table when left out.

        Raises:
            TableError: its log cannot be read.
        """
        with self._looking():
            return self.handle.state(session)

    def transaction(self, session: SparkSession) -> TableTransaction:
        """Begins a transaction, which reads the newest version.

        Args:
            session: where the transaction works.

        Raises:
            TableError: its log cannot be read.
        """
        with self._looking():
            return self.handle.begin(session)

    def history(self, limit: int | None = None) -> DataFrame:
        """Delta's history of the table, newest first; the last ``limit`` commits when given."""
        path = self.location.replace("`", "``")
        with self._looking():
            return self.spark.sql(f"DESCRIBE HISTORY delta.`{path}`" + (f" LIMIT {limit}" if limit else ""))

    @property
    def state_folder(self) -> str:
        """URI of the folder with files of ours."""
        return f"{self.location}/{STATE_FOLDER}"

    def create_state(self, file: str, text: str) -> bool:
        """Writes a small file of ours below ``_use/``, unless there is one.

        Args:
            file: path relative to ``_use/``.
            text: what it holds.

        Returns:
            Whether it was written; False when a file of this name is there.
        """
        return self.handle.create_text(f"{STATE_FOLDER}/{file}", text)

    def write_state(self, file: str, text: str) -> None:
        """Writes a small file of ours below ``_use/``, in place of one that is there; ``file`` is relative to it."""
        self.handle.write_text(f"{STATE_FOLDER}/{file}", text)

    def read_state(self, file: str) -> str | None:
        """The text of a file of ours, None when there is none; ``file`` is relative to ``_use/``.

        Local disks and HDFS show a new file before its text, so an empty one is read again for half a second.
        """
        path = f"{STATE_FOLDER}/{file}"
        text = self.handle.read_text(path)
        for seconds in _SECONDS_UNTIL_WRITTEN:
            if text != "":
                break
            time.sleep(seconds)
            text = self.handle.read_text(path)
        return text

    def list_state(self, folder: str) -> list[str]:
        """Names of the files in a folder of ours, sorted; none when it is missing."""
        return self.handle.list_names(f"{STATE_FOLDER}/{folder}")

    def delete_state(self, file: str) -> None:
        """Deletes a file of ours; a missing one is no error."""
        self.handle.delete(f"{STATE_FOLDER}/{file}")

    def check_rights(self) -> None:
        """Asks a catalog that knows rights whether the user may change the table.

        Raises:
            WriteDeniedError: the catalog refuses.
        """
        with _denials(self.name):
            self.handle.check_rights()

    def check_writable(self) -> None:
        """Checks the rights, and writes and deletes an empty file under ``_use/``: a denial shows before any work.

        Raises:
            WriteDeniedError: the catalog or the file system refuses.
        """
        self.check_rights()
        try:
            self.handle.probe_write(f"{STATE_FOLDER}/.write-check-{uuid.uuid4().hex}")
        except (Py4JJavaError, PySparkException) as error:
            reason = text_of(error).rstrip(".")
            raise WriteDeniedError(
                f"No file can be written below {self.location}: {reason}. Give this user the right to write there."
            ) from error


def check_rights_of(spark: SparkSession, name: str) -> None:
    """Asks a catalog that knows rights whether the user may change what a name stands for, a Delta table or not.

    Args:
        spark: session of the user.
        name: as SQL reads it.

    Raises:
        WriteDeniedError: the catalog refuses.
    """
    with _denials(name):
        check_rights(spark, name)


@contextmanager
def _denials(name: str) -> Iterator[None]:
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        reason = text_of(error).rstrip(".")
        raise WriteDeniedError(f"{name} cannot be changed by this user: {reason}.") from error
