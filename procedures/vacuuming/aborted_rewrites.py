"""The files of killed rewrites, found by the records that these have left."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

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
        return session.createDataFrame([(path,) for path in self._found()], "path string")

    def _found(self) -> Iterator[str]:
        names: dict[str, list[str]] = {}
        for record in self._records:
            for folder in record.folders:
                if folder not in names:
                    names[folder] = self._table.handle.list_names(folder)
                start = "/".join(filter(None, (self._table.root.rstrip("/"), folder)))
                yield from (f"{start}/{name}" for name in names[folder] if record.mark in name)

    def forget(self) -> None:
        """Removes the records, after their files were deleted."""
        for record in self._records:
            forget_write(self._table, record.write_id)
