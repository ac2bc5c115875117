"""A table as a Python object."""

from __future__ import annotations

import html
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import TableError
from procedures.declare.html_table import html_table
from sql_ext.facade.inspection import Inspect
from sql_ext.facade.maintenance import Maintenance
from sql_ext.facade.session_access import status_rows


@dataclass(frozen=True)
class Table:
    """A Delta table: ``inspect`` reads it, ``maintenance`` changes it. ``sql_ext.table`` creates this object.

    It stores only the name. Every method looks up the current table of that name and raises ``UseError``
    (``USE_TABLE_NOT_FOUND``) if it was dropped or renamed.

    Attributes:
        spark: session that it uses.
        name: full name, quoted for SQL, such as ``spark_catalog.default.flights``.
    """

    spark: SparkSession
    name: str

    @property
    def location(self) -> str:
        """Current root directory of the table.

        Raises:
            UseError: the table does not exist.
        """
        return status_rows(self.spark, self.name)[0].location

    @property
    def inspect(self) -> Inspect:
        """Methods that read the table."""
        return Inspect(self.spark, self.name)

    @property
    def maintenance(self) -> Maintenance:
        """Methods that change the table."""
        return Maintenance(self.spark, self.name)

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    def _repr_html_(self) -> str:
        """The name and what can be done, without a look at the table: it may be gone."""
        offers = [(name, _methods_of(kind)) for name, kind in (("inspect", Inspect), ("maintenance", Maintenance))]
        return f"<p>Table <code>{html.escape(self.name)}</code></p>{html_table(('', 'methods'), offers)}"


def _methods_of(kind: type) -> str:
    return ", ".join(sorted(name for name in vars(kind) if not name.startswith("_") and callable(vars(kind)[name])))


def table(spark: SparkSession, name: str) -> Table:
    """Looks up a Delta table.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.
        name: ``db.table``, ``catalog.db.table``, ``"delta.`/path`"`` or a bare path; without a database, the current
            one applies.

    Returns:
        The table with its full name.

    Raises:
        UseError: the table is missing (``USE_TABLE_NOT_FOUND``), a view (``USE_NOT_A_TABLE``) or not a Delta table
            (``USE_NOT_A_DELTA_TABLE``), the name is invalid (``USE_INVALID_TABLE_NAME``), or the session is not
            attached (``USE_NOT_ATTACHED``).
    """
    if not isinstance(name, str):
        raise TableError.invalid_name(str(name), "a string is expected")
    return Table(spark, status_rows(spark, name)[0].table)
