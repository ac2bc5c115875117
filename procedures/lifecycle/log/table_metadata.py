"""Mode ``table_metadata``: the properties of revisions that no file belongs to."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.errors import ConcurrentChangeError
from catalog.jvm.java_errors import is_conflict
from catalog.properties.index_properties import EXTENSIONS_KEY_PREFIX, HASH_TYPES_KEY_PREFIX
from catalog.table.snapshot import TableSnapshot
from otree.block import REVISION_TAG
from otree.revision import LAST_REVISION_KEY, REVISION_KEY_PREFIX
from procedures.lifecycle.log.log_mode import SKIPPED, LogMode, LogTask, ModeOutcome

OPERATION = "USE CONSOLIDATE LOG"
MAX_ATTEMPTS = 10

_PREFIXES = (REVISION_KEY_PREFIX, HASH_TYPES_KEY_PREFIX, EXTENSIONS_KEY_PREFIX)
_NUMBERED = re.compile(f"({'|'.join(map(re.escape, _PREFIXES))})([0-9]+)")
_STAGING = 0


def obsolete_properties(configuration: dict[str, str], used: set[str]) -> dict[int, tuple[str, ...]]:
    """Returns the properties of each revision that no live file belongs to; pure.

    The newest revision, which new files join, and the staging revision stay.

    Args:
        configuration: the table's properties.
        used: the numbers of revisions in the tags of the live files, as text.
    """
    kept = {configuration.get(LAST_REVISION_KEY), str(_STAGING), *used}
    obsolete: dict[int, list[str]] = {}
    for key in sorted(configuration):
        match = _NUMBERED.fullmatch(key)
        if match is not None and match[2] not in kept:
            obsolete.setdefault(int(match[2]), []).append(key)
    return {number: tuple(keys) for number, keys in sorted(obsolete.items())}


class TableMetadata(LogMode):
    """Removes the properties of revisions that no live file belongs to.

    A version of the table has its own properties. So versions before, protected ones among them, keep the revisions of
    their files, and RESTORE brings both back.
    """

    name = "table_metadata"
    aliases = ("array_meta", "group_meta")
    doc = "Removes the properties of revisions that no live file belongs to."
    takes_lease = True

    def run(self, task: LogTask) -> ModeOutcome:
        """See ``LogMode.run``."""
        if LAST_REVISION_KEY not in task.table.snapshot().configuration:
            return ModeOutcome(SKIPPED, "the table has no index")
        for _ in range(MAX_ATTEMPTS):
            transaction = task.table.transaction(task.session)
            snapshot = TableSnapshot.of(transaction.state(), task.table.location)
            obsolete = obsolete_properties(snapshot.configuration, _numbers_in_use(snapshot))
            if not obsolete:
                return ModeOutcome(SKIPPED, "files of the table belong to every revision")
            numbers = ", ".join(map(str, obsolete))
            message = (
                f"without live files, and removed: {'revision' if len(obsolete) == 1 else 'revisions'} {numbers}; "
                "earlier versions keep their own properties, so time travel loses nothing"
            )
            if task.dry_run:
                return task.outcome(message)
            transaction.configure({}, removed=tuple(key for keys in obsolete.values() for key in keys))
            try:
                version = transaction.commit_properties(OPERATION, {"mode": self.name, "revisions": numbers})
            except (Py4JJavaError, PySparkException) as error:
                if not is_conflict(error):
                    raise
                continue
            return task.outcome(message, version)
        raise ConcurrentChangeError(
            f"Other writers changed the metadata {MAX_ATTEMPTS} times; no revision was removed. Call again."
        )


def _numbers_in_use(snapshot: TableSnapshot) -> set[str]:
    rows = snapshot.log_files.select(F.col("tags")[REVISION_TAG].alias("number")).distinct().collect()
    return {row.number for row in rows if row.number is not None}
