"""Rows and text that explain which files a query skips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.counted_nouns import counted
from catalog.jvm.read_report import PlannedSample
from catalog.jvm.skipping_report import SkippingPlan, SkippingScan
from catalog.pruning.join_reasons import ADVICE, JoinReason
from catalog.quantities import size_text
from procedures.declare.result_rows import INT, ShownRow
from procedures.insight.skipping.reasons import SkippingReason
from procedures.insight.skipping.scan_findings import findings_of

# Each step: the name of the files that it keeps, and what it does.
_STEPS = (
    ("PARTITION_VALUES", "partition", "Removed by conditions on partition columns."),
    ("STATISTICS", "candidate", "Removed by Delta's minimum and maximum of each column."),
    ("CUBES", "cube", "Removed by the index: no cube of the file meets the conditions."),
    ("WEIGHTS", "kept", "Removed by the index: the rows of the file are not in the sample."),
)
_LIMIT = ("LIMIT", "candidate", "Removed by LIMIT: the other files have enough rows.")


@dataclass(frozen=True)
class ExplainSkippingRow(ShownRow):
    """A step of the file selection of one scan, a reason why files are not skipped, or what to do about a table.

    Attributes:
        scan: number of the scan in the plan, from 1; None for a reason that concerns the whole query, and for advice.
        table: full name of the table of the scan.
        item: step (``TABLE``, ``PARTITION_VALUES``, ``STATISTICS``, ``LIMIT``, ``CUBES``, ``WEIGHTS``, ``JOINS``,
            ``READ``), ``JOIN`` for what one join leaves, reason, or ``ADVICE``.
        files: files of the table, that the step removes, that are read, or that the reason concerns.
        bytes: their bytes, or those that an average read saves after what is advised; None if they are not known.
        condition: condition that the reason concerns, or the code of the advice.
        message: what the step does, or what would help.
    """

    scan: int | None = field(metadata=INT)
    table: str | None
    item: str
    files: int | None
    bytes: int | None
    condition: str | None
    message: str


def explanation_rows(plan: SkippingPlan, *, pruning_enabled: bool) -> list[ExplainSkippingRow]:
    """Returns the steps and reasons of each scan, then the reasons of the query.

    Args:
        plan: planned query.
        pruning_enabled: whether the session lets the index select files.
    """
    rows = [
        row
        for number, scan in enumerate(plan.scans, 1)
        for row in _rows_of_scan(number, scan, pruning_enabled=pruning_enabled)
    ]
    if not plan.scans:
        message = (
            "The query scans no Delta table that Spark plans with file skipping: its rows come from memory, a cache, a "
            "virtual table or another format, or spark.databricks.delta.stats.skipping is false."
        )
        rows.append(ExplainSkippingRow(None, None, SkippingReason.NO_DELTA_SCAN.value, None, None, None, message))
    return rows + [_row_of_sample(sample) for sample in plan.samples]


def _rows_of_scan(number: int, scan: SkippingScan, *, pruning_enabled: bool) -> Iterator[ExplainSkippingRow]:
    counts, table = scan.counts, scan.counts["table"]

    def row(item: str, files: int, size: int, message: str) -> ExplainSkippingRow:
        return ExplainSkippingRow(number, table, item, files, size, None, message)

    files, size = counts["total_files"], counts["total_bytes"]
    yield row("TABLE", files, size, f"All files of version {counts['version']}.")
    for item, name, message in (_STEPS[0], _LIMIT if counts["is_limited"] else _STEPS[1], *_STEPS[2:]):
        files_left, size_left = counts[f"{name}_files"], counts[f"{name}_bytes"]
        yield row(item, files - files_left, size - size_left, message)
        files, size = files_left, size_left
    if counts["joins"]:
        joined, joined_size = counts["joined_files"], counts["joined_bytes"]
        yield row("JOINS", files - joined, size - joined_size, "Removed by the keys of joins, while the query runs.")
        files, size = joined, joined_size
    yield row("READ", files, size, "Read by the query.")
    for join in counts["joins"]:
        yield _row_of_join(number, scan, join)
    for finding in findings_of(scan, pruning_enabled=pruning_enabled):
        yield ExplainSkippingRow(
            number, table, finding.reason.value, finding.files, finding.bytes, finding.condition, finding.message
        )


def _row_of_join(number: int, scan: SkippingScan, join: Mapping[str, Any]) -> ExplainSkippingRow:
    columns = ", ".join(join["columns"])
    condition = f"join with {join['side']} on {columns}"
    total = counted(scan.counts["total_files"], "file")
    left, size = (join["files"], join["bytes"])
    job = ""
    if join["job_files"] is not None:
        job = f" A job reads the keys from {counted(join['job_files'], 'file')} ({size_text(join['job_bytes'])})."
    if join["reason"] is None:
        keys = counted(join["keys"], "key")
        message = f"{left} of {total} are left after this join, whose other side has {keys}.{job}"
        return ExplainSkippingRow(number, scan.counts["table"], "JOIN", left, size, condition, message)
    message = f"{ADVICE[JoinReason(join['reason'])]}{job}"
    return ExplainSkippingRow(number, scan.counts["table"], join["reason"], left, size, condition, message)


def _row_of_sample(sample: PlannedSample) -> ExplainSkippingRow:
    fraction = f"sample of fractions {sample.lower:g} to {sample.upper:g}"
    detail = f", {sample.detail}" if sample.detail else ""
    message = (
        f"Spark reads all rows and takes the sample itself: {sample.reason}{detail}. The page on SQL lists these codes."
    )
    return ExplainSkippingRow(None, None, SkippingReason.SAMPLE_LEFT_TO_SPARK.value, None, None, fraction, message)


def explanation_text(rows: Sequence[ExplainSkippingRow]) -> str:
    """Returns the rows as text: a line per step and per reason."""
    lines = []
    for row in rows:
        if row.item == "TABLE":
            lines.append(f"Scan {row.scan}: {row.table}")
        counts = "" if row.files is None else f"{row.files:,} files"
        counts += "" if row.bytes is None else f", {size_text(row.bytes)}"
        condition = "" if row.condition is None else f" [{row.condition}]"
        lines.append(f"  {row.item + condition}: {counts + '. ' if counts else ''}{row.message}")
    return "\n".join(lines)
