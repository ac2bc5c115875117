"""Commits the table properties of a new revision separately, before the files that join it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.errors import ConcurrentChangeError, UseError
from catalog.jvm.java_errors import is_conflict, text_of
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot

logger = logging.getLogger(__name__)

OPERATION = "USE REVISION"
# Only other changes of the metadata conflict with this commit; several in a row are rare.
MAX_ATTEMPTS = 10

Choice = tuple[int, Mapping[str, str]]
"""The number of a revision, and the properties that make it; none when it exists."""


def commit_revision(
    table: ManagedTable, session: SparkSession, choose: Callable[[TableSnapshot], Choice]
) -> int | None:
    """Makes the revision that ``choose`` asks for, in a commit that changes properties only.

    Each attempt reads the newest version, chooses and commits. Delta rebases the commit on concurrent appends, deletes
    and rewrites. A concurrent change of the metadata is a conflict, and the next attempt chooses again.

    Args:
        table: the table.
        session: session of the commit.
        choose: the revision that a version of the table needs; reads metadata only.

    Returns:
        The number of the revision that was made; None when the newest version needed none.

    Raises:
        ConcurrentChangeError: every attempt met a concurrent change of the metadata; nothing was committed.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        transaction = table.transaction(session)
        number, properties = choose(TableSnapshot.of(transaction.state()))
        if not properties:
            return None
        transaction.configure(properties)
        try:
            version = transaction.commit_properties(OPERATION, {"revision": str(number)})
        except (Py4JJavaError, PySparkException) as error:
            if not is_conflict(error):
                # The answer of the file system may be lost although the commit is there. If it appears later, the
                # revision has no files, which harms nobody.
                if _is_made(table, choose, number):
                    return number
                raise
            if attempt < MAX_ATTEMPTS:
                continue
            raise ConcurrentChangeError(
                f"Other writers changed the metadata {MAX_ATTEMPTS} times; no revision was made: {text_of(error)}"
            ) from error
        logger.info("%s: version %d makes revision %d", table.name, version, number)
        return number
    return None


def _is_made(table: ManagedTable, choose: Callable[[TableSnapshot], Choice], number: int) -> bool:
    """Whether the newest version has the revision and needs no other, as far as it can be read."""
    try:
        chosen, properties = choose(table.snapshot())
        return chosen == number and not properties
    except (UseError, Py4JJavaError, PySparkException):
        return False
