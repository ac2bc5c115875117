"""The tables of the service: those of the metastore, those that it is given, and those of catalog hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from pyspark.sql import SparkSession

from catalog.errors import TableError
from catalog.jvm.log_probe import FAILED, Sighting, look, qualified
from catalog.jvm.metastore import database_of, properties_of_databases, tables_of
from catalog.properties.inherited import InheritedProperties
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)


class Tables(Protocol):
    """Lists and checks tables."""

    def listed(self) -> Mapping[str, str]:
        """Returns the names of all tables, by location."""
        ...

    def add(self, name: str, location: str) -> str | None:
        """Adds a table that the metastore may not list.

        Returns:
            Its normalized location; None if the service does not optimize it.
        """
        ...

    def look(self, questions: Sequence[tuple[str, int | None]]) -> list[Sighting]:
        """See ``log_probe.look``."""
        ...

    def inherited(self, names: Collection[str]) -> Callable[[str], InheritedProperties]:
        """Returns what gives the inherited properties of each of some tables."""
        ...


class SparkTables:
    """The tables of a session.

    Args:
        spark: the session.
        only: names or paths; the whole metastore by default.

    Raises:
        TableError: one of ``only`` does not exist or is not a Delta table.
    """

    def __init__(self, spark: SparkSession, only: Sequence[str] | None = None) -> None:
        self._spark = spark
        self._only = only
        self._by_path: dict[str, str] = {}
        # Names or locations of unreadable tables, so that each is logged once.
        self._unreadable: set[str] = set()
        for name in only or ():
            ManagedTable.find(spark, name)

    def listed(self) -> Mapping[str, str]:
        """See ``Tables.listed``; lists the metastore once and reads no table."""
        if self._only is not None:
            return self._locations_of(self._only)
        listed = dict(self._by_path)
        for table in sorted(tables_of(self._spark), key=lambda t: t.full_name, reverse=True):
            # Tables that share a location are one table; the first name is used.
            place = self._place_or_none(table.full_name, table.location)
            if place is not None:
                listed[place] = table.full_name
        return listed

    def add(self, name: str, location: str) -> str | None:
        """See ``Tables.add``."""
        place = self._place_or_none(name, location)
        if place is None:
            return None
        if self._only is not None:
            return place if place in self._locations_of(self._only) else None
        if _is_path(name):
            self._by_path[place] = name
        return place

    def look(self, questions: Sequence[tuple[str, int | None]]) -> list[Sighting]:
        """See ``Tables.look``."""
        sightings = look(self._spark, questions)
        for (location, _), sighting in zip(questions, sightings, strict=True):
            if sighting.state == FAILED:
                self._log_unreadable(location, sighting.detail)
            else:
                self._unreadable.discard(location)
        return sightings

    def inherited(self, names: Collection[str]) -> Callable[[str], InheritedProperties]:
        """See ``Tables.inherited``; asks the metastore once for each database."""
        databases = {name: database_of(name) for name in names}
        wanted = {database for database in databases.values() if database is not None}
        session, of_databases = properties_of_databases(self._spark, wanted)
        return lambda name: InheritedProperties(of_databases.get(databases[name] or "", {}), session)

    def _locations_of(self, names: Sequence[str]) -> dict[str, str]:
        locations = {}
        for name in names:
            try:
                table = ManagedTable.find(self._spark, name)
            except Exception as error:  # noqa: BLE001 - an error of one table must not affect others
                if not (isinstance(error, TableError) and error.is_missing):
                    self._log_unreadable(name, error_text(error))
                continue  # it was dropped or is unreadable, and may come back
            locations[self._place(table.location)] = table.name
        return locations

    def _place_or_none(self, name: str, location: str) -> str | None:
        """Returns ``_place``; None if that fails, for example because the file system is not configured."""
        try:
            return self._place(location)
        except Exception as error:  # noqa: BLE001 - an error of one table must not affect others
            self._log_unreadable(name, error_text(error))
            return None

    def _log_unreadable(self, table: str, reason: str) -> None:
        if table not in self._unreadable:
            self._unreadable.add(table)
            logger.warning("The service skips %s, which cannot be read: %s", table, reason)

    def _place(self, location: str) -> str:
        return qualified(self._spark, location)


def _is_path(name: str) -> bool:
    return ".delta.`" in name or name.startswith("delta.`")
