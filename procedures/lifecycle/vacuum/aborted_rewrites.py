"""The files of killed rewrites, found by the records that the rewrites have left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.session import same_active_session
from catalog.state.write_records import WriteRecord, forget_write, writes_before
from catalog.table.managed_table import ManagedTable


class AbortedRewrites:
    """The rewrites of a table that began before a time and have a record: they were killed, or failed to delete files.

    Args:
        table: the table.
        before: epoch milliseconds.
    """

    def __init__(self, table: ManagedTable, before: int) -> None:
        self._table = table
        self._records: tuple[WriteRecord, ...] = tuple(writes_before(table, before))

    def paths(self, session: SparkSession) -> DataFrame:
        """Returns the ``path`` of their files, absolute and not URL-encoded; lists their folders only.

        A file of a rewrite whose commit is known after all is among them; it is referenced, and stays.
        """
        with same_active_session():
            return session.createDataFrame([(path,) for path in self._file_paths()], "path string")

    def _file_paths(self) -> Iterator[str]:
        marks: dict[str, set[str]] = {}
        for record in self._records:
            for folder in record.folders:
                marks.setdefault(folder, set()).add(record.mark)
        for folder, of_folder in marks.items():
            start = "/".join(filter(None, (self._table.root.rstrip("/"), folder)))
            for name in self._table.handle.list_names_containing(folder, sorted(of_folder)):
                yield f"{start}/{name}"

    def forget(self, session: SparkSession) -> None:
        """Removes the records of which no file is left, or whose rewrite is found to be committed.

        A rewrite may have written files long after it began, which are not old enough yet.
        """
        left = list(self._file_paths())
        young = {record.mark for record in self._records if any(record.mark in path for path in left)}
        live = self._live_paths(session, young) if young else []
        for record in self._records:
            if record.mark not in young or any(record.mark in path for path in live):
                forget_write(self._table, record.write_id)

    def _live_paths(self, session: SparkSession, marks: Iterable[str]) -> list[str]:
        is_of_rewrite = F.col("path").rlike("|".join(sorted(marks)))
        rows = self._table.state(session).files().where(is_of_rewrite).select("path").collect()
        return [row.path for row in rows]
