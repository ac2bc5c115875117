"""Random queries over one table of some hundred small files, each against the same query without the index.

Spark decides each condition row by row, in one scan that filters nothing and notes the file of each row. A condition is
then planned through the index: each file with a row that makes it true has to be kept. Of some conditions, and of
joins, subqueries and samples, the rows themselves are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from random_conditions import COLUMNS, condition, rows, tests_of_truth
from tables import DeltaTable, PlainReads, create

from sql_ext import read_report

# Each revision indexes other columns, in other ways, and has its own files. The last one is that of samples.
SPACES = ("b,f,s:quantiles", "i:quantiles,t,c", "b,n,d:quantiles,s:hashing", "c,j,i")
ROWS_OF_SPACE = 900
CONDITIONS_AT_ONCE, EXECUTED_OF_THEM = 24, 3


@dataclass
class Tally:
    """What a run has looked at.

    Attributes:
        conditions: conditions and queries compared.
        skipping: how many of their scans read fewer files than without the index.
        scans: how many scans there were.
        files: files that these scans would have read.
        skipped: files that the index skipped.
        rows: rows that were selected.
    """

    conditions: int = 0
    skipping: int = 0
    scans: int = 0
    files: int = 0
    skipped: int = 0
    rows: int = 0
    failures: list[str] = field(default_factory=list)

    def count(self, data: DataFrame) -> None:
        for scan in read_report(data).scans:
            self.scans += 1
            self.skipping += scan.kept_files < scan.candidate_files
            self.files += scan.candidate_files
            self.skipped += scan.candidate_files - scan.kept_files

    def compare(self, what: str, found: Counter, wanted: Counter) -> None:
        self.conditions += 1
        self.rows += sum(found.values())
        if found != wanted:
            lost, added = wanted - found, found - wanted
            self.failures.append(
                f"{what}\n  {sum(lost.values())} rows lost, such as {sorted(lost, key=str)[:3]}; "
                f"{sum(added.values())} too many, such as {sorted(added, key=str)[:3]}"
            )

    @property
    def text(self) -> str:
        return (
            f"{self.conditions} conditions and queries, {self.skipping} of {self.scans} scans skipped files, "
            f"{self.skipped} of {self.files} files; {self.rows} rows selected; {len(self.failures)} failures"
        )


def make_table(spark: SparkSession, name: str, random: Random) -> DeltaTable:
    """A partitioned table of some hundred files in several revisions; Delta's statistics skip none of them."""
    columns = ", ".join(["id BIGINT", "p INT", *(f"{name} {c.sql_type}" for name, c in COLUMNS.items())])
    table = create(
        spark, name, columns, cube_size=12, file_bytes=1500, tail="PARTITIONED BY (p)",
        properties={"delta.dataSkippingNumIndexedCols": "0"},
    )  # fmt: skip
    for number, space in enumerate(SPACES):
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.columns'='{space}')")
        table.append(spark.sql(rows(random, number * ROWS_OF_SPACE, ROWS_OF_SPACE))).index()
    # A few rows that are not indexed, and a file from which some were deleted.
    table.append(spark.sql(rows(random, 1_000_000, 20)))
    return table


def _resolved(table: DeltaTable, random: Random, count: int) -> list[str]:
    """Random conditions whose types Spark takes; not every pair of types can be compared."""
    found: list[str] = []
    while len(found) < count:
        text = condition(random)
        with suppress(AnalysisException):
            table.data.where(text)
            found.append(text)
    return found


def check_conditions(table: DeltaTable, conditions: Sequence[str], executed: int, tally: Tally) -> None:
    """Compares the files kept for each condition, and the rows that some select, with those for which it is true."""
    decided = [f"coalesce({text}, false) c{k}" for k, text in enumerate(conditions)]
    with PlainReads(table.spark):
        truths = table.data.selectExpr("id", "_metadata.file_name", *decided).collect()
    everything = {row[1] for row in truths}
    for k, text in enumerate(conditions):
        kept = {unquote(path.rsplit("/", 1)[-1]) for path in table.data.where(text).inputFiles()}
        tally.scans += 1
        tally.files += len(everything)
        tally.skipped += len(everything - kept)
        tally.skipping += kept < everything
        needed = Counter(row[1] for row in truths if row[k + 2])
        if needed.keys() - kept:
            # NaN NOT IN (NULL, …) with more than ten values may be true as a column, and is not as a filter of Spark.
            with PlainReads(table.spark):
                filtered = table.data.where(text).select("_metadata.file_name").collect()
            needed = Counter(row.file_name for row in filtered)
        lost = {file: rows for file, rows in needed.items() if file not in kept}
        tally.compare(f"files kept for {text}", needed - Counter(lost), needed)
    branches = [f"SELECT {k} k, id FROM {table.name} WHERE {text}" for k, text in enumerate(conditions[:executed])]
    found: list[Counter] = [Counter() for _ in branches]
    for k, row_id in table.spark.sql(" UNION ALL ".join(branches)).collect():
        found[k][row_id] += 1
    for k, rows_found in enumerate(found):
        tally.compare(conditions[k], rows_found, Counter(row[0] for row in truths if row[k + 2]))


