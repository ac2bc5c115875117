"""Rows of a key that has a later row: found by file and position in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from catalog.columns.key_columns import KeyOrder
from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError, NotSupportedError
from catalog.files.arrays import Integers
from catalog.files.full_paths import full_path, scanned_path
from catalog.table.snapshot import TableSnapshot
from procedures.groups.group import InputFile

ALL_TIES, ANY_TIE = "all", "any"
TIES = (ALL_TIES, ANY_TIE)
_FILE_COLUMNS = "path", "deletion_vector", "size", "rows", "first_time", "last_time", "revision", "tier", "partition"


def file_number(path: Column) -> Column:
    """A number for a file, which is much shorter than its path.

    Args:
        path: as ``full_path`` and ``scanned_path`` give it.
    """
    return F.xxhash64(path)


def numbered(files: DataFrame, location: str) -> DataFrame:
    """Files with the column ``number``; see ``file_number``.

    Args:
        files: rows with a ``path`` as in the log.
        location: root of the table.
    """
    return files.withColumn("number", file_number(full_path(F.col("path"), location)))


def numbers_of(snapshot: TableSnapshot) -> tuple[Integers, Integers]:
    """The numbers of the files of a version, and numbers that are others once a file has another deletion vector."""
    files = numbered(snapshot.log_files.select("path", "deletionVector"), snapshot.location)
    found = files.select("number", F.xxhash64("number", "deletionVector").alias("version")).toArrow()
    return found["number"].to_numpy(), found["version"].to_numpy()


@dataclass(frozen=True)
class FileWithOutdated:
    """A file with rows that have a later row of their key.

    Attributes:
        file: the file.
        number: see ``file_number``.
        revision_id: its revision, 0 when it is unindexed.
        outdated: how many such rows it has.
        tier: size tier that clustering has lifted the file to; 0 without one.
        partition: equal for files of one partition.
    """

    file: InputFile
    number: int
    revision_id: int
    outdated: int
    tier: int = 0
    partition: str = ""

    @property
    def share(self) -> float:
        """These rows as a share of the live ones; 1 where the log does not tell how many there are."""
        return 1.0 if self.file.rows is None else self.outdated / max(self.file.rows, 1)


@dataclass(frozen=True)
class OutdatedRows:
    """The rows of a version that have a later row of their key.

    Attributes:
        rows: ``file`` (see ``file_number``) and ``position`` BIGINT of each. Computed, and kept by the executors while
            this object is in use.
        files: the files that have such rows.
        later: the files that have the latest rows of the same keys.
    """

    rows: DataFrame
    files: tuple[FileWithOutdated, ...]
    later: tuple[InputFile, ...]

    @classmethod
    def find(cls, snapshot: TableSnapshot, order: KeyOrder, ties: str, new_files: Sequence[int] | None) -> OutdatedRows:
        """Reads the columns of the key and of the order.

        Rows with a null in their key have no later row.

        Args:
            snapshot: the version, with the files that are compared with each other.
            order: the key, and what orders its rows.
            ties: ``all`` if all rows with the greatest order stay, ``any`` if one of them does.
            new_files: numbers of the files that are to be compared with each other and with all others, where no two of
                the others have rows of the same key; None if all files are to be compared.

        Raises:
            InvalidArgumentError: the order of a row with a key is null.
        """
        files = numbered(_without_statistics(snapshot.log_files), snapshot.location)
        if new_files is None:
            keyed = _keyed(snapshot, files, order)
        else:
            is_new, names = F.col("number").isin(list(new_files)), order.names
            new = _keyed(snapshot, files.where(is_new), order)
            others = _keyed(snapshot, files.where(~is_new), order)
            keyed = new.unionAll(others.join(new.select(*names).distinct(), names, "left_semi").select(*new.columns))
        outdated_rows = _ranked(keyed, order.names, ties).where("rank > 1 OR unknown").drop("rank").localCheckpoint()
        return cls._of(outdated_rows, numbered(snapshot.file_rows, snapshot.location), order)

    @classmethod
    def _of(cls, outdated_rows: DataFrame, files: DataFrame, order: KeyOrder) -> OutdatedRows:
        roles = F.array(
            F.struct(F.col("file").alias("number"), F.lit(1).alias("outdated_rows")),
            F.struct(F.col("later").alias("number"), F.lit(0).alias("outdated_rows")),
        )
        by_file = (
            outdated_rows.select("unknown", F.explode(roles).alias("role"))
            .groupBy("role.number")
            .agg(
                F.sum("role.outdated_rows").alias("outdated_rows"),
                F.bool_or(F.col("role.outdated_rows") == 0).alias("is_later"),
                F.sum(F.when(F.col("unknown"), F.col("role.outdated_rows"))).alias("unknown"),
            )
        )
        listed = by_file.join(files.select("number", *_FILE_COLUMNS), "number", "left").collect()
        unknown = sum(row.unknown or 0 for row in listed)
        if unknown:
            have = agreeing(unknown, "has", "have")
            accepted = f"a column without nulls, and {counted(unknown, 'row')} with a key {have} none there"
            raise InvalidArgumentError.of("order_by", order.order.plain_name, accepted)
        if len({row.number for row in listed}) != len(listed) or any(row.path is None for row in listed):
            # Else rows of other files would be taken for outdated ones.
            raise NotSupportedError("The paths of the table's files and of its rows cannot be matched.")
        inputs = {
            row.number: InputFile(
                row.path,
                row.deletion_vector,
                row["size"],
                row.rows,
                0 if row.revision else -1,
                row.first_time,
                row.last_time,
            )
            for row in listed
        }
        outdated = tuple(
            FileWithOutdated(inputs[row.number], row.number, row.revision, row.outdated_rows, row.tier, row.partition)
            for row in listed
            if row.outdated_rows
        )
        later = tuple(inputs[row.number] for row in listed if row.is_later)
        return cls(outdated_rows.select("file", "position"), outdated, later)

    def of(self, files: Sequence[FileWithOutdated]) -> DataFrame:
        """The rows of some files; columns as ``rows``."""
        return self.rows.where(F.col("file").isin([file.number for file in files]))


def _keyed(snapshot: TableSnapshot, files: DataFrame, order: KeyOrder) -> DataFrame:
    """The rows that have a key: its columns, ``order``, ``file`` and ``position``."""
    rows = snapshot.state.numbered_rows(files.drop("number"))
    return rows.select(
        *order.columns,
        file_number(scanned_path()).alias("file"),
        F.col("_metadata.row_index").alias("position"),
    ).where(" AND ".join(f"{name} IS NOT NULL" for name in order.names))


def _ranked(keyed: DataFrame, keys: list[str], ties: str) -> DataFrame:
    """The rows with ``rank`` among those of their key, 1 for the latest; ``later`` is the file of a latest one."""
    latest_first = [F.col("order").desc_nulls_first()]
    if ties == ANY_TIE:
        latest_first += [F.col("file").desc(), F.col("position").desc()]
    of_key = Window.partitionBy(*keys).orderBy(*latest_first)
    return keyed.select(
        "file",
        "position",
        F.first("file").over(of_key).alias("later"),
        F.rank().over(of_key).alias("rank"),
        F.col("order").isNull().alias("unknown"),
    )


def _without_statistics(files: DataFrame) -> DataFrame:
    """The same files in fewer bytes, since a scan keeps its list of files in memory."""
    return files.withColumns({name: F.lit(None).cast(files.schema[name].dataType) for name in ("stats", "tags")})
