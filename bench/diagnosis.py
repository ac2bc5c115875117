"""What ``use-spark diagnose`` predicts, against what is read after the index that it recommends was made.

Each table is diagnosed without Spark, indexed as the diagnosis says, and read: ranges, boxes and samples with 1 % of
the rows, whose ends are the quantiles of all rows and not of a sample.

    make bench-diagnosis
    make bench-diagnosis ARGS="--scale 0.2 --json bench/results/diagnosis.json"
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bench_session import start_session
from diagnosis_tables import TestTable, make_tables, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext
from sql_ext.diagnosis.results import TableDiagnosis
from sql_ext.readers import diagnose

SHARE = 0.01
PLACES = 7
# Predictions hold if they are at most so far from what was measured.
TOLERANCE = 0.2


@dataclass(frozen=True)
class Read:
    """A kind of read: shares of the bytes of the table, as means.

    Attributes:
        kind: range, box or sample.
        today: measured before.
        predicted: with the index, as diagnosed.
        measured: with the index.
    """

    kind: str
    today: float
    predicted: float
    measured: float

    @property
    def is_right(self) -> bool:
        """Whether the prediction holds."""
        return abs(self.predicted / self.measured - 1) <= TOLERANCE

    @property
    def is_kept(self) -> bool:
        """Whether a promised saving came true."""
        return self.predicted >= self.today or self.measured <= self.today


@dataclass(frozen=True)
class Figures:
    """A table.

    Attributes:
        name: its name.
        bytes: its size before.
        files: number of files before.
        seconds: of the diagnosis.
        columns: recommended columns; None for no index.
        verdict: the sentence.
        bytes_written: size after the index was made.
        reads: what was predicted and measured.
    """

    name: str
    bytes: int
    files: int
    seconds: float
    columns: str | None
    verdict: str
    bytes_written: int
    reads: tuple[Read, ...]


def ends_of(rows: pa.Table, name: str, share: float) -> list[tuple[object, object]]:
    """Ranges of a column with a share of the rows each, evenly spaced, from all values."""
    values = pc.drop_null(rows.column(name))
    ordered = values.take(pc.array_sort_indices(values.combine_chunks()))
    last = len(ordered) - 1
    starts = [(last - share * last) * (place + 0.5) / PLACES for place in range(PLACES)]
    return [(ordered[round(start)].as_py(), ordered[round(start + share * last)].as_py()) for start in starts]


def queries_of(data: DataFrame, rows: pa.Table, columns: list[str]) -> dict[str, list[DataFrame]]:
    """Returns the queries by kind."""
    found = {
        f"range of {name}": [data.where(F.col(name).between(*ends)) for ends in ends_of(rows, name, SHARE)]
        for name in columns
    }
    if len(columns) > 1:
        sides = [ends_of(rows, name, SHARE ** (1 / len(columns))) for name in columns]
        boxes = []
        for place in range(PLACES):
            box = data
            for number, (name, side) in enumerate(zip(columns, sides, strict=True)):
                box = box.where(F.col(name).between(*side[(place * (number + 1) + number) % PLACES]))
            boxes.append(box)
        found["box"] = boxes
    found["sample"] = [data.sample(SHARE)]
    return found


def share_read(queries: list[DataFrame]) -> float:
    """The mean share of the bytes in the files that queries open."""
    shares = []
    for query in queries:
        scans = sql_ext.read_report(query).scans
        shares.append(sum(scan.kept_bytes for scan in scans) / max(sum(scan.total_bytes for scan in scans), 1))
    return float(np.mean(shares))


def predicted_reads(found: TableDiagnosis, columns: list[str]) -> dict[str, float]:
    """Returns the predictions by kind."""
    predicted = {f"range of {c.name}": c.reads.indexed for c in found.columns if c.name in columns and c.reads}
    if found.box is not None and len(columns) > 1:
        predicted["box"] = found.box.indexed
    predicted["sample"] = found.sample.indexed
    return {kind: share for kind, share in predicted.items() if share is not None}


def measure(spark: SparkSession, table: TestTable, count: int, target: int, home: Path) -> Figures:
    """Writes, diagnoses, indexes and reads a table."""
    rows, folder = table.rows(count), home / table.name.replace(" ", "_").replace(",", "")
    write(table, rows, folder)
    name = f"delta.`{folder}`"
    if table.delete is not None:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        spark.sql(f"DELETE FROM {name} WHERE {table.delete}")
    begun = time.monotonic()
    (found,) = diagnose(folder, target_file_bytes=target).tables
    seconds = time.monotonic() - begun
    reads: list[Read] = []
    written = 0
    if found.recommended is not None:
        columns = [entry.partition(":")[0] for entry in found.recommended.split(",")]
        before = {
            kind: share_read(of)
            for kind, of in queries_of(spark.read.format("delta").load(str(folder)), rows, columns).items()
        }
        sql_ext.call(spark, "index", table=str(folder), columns=found.recommended, target_file_bytes=target).collect()
        sql_ext.call(spark, "optimize", table=str(folder)).collect()
        data = spark.read.format("delta").load(str(folder))
        after = {kind: share_read(of) for kind, of in queries_of(data, rows, columns).items()}
        predicted = predicted_reads(found, columns)
        reads = [Read(kind, before[kind], predicted[kind], after[kind]) for kind in after]
        written = int(spark.sql(f"DESCRIBE DETAIL {name}").first()["sizeInBytes"])
    return Figures(
        table.name, found.bytes, found.files, seconds, found.recommended, found.verdict.sentence, written, tuple(reads)
    )


def lines_of(figures: Figures) -> str:
    """Returns a table's figures for people."""
    lines = [f"{figures.name}: {figures.columns or 'no index'} ({figures.seconds:.1f} s). {figures.verdict}"]
    for read in figures.reads:
        note = "" if read.is_right else "  WRONG"
        note += "" if read.is_kept else "  PROMISED A SAVING"
        shares = f"today {read.today:7.2%}  predicted {read.predicted:7.2%}  measured {read.measured:7.2%}"
        lines.append(f"  {read.kind:28} {shares}{note}")
    return "\n".join(lines)


def main() -> int:
    """Runs the comparison; ends with 1 if a prediction is wrong by more than the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.2, help="of TPC-H")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the other tables")
    parser.add_argument("--target", type=int, default=1_000_000, help="bytes of a file of the index")
    parser.add_argument("--only", help="name of the only table")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="use-diagnosis-") as home:
        spark = start_session("bench-diagnosis", Path(home), "4g", {"spark.sql.session.timeZone": "UTC"})
        for table in make_tables(options.scale):
            if options.only in (None, table.name):
                found.append(measure(spark, table, options.rows, options.target, Path(home)))
                print(lines_of(found[-1]), flush=True)
        spark.stop()
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", "utf-8")
    reads = [read for one in found for read in one.reads]
    print(
        f"{len(reads)} reads of {len(found)} tables: {sum(read.is_right for read in reads)} within {TOLERANCE:.0%}, "
        f"{sum(not read.is_kept for read in reads)} promised a saving that did not come"
    )
    return 0 if all(read.is_right and read.is_kept for read in reads) else 1


if __name__ == "__main__":
    sys.exit(main())
