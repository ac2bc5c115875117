"""Rewrites that leave out outdated rows: the rows that stay, those that go, and the check before the commit."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.columns.column_names import quoted_name
from catalog.columns.key_columns import KeyOrder
from catalog.errors import RowsChangedError
from catalog.files.full_paths import scanned_path
from catalog.jvm.table_transaction import TableTransaction
from procedures.groups.group import RowRemoval
from procedures.rewrite.outdated_rows import file_number

# Columns beside those of the table, whose names no table is likely to have.
_FILE, _BUCKET, _BIT, _BITMAP = "use_removal_file", "use_removal_bucket", "use_removal_bit", "use_removal_bitmap"


def without_removed(rows: DataFrame, removal: RowRemoval) -> DataFrame:
    """Returns the rows that stay, in their order and their Spark partitions.

    The removed positions are bitmaps, which every executor gets: an eighth of a byte per row of the files.

    Args:
        rows: rows of a scan.
        removal: the rows to leave out.
    """
    return _marked(rows, removal).where(f"{_BITMAP} IS NULL OR NOT ({_IS_SET})").select(*map(quoted_name, rows.columns))


def removed_only(rows: DataFrame, removal: RowRemoval) -> DataFrame:
    """Returns the rows that go.

    Args:
        rows: rows of a scan.
        removal: the rows to return.
    """
    return _marked(rows, removal).where(f"{_BITMAP} IS NOT NULL AND {_IS_SET}").select(*map(quoted_name, rows.columns))


# A bit of a binary value: the byte as a letter of ISO 8859-1, whose number is that of the byte.
_IS_SET = f"shiftright(ascii(decode(substring({_BITMAP}, {_BIT} DIV 8 + 1, 1), 'ISO-8859-1')), {_BIT} % 8) % 2 = 1"


def _marked(rows: DataFrame, removal: RowRemoval) -> DataFrame:
    # Spark numbers the bits of positive values from one.
    position = F.col("position") + 1
    bitmaps = removal.rows.groupBy(F.col("file").alias(_FILE), F.bitmap_bucket_number(position).alias(_BUCKET)).agg(
        F.bitmap_construct_agg(F.bitmap_bit_position(position)).alias(_BITMAP)
    )
    place = F.col("_metadata.row_index") + 1
    placed = rows.withColumns(
        {
            _FILE: file_number(scanned_path()),
            _BUCKET: F.bitmap_bucket_number(place),
            _BIT: F.bitmap_bit_position(place).cast("int"),
        }
    )
    return placed.join(F.broadcast(bitmaps), [_FILE, _BUCKET], "left")


def check_keys(transaction: TableTransaction, order: KeyOrder) -> None:
    """Compares the keys before and after: none may be lost, and the greatest order of each must be the same.

    The rows after are read from the files that were written. The comparison shares nothing with the search for
    outdated rows.

    Args:
        transaction: has taken and written files.
        order: the key, and what orders its rows.

    Raises:
        RowsChangedError: they differ.
    """
    beside = transaction.read_dependencies().select(*order.columns)
    before = transaction.read().select(*order.columns).unionAll(beside).withColumn("is_after", F.lit(False))
    after = transaction.read_written().select(*order.columns).unionAll(beside).withColumn("is_after", F.lit(True))
    is_after, value = F.col("is_after"), F.col("order")
    compared = (
        before.unionAll(after)
        .groupBy(*order.names)
        .agg(
            F.bool_or(~is_after).alias("was_there"),
            F.bool_or(is_after).alias("is_there"),
            F.max(F.when(~is_after, value)).alias("order_before"),
            F.max(F.when(is_after, value)).alias("order_after"),
        )
    )
    changed = compared.where("was_there <> is_there OR NOT (order_before <=> order_after)").count()
    if changed:
        raise RowsChangedError(f"{changed} keys were lost or lost their latest row; nothing was committed.")
