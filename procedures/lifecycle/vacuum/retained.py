"""Which of the files that Delta's vacuum would delete must stay, and which versions the deletion of the others ends."""

from __future__ import annotations

from functools import cached_property, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.errors import ProtectionError
from catalog.jvm.table_versions import TableVersions
from catalog.state.protection import Protection, protections
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import FilesTotal
from procedures.lifecycle.vacuum.clones import cloned_files, key_of, name_of
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.reasons import ABORTED_REWRITE, EMPTY_FOLDER, UNREFERENCED

PROTECTED, CLONED = "PROTECTED", "CLONED"


class RetainedVersions:
    """The versions of a table whose files stay: from the one of a cutoff on, and protected ones.

    Args:
        table: the table.
        session: session of the work.
        cutoff: limits of the files that a vacuum may delete.
    """

    def __init__(self, table: ManagedTable, session: SparkSession, cutoff: Cutoff) -> None:
        self._table = table
        self._session = session
        self._cutoff = cutoff
        self._versions: TableVersions = table.handle.versions(session)
        self._cached: list[DataFrame] = []

    def release(self) -> None:
        """Releases the lists of files."""
        for files in self._cached:
            files.unpersist()

    @cached_property
    def oldest(self) -> int:
        """The oldest version that the log can make."""
        return self._versions.oldest()

    @cached_property
    def newest(self) -> int:
        """The newest version when the vacuum began."""
        return self._versions.newest()

    @cached_property
    def version(self) -> int:
        """The oldest version that stays, apart from protected ones."""
        version = self._cutoff.version
        if version is None:
            version = self._versions.at(self._cutoff.delete_before)
        return min(max(version, self.oldest), self.newest)

    @cached_property
    def begins_at(self) -> int:
        """When the history that stays begins, epoch milliseconds."""
        return self._cutoff.delete_before if self._cutoff.version is None else self._versions.time_of(self.version)

    def protected(self) -> tuple[Protection, ...]:
        """The protections of the table.

        Raises:
            ProtectionError: one of them cannot be read, or the log no longer has its version.
        """
        protected, newest = protections(self._table), self.newest
        for protection in protected:
            if protection.version > newest:
                # It may have been committed and protected since the vacuum began.
                newest = self._versions.newest()
            if not self.oldest <= protection.version <= newest:
                raise ProtectionError.lost(protection.name, protection.version, self.oldest, newest)
        return protected

    @cached_property
    def _changes(self) -> DataFrame:
        """The files that commits after the oldest version name; if that stays, also those that its own commit adds."""
        changes = self._versions.changes(self.oldest + 1, self.newest)
        if self.version == self.oldest:
            own = self._versions.changes(None, self.oldest)
            changes = changes.union(own.where(F.col("is_added") & (F.col("version") == self.oldest)))
        return self._cache(changes.select("version", "is_added", key_of(F.col("path")).alias("key")))

    @cached_property
    def _needed(self) -> DataFrame:
        """The ``key`` of the files of the versions from ``version`` on."""
        # The change feed of the version itself is no part of its files.
        added = self._changes.where(F.col("is_added") & (F.col("version") >= self.version)).select("key")
        return self._files_of(self.version).union(added).distinct()

    @cached_property
    def _cloned(self) -> list[DataFrame]:
        files = cloned_files(self._session, self._table)
        self._cached.extend(files)
        return files

    def _files_of(self, version: int) -> DataFrame:
        return self._versions.files(version).select(key_of(F.col("path")).alias("key"))

    def _cache(self, files: DataFrame) -> DataFrame:
        self._cached.append(files.persist(StorageLevel.MEMORY_AND_DISK))
        return self._cached[-1]

    def split(self, candidates: DataFrame, protected: tuple[Protection, ...]) -> DataFrame:
        """Returns the candidates that no retained version needs, with the column ``kept``.

        Args:
            candidates: an inventory with reasons.
            protected: the protections that count.

        Returns:
            The columns of ``candidates``, and ``kept``: ``PROTECTED`` or ``CLONED``; NULL for files to delete.
        """
        if candidates.isEmpty():
            return candidates.select("*", F.lit("").alias("key"), F.lit(None).cast("string").alias("kept"))
        young = F.col("modificationTime") >= self._cutoff.unreferenced_before
        files = candidates.where(~(F.col("reason").isin(UNREFERENCED, ABORTED_REWRITE) & young))
        files = files.withColumn("key", key_of(F.col("path"))).join(self._needed, "key", "left_anti")
        kept = F.lit(None).cast("string")
        clones = self._cloned if self._has_files(files) else []
        files = files.withColumn("name", name_of(F.col("key")))
        lists_by_reason = (CLONED, "name", clones), (PROTECTED, "key", [self._files_of(p.version) for p in protected])
        for reason, column, lists in lists_by_reason:
            if not lists:
                continue
            needed = (
                reduce(lambda some, more: some.union(more), lists)
                .distinct()
                .withColumn(f"is_{reason.lower()}", F.lit(True))
            )
            files = files.join(needed, column, "left")
            kept = F.when(F.col(f"is_{reason.lower()}"), reason).otherwise(kept)
        return self._cache(files.select(*candidates.columns, "key", kept.alias("kept")))

    @staticmethod
    def _has_files(files: DataFrame) -> bool:
        return not files.where(F.col("reason") != EMPTY_FOLDER).isEmpty()

    def oldest_without(self, to_delete: DataFrame) -> int | None:
        """Returns the oldest version that does not need any of some files; None if no version needs them.

        Args:
            to_delete: rows of ``split``.
        """
        removed = self._changes.where(~F.col("is_added") & (F.col("version") <= self.version))
        row = removed.join(to_delete.select("key").distinct(), "key", "left_semi").agg(F.max("version")).first()
        return None if row is None or row[0] is None else int(row[0])


def kept_totals(split: DataFrame) -> dict[str, FilesTotal]:
    """Returns the totals of the files that protected versions or clones keep, by reason.

    Args:
        split: see ``RetainedVersions.split``.
    """
    rows = split.where("kept IS NOT NULL").groupBy("kept").agg(F.count("*"), F.sum("length")).collect()
    return {row[0]: FilesTotal(row[1], row[2] or 0) for row in sorted(rows, key=lambda row: str(row[0]))}
