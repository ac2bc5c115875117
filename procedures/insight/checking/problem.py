"""Problems as rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from procedures.declare.result_rows import ShownRow, ddl_of

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


@dataclass(frozen=True)
class CheckRow(ShownRow):
    """A problem of the index; the last row is the summary.

    Attributes:
        check: code; ``SUMMARY`` in the last row.
        severity: ``error`` or ``warning``; ``ok`` in the summary of a table without problems.
        path: file as in the log; None in the summary.
        revision_id: the file's revision.
        cube_id: cube of the block, if the problem concerns one block.
        message: the problem; in the summary, what was checked.
    """

    check: str
    severity: str
    path: str | None
    revision_id: int | None
    cube_id: str | None
    message: str


SCHEMA = ddl_of(CheckRow)


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
