"""A table as a Python object."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import TableError
from sql_ext.facade.inspection import Inspect
from sql_ext.facade.maintenance import Maintenance
from sql_ext.facade.reach import status_rows


@dataclass(frozen=True)
class Table:
    """A Delta table by its full name: ``inspect`` to look, ``maintenance`` to act. ``sql_ext.table`` makes it.

    It holds nothing of the table. Every method finds the table of this name as it is then, and raises ``UseError``
    (``USE_TABLE_NOT_FOUND``) when it was dropped or renamed.

    Attributes:
        spark: session that is asked.
        name: full name, quoted as SQL reads it, such as ``spark_catalog.default.flights``.
    """

    spark: SparkSession
    name: str

    @property
    def location(self) -> str:
        """Root directory of the table, as it is now.

        Raises:
            UseError: the table is gone.
        """
        return status_rows(self.spark, self.name)[0].location

    @property
    def inspect(self) -> Inspect:
        """Looking at the table."""
        return Inspect(self.spark, self.name)

    @property
    def maintenance(self) -> Maintenance:
        """Acting on the table."""
        return Maintenance(self.spark, self.name)

    def __repr__(self) -> str:
        return f"Table({self.name!r})"


def table(spark: SparkSession, name: str) -> Table:
    """Finds a Delta table.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.
        name: ``db.table``, ``catalog.db.table``, ``"delta.`/path`"`` or a bare path; without a database, the
            current one of now applies.

    Returns:
        The table, by its full name.

    Raises:
        UseError: missing (``USE_TABLE_NOT_FOUND``), a view (``USE_NOT_A_TABLE``), not Delta
            (``USE_NOT_A_DELTA_TABLE``), not a name at all (``USE_INVALID_TABLE_NAME``), or the session is not attached
            (``USE_NOT_ATTACHED``).
    """
    if not isinstance(name, str):
        raise TableError.invalid_name(str(name), "a text is expected")
    return Table(spark, status_rows(spark, name)[0].table)
