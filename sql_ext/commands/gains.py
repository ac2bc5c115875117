"""What an optimization has gained, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.counted_nouns import counted
from catalog.errors import UseError
from catalog.quantities import duration_text, share_text, size_text
from sql_ext.commands.output import Row
from sql_ext.reading import read_report

FRACTION = 0.1


def gain_text(rows: Sequence[Row], share_before: float | None = None, share_after: float | None = None) -> str | None:
    """Returns what the committed groups have changed; None if no group was committed.

    Args:
        rows: the report of ``use.optimize``.
        share_before: share of the bytes that a sample of ``FRACTION`` read before; None if it is unknown.
        share_after: the same afterwards.
    """
    committed = [row for row in rows if row["state"] == "committed"]
    if not committed:
        return None
    before, after = (
        f"{counted(sum(row[f'{side}_files'] for row in committed), 'file')}"
        f" ({size_text(sum(row[f'{side}_bytes'] for row in committed))})"
        for side in ("input", "output")
    )
    text = f"rewrote {before} as {after} in {duration_text(sum(row['duration_ms'] for row in committed))}"
    if share_before is None or share_after is None:
        return text
    sample, after, before = (share_text(share, 0) for share in (FRACTION, share_after, share_before))
    return f"{text}; a {sample} sample reads {after} of the bytes, and read {before} before"


def sample_share(spark: SparkSession, location: str, version: int) -> float | None:
    """Plans a sample of a version and returns the share of the bytes that it reads; None if that is unknown.

    Args:
        spark: an attached session.
        location: of the table.
        version: version of the table.
    """
    try:
        data = spark.read.format("delta").option("versionAsOf", version).load(location)
        report = read_report(data.sample(FRACTION))
    except (UseError, PySparkException, Py4JError):
        return None  # the line is only information
    total = sum(scan.total_bytes for scan in report.scans)
    return sum(scan.kept_bytes for scan in report.scans) / total if total else None
