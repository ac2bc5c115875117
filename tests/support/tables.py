"""Delta tables of the tests: making them, filling them, and looking at their log and files."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import sql_ext
from catalog.jvm.java_values import java_class
from catalog.table.managed_table import ManagedTable
from otree.block import Block, blocks_from_json
from otree.revision import Revision, stored_revisions
from sql_ext import bridge

RULES = (
    "spark.qbeast.use.sampling.enabled",
    "spark.qbeast.use.pruning.enabled",
    "spark.qbeast.use.joins.enabled",
)


@dataclass(frozen=True)
class DeltaTable:
    """A table by name; everything it tells is read anew from the log or the disk."""

    spark: SparkSession
    name: str

    @property
    def managed(self) -> ManagedTable:
        return ManagedTable.find(self.spark, self.name)

    @cached_property
    def path(self) -> Path:
        return Path(unquote(urlparse(self.managed.location).path))

    @property
    def data(self) -> DataFrame:
        return self.spark.table(self.name) if "`" not in self.name else self.spark.sql(f"SELECT * FROM {self.name}")

    def entry(self, catalog: str):
        """The metastore's entry of the table, as one of a catalog."""
        identifier = java_class(self.spark, "org.apache.spark.sql.catalyst.TableIdentifier")
        some = self.spark._jvm.scala.Some
        database, name = self.name.split(".")[-2:]
        known = self.spark._jsparkSession.sessionState().catalog().getTableMetadata(identifier(name, some(database)))
        fields = [known.productElement(position) for position in range(1, known.productArity())]
        return known.copy(identifier(name, some(database), some(catalog)), *fields)

    def append(self, rows: DataFrame, files: int = 1) -> "DeltaTable":
        rows.coalesce(files).write.format("delta").mode("append").saveAsTable(self.name)
        return self

    def optimize(self, **arguments) -> list[Row]:
        return sql_ext.call(self.spark, "optimize", table=self.name, **arguments).collect()

    def index(self) -> "DeltaTable":
        """Indexes what is not indexed yet, without looking for more to do: a quick way to set a test up."""
        self.optimize(strategy="UnindexedFiles", max_iterations=1)
        return self

    def sql(self, text: str) -> list[Row]:
        """Runs a statement in which ``{t}`` stands for the table."""
        return self.spark.sql(text.format(t=self.name)).collect()

    # ------------------------------------------------------------------------------------------------ log

    def checkpoint(self) -> None:
        delta_log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        delta_log.forTable(self.spark._jsparkSession, self.managed.location).checkpoint()

    @property
    def version(self) -> int:
        return max(int(f.stem) for f in (self.path / "_delta_log").glob("*.json") if f.stem.isdigit())

    def actions(self, version: int) -> list[dict]:
        text = (self.path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def added(self, version: int) -> list[dict]:
        return [a["add"] for a in self.actions(version) if "add" in a]

    def removed(self, version: int) -> list[str]:
        return [a["remove"]["path"] for a in self.actions(version) if "remove" in a]

    def commit_info(self, version: int) -> dict:
        return next(a["commitInfo"] for a in self.actions(version) if "commitInfo" in a)

    def replayed(self) -> tuple[dict[str, dict], dict]:
        """Live add actions by path and the newest metadata, from the log's JSON and nothing of ours."""
        live, metadata = {}, {}
        for version in range(self.version + 1):
            actions = self.actions(version)
            # Of one commit, a file may be removed and added again with another deletion vector.
            for path in [a["remove"]["path"] for a in actions if "remove" in a]:
                live.pop(path, None)
            live.update({a["add"]["path"]: a["add"] for a in actions if "add" in a})
            metadata = next((a["metaData"] for a in actions if "metaData" in a), metadata)
        self._check_delta_counts(live)
        return live, metadata

    def _check_delta_counts(self, live: dict[str, dict]) -> None:
        """Delta adds up files from commit to commit; it writes no checkpoint any more if the sums are wrong."""
        sums = self.path / "_delta_log" / f"{self.version:020d}.crc"
        if sums.exists():
            stored = json.loads(sums.read_text())
            counted = (len(live), sum(add["size"] for add in live.values()))
            assert (stored["numFiles"], stored["tableSizeBytes"]) == counted

    @property
    def files(self) -> list["LiveFile"]:
        return [LiveFile.of(add) for add in self.replayed()[0].values()]

    @property
    def paths(self) -> set[str]:
        return {unquote(path) for path in self.replayed()[0]}

    @property
    def unindexed(self) -> list["LiveFile"]:
        return [f for f in self.files if f.revision == 0]

    @property
    def revisions(self) -> dict[int, Revision]:
        stored = stored_revisions(self.replayed()[1]["configuration"])
        assert not stored.unreadable, stored.unreadable
        return dict(stored.readable)

    # ----------------------------------------------------------------------------------------------- disk

    def on_disk(self) -> set[str]:
        """Data files in the folder, whether or not the log knows them."""
        return {str(f.relative_to(self.path)) for f in self.path.rglob("*.parquet") if "_delta_log" not in f.parts}

    def state(self) -> tuple[int, frozenset[str]]:
        """What must not change when a call is refused."""
        return self.version, frozenset(self.on_disk())

    # ----------------------------------------------------------------------------------------------- rows

    def checksum(self) -> tuple:
        return checksum(self.data)


@dataclass(frozen=True)
class LiveFile:
    """An add action, its tags and statistics read."""

    path: str
    size: int
    rows: int
    modification_time: int
    deletion_vector: dict | None
    revision: int
    blocks: tuple[Block, ...]
    write_id: str
    stats: dict

    @classmethod
    def of(cls, add: dict) -> "LiveFile":
        tags, vector = add.get("tags") or {}, add.get("deletionVector")
        stats = json.loads(add.get("stats") or "{}")
        rows = stats.get("numRecords", 0) - (vector["cardinality"] if vector else 0)
        revision = int(tags.get("revision", "0"))
        blocks = blocks_from_json(tags["blocks"]) if revision else ()
        write = tags.get("use.write", add["path"])
        return cls(add["path"], add["size"], rows, add["modificationTime"], vector, revision, blocks, write, stats)


def create(
    spark: SparkSession,
    name: str,
    columns: str,
    index: str | None = None,
    cube_size: int | None = None,
    file_bytes: int | str | None = None,
    properties: dict[str, str] | None = None,
    tail: str = "",
) -> DeltaTable:
    """Creates a Delta table.

    Args:
        spark: the session.
        name: its name.
        columns: DDL.
        index: ``use.index.columns``.
        cube_size: ``use.index.cubeSize``.
        file_bytes: ``use.index.targetFileBytes``.
        properties: further table properties.
        tail: clauses such as ``PARTITIONED BY (p)``.
    """
    wished = {
        "use.index.columns": index,
        "use.index.cubeSize": cube_size,
        "use.index.targetFileBytes": file_bytes,
        **(properties or {}),
    }
    pairs = ", ".join(f"'{key}'='{value}'" for key, value in wished.items() if value is not None)
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {tail} {f'TBLPROPERTIES ({pairs})' if pairs else ''}")
    return DeltaTable(spark, name)


def checksum(rows: DataFrame) -> tuple:
    """Number of rows and sum of their hashes: the same for the same multiset of rows, in any order."""
    numbers = F.xxhash64(*[F.col(f"`{c}`") for c in sorted(rows.columns)]).cast("decimal(38,0)")
    return tuple(rows.agg(F.count(F.lit(1)), F.sum(numbers)).collect()[0])


def numbers(spark: SparkSession, count: int, start: int = 0, partitions: int = 2) -> DataFrame:
    """Rows ``id BIGINT, x DOUBLE, y INT, s STRING``: x in [0, 1) and y in [0, 1000) do not follow id."""
    return spark.range(start, start + count, 1, partitions).select(
        "id",
        (F.pmod(F.xxhash64("id", F.lit("x")), F.lit(1_000_000)) / 1e6).alias("x"),
        F.pmod(F.xxhash64("id", F.lit("y")), F.lit(1000)).cast("int").alias("y"),
        F.concat(F.lit("s"), F.pmod("id", F.lit(97))).alias("s"),
    )


NUMBERS = "id BIGINT, x DOUBLE, y INT, s STRING"


@contextmanager
def another_engine():
    """Inside it, statements set properties and change columns unchecked, as in a session without USE."""
    checked, bridge.checked_change = bridge.checked_change, lambda *_: {}
    try:
        yield
    finally:
        bridge.checked_change = checked


class PlainReads:
    """Inside it, neither samples nor pruning use the index."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __enter__(self) -> None:
        for key in RULES:
            self._spark.conf.set(key, "false")

    def __exit__(self, *_: object) -> None:
        for key in RULES:
            self._spark.conf.unset(key)
