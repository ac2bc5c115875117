"""Where the service learns of tables: the metastore, the tables that it is given, and what the catalog tells."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.sql import SparkSession

from catalog.errors import TableError
from catalog.jvm.log_probe import FAILED, Sighting, look, qualified
from catalog.jvm.metastore import tables_of
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)


class Tables(Protocol):
    """Knows which tables there are, and looks at them."""

    def listed(self) -> Mapping[str, str]:
        """Names of all tables, by location."""
        ...

    def add(self, name: str, location: str) -> str | None:
        """Takes notice of a table that the metastore may not list.

        Returns:
            Its location in the one spelling; None when the service does not care for it.
        """
        ...

    def look(self, questions: Sequence[tuple[str, int | None]]) -> list[Sighting]:
        """See ``log_probe.look``."""
        ...


class SparkTables:
    """The tables of a session.

    Args:
        spark: the session.
        only: names or paths; the whole metastore when left out.

    Raises:
        TableError: one of ``only`` is not there, or not a Delta table.
    """

    def __init__(self, spark: SparkSession, only: Sequence[str] | None = None) -> None:
        self._spark = spark
        self._only = only
        self._by_path: dict[str, str] = {}
        # Names or locations of the tables that cannot be read, so that each is logged once.
        self._left_out: set[str] = set()
        for name in only or ():
            ManagedTable.find(spark, name)

    def listed(self) -> Mapping[str, str]:
        """See ``Tables.listed``; one listing of the metastore, and no look at a table."""
        if self._only is not None:
            return self._given(self._only)
        found = dict(self._by_path)
        for table in sorted(tables_of(self._spark), key=lambda t: t.full_name, reverse=True):
            # A location that several tables share is one table; the first name stands for it.
            place = self._place_or_none(table.full_name, table.location)
            if place is not None:
                found[place] = table.full_name
        return found

    def add(self, name: str, location: str) -> str | None:
        """See ``Tables.add``."""
        place = self._place_or_none(name, location)
        if place is None:
            return None
        if self._only is not None:
            return place if place in self._given(self._only) else None
        if _is_path(name):
            self._by_path[place] = name
        return place

    def look(self, questions: Sequence[tuple[str, int | None]]) -> list[Sighting]:
        """See ``Tables.look``."""
        sightings = look(self._spark, questions)
        for (location, _), sighting in zip(questions, sightings, strict=True):
            if sighting.state == FAILED:
                self._leave_out(location, sighting.detail)
            else:
                self._left_out.discard(location)
        return sightings

    def _given(self, names: Sequence[str]) -> dict[str, str]:
        found = {}
        for name in names:
            try:
                table = ManagedTable.find(self._spark, name)
            except Exception as error:  # noqa: BLE001 - one table's trouble is not that of the others
                if not (isinstance(error, TableError) and error.is_missing):
                    self._leave_out(name, error_text(error))
                continue  # dropped since, or unreadable; it may come back
            found[self._place(table.location)] = table.name
        return found

    def _place_or_none(self, name: str, location: str) -> str | None:
        """As ``_place``; None where that fails, as for a file system that is not configured."""
        try:
            return self._place(location)
        except Exception as error:  # noqa: BLE001 - one table's trouble is not that of the others
            self._leave_out(name, error_text(error))
            return None

    def _leave_out(self, table: str, reason: str) -> None:
        if table not in self._left_out:
            self._left_out.add(table)
            logger.warning("The service leaves out %s, which cannot be read: %s", table, reason)

    def _place(self, location: str) -> str:
        return qualified(self._spark, location)


def _is_path(name: str) -> bool:
    return ".delta.`" in name or name.startswith("delta.`")
