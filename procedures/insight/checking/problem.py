"""Problems as rows."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from procedures.declare.result_rows import CheckRow, ddl_of

SCHEMA = ddl_of(CheckRow)
ERROR, WARNING = "error", "warning"
# Errors that indexing the file again repairs.
UNTAGGING_HELPS = (
    "TAGS_UNREADABLE",
    "HALF_TAGGED",
    "REVISION_UNKNOWN",
    "CUBE_INVALID",
    "CUBE_TWICE",
    "WEIGHTS_REVERSED",
    "BLOCKS_OVERLAP",
    "COUNT_MISMATCH",
    "BAND_MISMATCH",
    "ROW_COUNT",
    "BLOCK_COUNT",
    "ROW_OUTSIDE_BLOCKS",
    "ROW_OUTSIDE_BAND",
)


def problem(check: str, severity: str, message: Column, cube: Column | None = None) -> Column:
    """Returns the struct of a problem without its file and revision."""
    return F.struct(
        F.lit(check).alias("check"),
        F.lit(severity).alias("severity"),
        (F.lit(None).cast("string") if cube is None else cube).alias("cube_id"),
        message.alias("message"),
    )


def rows_of(files: DataFrame, problems: list[tuple[Column, Column]]) -> DataFrame:
    """Returns a row for each problem whose condition is true.

    Args:
        files: rows with ``path`` and ``revision_id``.
        problems: condition and ``problem`` struct.
    """
    matches = F.array(*[F.when(condition, struct) for condition, struct in problems])
    return (
        files.select("path", "revision_id", F.explode(F.filter(matches, lambda p: p.isNotNull())).alias("p"))
        .select("p.check", "p.severity", "path", "revision_id", "p.cube_id", "p.message")
    )  # fmt: skip