def _query(table: DeltaTable, random: Random) -> str:
    name = table.name
    first, second, third = _resolved(table, random, 3)
    key, inner = random.choice(list(COLUMNS)), f"(SELECT * FROM {name} WHERE {{}})"
    a, b = inner.format(first), inner.format(second)
    join = random.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    order = random.choice(["<", "=", ">="])
    return random.choice(
        [
            f"SELECT a.id FROM {a} a {join} {b} b ON a.{key} {random.choice(['=', '<=>'])} b.{key}",
            f"SELECT a.id, b.id FROM {a} a LEFT JOIN {b} b ON a.id = b.id + 1",
            # The partitions of a are known only when b was read.
            f"SELECT /*+ BROADCAST(b) */ a.id FROM {a} a JOIN (SELECT DISTINCT p FROM {b} WHERE id < 2) b ON a.p = b.p",
            f"SELECT id FROM {name} WHERE {key} IN (SELECT {key} FROM {name} WHERE {third} AND id % 9 = 0) AND {first}",
            f"SELECT id FROM {name} WHERE {key} {order} (SELECT max({key}) FROM {name} WHERE {third}) AND {second}",
            f"SELECT id FROM {name} o WHERE EXISTS (SELECT 1 FROM {b} i WHERE i.id = o.id) AND {first}",
            f"SELECT id FROM {a} WHERE {second} UNION ALL SELECT id FROM {name} WHERE {third}",
            f"SELECT {key}, count(*), min(id), sum(p) FROM {a} GROUP BY {key} HAVING min(id) % 2 = 0",
        ]
    )


def check_query(table: DeltaTable, random: Random, tally: Tally) -> None:
    """Compares a join, subquery or aggregation with the same one without the index."""
    text = _query(table, random)
    with PlainReads(table.spark):
        wanted = Counter(map(str, table.spark.sql(text).collect()))
    data = table.spark.sql(text)
    tally.count(data)
    tally.compare(text, Counter(map(str, data.collect())), wanted)


def check_sample(table: DeltaTable, random: Random, tally: Tally) -> None:
    """Compares a sample under a condition with the rows whose hash lies below the fraction."""
    percent = random.choice([0.01, 0.5, 1, 5, 10, 33.3, 50, 90, 100, round(random.uniform(0, 100), 3)])
    below, above = _resolved(table, random, 2)
    below = "true" if "hash(" in below else below
    inner = f"(SELECT * FROM {table.name} WHERE {below})"
    text = f"SELECT id FROM {inner} TABLESAMPLE ({percent} PERCENT) WHERE {above}"
    # As the format defines it: the fraction of all hashes, cut toward zero, exclusive but for the largest hash.
    end = 2**31 if percent == 100 else int(percent / 100 * 4294967295.0 - 2147483648.0)
    weight = F.hash(*[column.split(":")[0] for column in SPACES[-1].split(",")]).cast("bigint")
    with PlainReads(table.spark):
        whole = table.spark.sql(f"SELECT * FROM {inner} WHERE {above}")
        wanted = Counter(r.id for r in whole.where(weight < end).select("id").collect())
    sampled = table.spark.sql(text)
    report = read_report(sampled)
    assert not report.spark_samples, (text, report)
    tally.count(sampled)
    tally.compare(text, Counter(r.id for r in sampled.collect()), wanted)


def check_split(table: DeltaTable, random: Random, tally: Tally) -> None:
    """Whatever its weights, the parts of a random split hold each row once."""
    count = random.choice([2, 3, 6, 7])
    shares = random.choice([[1.0] * count, [random.choice([0.0, 0.1, 1 / 3, 2.5, 1e-9]) for _ in range(count)] + [0.2]])
    (text,) = _resolved(table, random, 1)
    parts = table.data.where(text).select("id").randomSplit(shares, seed=random.randrange(100))
    data = parts[0]
    for part in parts[1:]:
        data = data.union(part)
    tally.count(data)
    with PlainReads(table.spark):
        wanted = Counter(r.id for r in table.data.where(text).select("id").collect())
    tally.compare(f"randomSplit({shares}) of {text}", Counter(r.id for r in data.collect()), wanted)


def run(table: DeltaTable, seed: int, conditions: int, tally: Tally) -> Iterator[int]:
    """Checks random conditions, and a query, a sample and a split for each dozen of them.

    Args:
        table: as ``make_table`` makes it.
        seed: of the random numbers; each batch has a seed of its own, from this one upward.
        conditions: about how many conditions.
        tally: receives what was found.

    Yields:
        The seed of each batch, once it is done.
    """
    for batch in range(-(-conditions // CONDITIONS_AT_ONCE)):
        random = Random(seed + batch)
        with _without_ansi(table.spark):
            conditions = [*_resolved(table, random, CONDITIONS_AT_ONCE), *tests_of_truth(random)]
            check_conditions(table, conditions, EXECUTED_OF_THEM, tally)
            for check in (check_query, check_sample, check_split):
                check(table, random, tally)
        yield seed + batch


@contextmanager
def _without_ansi(spark: SparkSession) -> Iterator[None]:
    """Casts give null in place of an error, and types are compared that ANSI keeps apart."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
