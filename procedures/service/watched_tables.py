"""The tables of the service: those of the metastore, those that it is given, and those of catalog hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Protocol

from pyspark.sql import SparkSession

from catalog.errors import TableError
from catalog.jvm.log_probe import FAILED, LATE, LOOK_SECONDS, Question, Sighting, look, qualifier
from catalog.jvm.metastore import database_of, properties_of_databases, tables_of
from catalog.jvm.session import activate
from catalog.properties.inherited import InheritedProperties
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable
from procedures.service.timed_calls import TimedCalls

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

    def look(self, questions: Sequence[Question]) -> list[Sighting]:
        """See ``log_probe.look``."""
        ...

    def inherited(self, names: Collection[str]) -> Callable[[str], InheritedProperties]:
        """Returns what gives the inherited properties of each of some tables; equal as long as they are the same."""
        ...


@dataclass(frozen=True)
class InheritedByName:
    """Gives the inherited properties of tables by their full names.

    Attributes:
        session: properties of the session.
        databases: those of each database.
    """

    session: Mapping[str, str] = field(default_factory=dict)
    databases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __call__(self, name: str) -> InheritedProperties:
        """Returns those of a table."""
        return InheritedProperties(self.databases.get(_database(name) or "", {}), self.session)


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
        self._calls = TimedCalls()
        # By the given name, location and full name of a table.
        self._found: dict[str, tuple[str, str]] = {}
        # Names or locations of unreadable tables, so that each is logged once.
        self._unreadable: set[str] = set()
        for name in only or ():
            ManagedTable.find(spark, name)

    def listed(self) -> Mapping[str, str]:
        """See ``Tables.listed``; lists the metastore once and reads no table."""
        if self._only is not None:
            return self._locations_of(self._only)
        listed, qualified = dict(self._by_path), qualifier(self._spark)
        for table in sorted(tables_of(self._spark), key=lambda t: t.full_name, reverse=True):
            # Tables that share a location are one table; the first name is used.
            place = self._place_or_none(table.full_name, table.location, qualified)
            if place is not None:
                listed[place] = table.full_name
        return listed

    def add(self, name: str, location: str) -> str | None:
        """See ``Tables.add``."""
        place = self._place_or_none(name, location, qualifier(self._spark))
        if place is None:
            return None
        if self._only is not None:
            return place if place in self._locations_of(self._only) else None
        if _is_path(name):
            self._by_path[place] = name
        return place

    def look(self, questions: Sequence[Question]) -> list[Sighting]:
        """See ``Tables.look``."""
        sightings = look(self._spark, questions)
        for question, sighting in zip(questions, sightings, strict=True):
            if sighting.state == FAILED:
                self._log_unreadable(question.location, sighting.detail)
            elif sighting.state != LATE:
                self._unreadable.discard(question.location)
        return sightings

    def inherited(self, names: Collection[str]) -> Callable[[str], InheritedProperties]:
        """See ``Tables.inherited``; asks the metastore once for each database."""
        databases = {database for name in names if (database := _database(name)) is not None}
        return InheritedByName(*properties_of_databases(self._spark, databases))

    def _locations_of(self, names: Sequence[str]) -> dict[str, str]:
        qualified = qualifier(self._spark)

        def find(name: str) -> tuple[str, str]:
            activate(self._spark)
            table = ManagedTable.find(self._spark, name)
            return qualified(table.location), table.name

        for name, found in self._calls.answers({name: partial(find, name) for name in names}, LOOK_SECONDS).items():
            if not isinstance(found, Exception):
                self._found[name] = found
                continue
            # It was dropped or is unreadable, and may come back.
            self._found.pop(name, None)
            if not (isinstance(found, TableError) and found.is_missing):
                self._log_unreadable(name, error_text(found))
        # A table without an answer stays where it was.
        return dict(self._found[name] for name in names if name in self._found)

    def _place_or_none(self, name: str, location: str, qualified: Callable[[str], str]) -> str | None:
        """Returns the normalized location; None if that fails, for example without such a file system."""
        try:
            return qualified(location)
        except Exception as error:  # noqa: BLE001 - an error of one table must not affect others
            self._log_unreadable(name, error_text(error))
            return None

    def _log_unreadable(self, table: str, reason: str) -> None:
        if table not in self._unreadable:
            self._unreadable.add(table)
            logger.warning("The service skips %s, which cannot be read: %s", table, reason)


# Each look asks this of all tables.
_database = lru_cache(maxsize=65_536)(database_of)


def _is_path(name: str) -> bool:
    return ".delta.`" in name or name.startswith("delta.`")
