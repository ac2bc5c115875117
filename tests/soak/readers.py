"""The threads of a soak that read: versions by several engines, ranges and samples, and what people look at."""

import random
from itertools import cycle

from pyspark.errors import AnalysisException

from otree.weight import WeightRange
from soak.board import Soak
from soak.engines import ENGINES
from soak.history import Version
from sql_ext import read_report

# What a read may take until its version expires.
READ_SECONDS = 25
SESSION = "session"
_CHANGED = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


class Reader:
    """Compares what engines read of one version with each other, and with the rows that the log says it has."""

    def __init__(self, soak: Soak, seed: int) -> None:
        self.soak, self.session, self.chance = soak, soak.spark.newSession(), random.Random(seed)

    def step(self) -> None:
        """One comparison."""
        versions = self.soak.history.readable(READ_SECONDS)
        version = versions[-1] if self.chance.random() < 0.4 else self.chance.choice(versions)
        check = self.chance.choice((self.all_rows, self.all_rows, self._box, self._sample))
        try:
            problem = check(version)
        except Exception:  # of four engines, each with errors of its own
            if not self.soak.history.is_expired(version):
                raise
            self.soak.board.count("reads: too slow for the retention")
            return
        if problem:
            self.soak.board.fail(f"version {version.number} ({version.columns}): {problem}")

    def all_rows(self, version: Version, engine: str | None = None) -> str | None:
        """Reads all rows with an engine; returns what is wrong."""
        engine = engine or self.chance.choice((SESSION, SESSION, *ENGINES))
        found = self._digest(engine, version)
        self.soak.board.count(f"reads: all rows by {engine}")
        return None if found == version.digest else f"{engine} reads {found} in place of {version.digest}"

    def _box(self, version: Version) -> str | None:
        low, high = self.chance.randrange(1_000_003), self.chance.randrange(1_000)
        width = self.chance.choice((10_000, 100_000, 500_000))
        where = f"x BETWEEN {low} AND {low + width} AND {version.columns.y} < {high}"
        engine = self.chance.choice(ENGINES)
        found, expected = self._digest(SESSION, version, where), self._digest(engine, version, where)
        self.soak.board.count("reads: range")
        return None if found == expected else f"{where}: {found} in place of {expected}, which {engine} reads"

    def _sample(self, version: Version) -> str | None:
        fraction = self.chance.choice((0.01, 0.1, 0.5, 0.9))
        weights = WeightRange.of_sample(0.0, fraction)
        assert weights is not None
        data = self.session.sql(f"SELECT * FROM {self.soak.name} VERSION AS OF {version.number}").sample(fraction)
        report = read_report(data)
        if report.spark_samples or not report.weight_samples:
            self.soak.board.count("reads: sample left to Spark")
            return None
        found = tuple(data.selectExpr(*version.columns.digest_sql().split(", ", 1)).first())
        columns = ", ".join(report.weight_samples[0].columns)
        where = f"hash({columns}) BETWEEN {weights.first} AND {weights.last}"
        expected = self._digest("delta", version, where)
        self.soak.board.count("reads: sample")
        return None if found == expected else f"sample of {fraction}: {found} in place of {expected}"

    def _digest(self, engine: str, version: Version, where: str = "true") -> tuple:
        sql = f"SELECT {version.columns.digest_sql()} FROM {{t}} WHERE {where}"
        if engine != SESSION:
            return self.soak.engines.digest(engine, version.number, sql)
        return tuple(self.session.sql(sql.format(t=f"{self.soak.name} VERSION AS OF {version.number}")).first())


class Overviews:
    """The procedures and virtual tables that people look at."""

    def __init__(self, soak: Soak) -> None:
        self.soak, self.session = soak, soak.spark.newSession()
        name = soak.name
        tables = ("optimizations", "index_files", "cubes", "ingestion", "consumption", "revisions")
        query = f"SELECT count(*), avg(x) FROM {name} WHERE x < 500000"
        self.query_text = f"CALL use.explain_skipping('{query}')"
        self.texts = cycle(
            [
                *(f"SELECT count(*) FROM {name}.{table}" for table in tables),
                *(f"CALL use.{what}(table => '{name}')" for what in ("health", "check", "status", "optimize")),
                self.query_text,
                f"CALL use.check(table => '{name}', deep => true)",
            ]
        )

    def step(self) -> None:
        """Looks at the next one."""
        text = next(self.texts)
        try:
            rows = self.session.sql(text).collect()
        except AnalysisException as error:
            if error.getCondition() != _CHANGED or text != self.query_text:
                print(f"this overview failed: {text}")
                raise
            # Spark analyzed the query that is explained before a column was renamed, and Delta planned it afterwards.
            self.soak.board.count("overviews: explained query lost to a change of columns")
            return
        self.soak.board.count("overviews: all")
        if "use.check" in text and any(row.severity == "error" for row in rows):
            self.soak.board.fail(f"{text}: {[row for row in rows if row.severity == 'error'][:3]}")
