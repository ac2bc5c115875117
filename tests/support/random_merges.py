"""Random MERGEs, each on a table and on a copy of it, where the keys of the source restrict no files."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from random_joins import GROUPS, ZONES, JoinTables, conf, random_condition, random_subset
from tables import DeltaTable

# Statements on one copy of a table. More of them would leave few rows of those that it began with.
ROUND = 20
# Errors are those of Delta and Spark. More would leave too few statements that change rows.
MOST_ERRORS = 0.4


# Rows with the columns of a side, from no table.
_RANGE = (
    "(SELECT CAST(id AS INT) g, CAST(id - 40 AS INT) i, id - 40 l, CAST(id / 4 - 10 AS FLOAT) f, DOUBLE(id - 40) x, "
    "CAST((id - 40) / 2 AS DECIMAL(20,4)) d, concat('b', id % 10) s, date_add(DATE'1987-10-20', CAST(id AS INT)) day, "
    f"TIMESTAMP'1987-10-20 00:00:30' t, TIMESTAMP_NTZ'1987-10-20 00:00:00' n, true b FROM range({GROUPS}))"
)


@dataclass
class MergeTally:
    """What a run has looked at.

    Attributes:
        merges: statements compared.
        restricted: statements that looked for keys of their source.
        skipping: statements of these that looked at fewer files than the table has.
        changed: statements that changed rows.
        errors: statements that failed on the table and on its copy with the same error, by its condition.
        failures: statements with different results.
    """

    merges: int = 0
    restricted: int = 0
    skipping: int = 0
    changed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        errors = ", ".join(f"{condition} {count}" for condition, count in self.errors.most_common())
        return (
            f"{self.merges} MERGEs, {self.changed} changed rows; {self.restricted} looked for keys, {self.skipping} of "
            f"them in fewer files; errors on both sides: {errors or 'none'}; {len(self.failures)} failures"
        )

    @property
    def weaknesses(self) -> list[str]:
        """Why the run shows too little."""
        found = []
        if not self.skipping:
            found.append("no MERGE looked at fewer files")
        if self.errors.total() > MOST_ERRORS * self.merges:
            found.append(f"more than {MOST_ERRORS:.0%} of the MERGEs failed on both sides")
        return found


@dataclass(frozen=True)
class Copies:
    """A table, and a copy on which the keys of the source restrict no files."""

    table: DeltaTable
    copy: DeltaTable

    @classmethod
    def of(cls, original: DeltaTable, folder: Path) -> Copies:
        """Copies a table twice: its files and its log."""
        paths = [folder / side for side in ("keys", "all")]
        for path in paths:
            shutil.copytree(original.path, path)
        return cls(*(DeltaTable(original.spark, f"delta.`{path}`") for path in paths))


def _values(random: Random) -> str:
    first, count = random.randrange(GROUPS), random.choice([1, 1, 4, 30])
    rows = ", ".join(
        f"({g}, {random.choice(['NULL', g - 40, g - 40])}, {random.choice(['NULL', f'{g - 40}L'])}, "
        f"CAST({g / 4 - 10} AS FLOAT), {random.choice(['NULL', '-0.0D', 'DOUBLE(40)', f'{g - 40}D'])}, "
        f"CAST({(g - 40) / 2} AS DECIMAL(20,4)), 'a{g % 10}', DATE'1987-10-20' + {g}, "
        f"TIMESTAMP'1987-10-21 00:00:30', TIMESTAMP_NTZ'1987-11-20 00:00:00', {g} % 2 = 0)"
        for g in range(first, first + count)
    )
    return f"(SELECT * FROM VALUES {rows} AS v(g, i, l, f, x, d, s, day, t, n, b))"


def _source(tables: JoinTables, random: Random) -> str:
    side, second = (random.choice(tables.sides).name for _ in range(2))
    some = f"SELECT * FROM {side} WHERE {random_subset(random)}"
    columns = "g, i, l, f, x, d, s, day, t, n, b"
    greatest = ", ".join(f"max({column}) {column}" for column in columns.split(", ") if column != "i")
    return random.choice(
        [
            f"({some})",
            f"({some})",
            f"({some} AND rand() < 2)",
            f"(SELECT DISTINCT * FROM ({some}))",
            f"({some} UNION ALL SELECT * FROM {second} WHERE {random_subset(random)})",
            f"(SELECT b.* FROM ({some}) b JOIN {second} c ON b.g = c.g)",
            f"(SELECT i, {greatest} FROM ({some}) GROUP BY i)",
            f"(SELECT {columns} FROM ({some}) ORDER BY g LIMIT 5)",
            f"(SELECT * FROM {_RANGE} WHERE {random_subset(random)})",
            _values(random),
            _values(random),
        ]
    )


def _condition(random: Random) -> str:
    own = random.choice(
        [
            *["t.id = s.g"] * 4,
            "t.id = s.g + 300",
            "t.id + 5 = s.g",
            "t.id = s.g * 11L",
            "CAST(t.id AS DOUBLE) = CAST(s.g AS DOUBLE)",
            "CAST(t.id AS INT) = s.g",
            "CAST(t.id AS STRING) = CAST(s.g AS STRING)",
            "t.i = s.i AND t.day = s.day",
            "t.id = s.g OR t.l = s.l",
        ]
    )
    both = random.choice(
        [
            own,
            random_condition(random, "t", "s"),
            random_condition(random, "t", "s"),
            f"{own} AND {random_condition(random, 't', 's')}",
        ]
    )
    extra = random.choice(["", "", "", " AND t.id > 100", " AND s.g % 2 = 0", " AND t.p = s.g % 3", " AND t.p = 1"])
    return f"{both}{extra}"


def _clauses(random: Random) -> str:
    changes = random.choice(
        [
            "s = concat(coalesce(t.s, ''), '!')",
            "l = s.l, x = s.x",
            "i = s.i, day = s.day, t = s.t",
            "p = s.g % 3, s = s.s",
            "d = NULL, st = NULL",
        ]
    )
    insert = "INSERT (id, i, l, day, x, s, p) VALUES (s.g + 5000, s.i, s.l, s.day, s.x, s.s, s.g % 3)"
    gone = f"t.id % 50 = {random.randrange(50)}"
    matched = random.choice(
        [
            f"WHEN MATCHED THEN UPDATE SET {changes}",
            f"WHEN MATCHED THEN UPDATE SET {changes}",
            f"WHEN MATCHED AND s.g % 3 = 0 THEN UPDATE SET {changes}",
            "WHEN MATCHED AND t.id % 4 = 1 THEN DELETE",
            f"WHEN MATCHED AND t.id % 7 = 1 THEN DELETE WHEN MATCHED AND s.b THEN UPDATE SET {changes}",
            "WHEN MATCHED AND t.x > s.x THEN DELETE",
            "",
        ]
    )
    unmatched = random.choice([f"WHEN NOT MATCHED THEN {insert}", f"WHEN NOT MATCHED AND s.b THEN {insert}", ""])
    by_source = random.choice(
        [
            *[""] * 12,
            f"WHEN NOT MATCHED BY SOURCE AND {gone} THEN UPDATE SET s = 'gone'",
            f"WHEN NOT MATCHED BY SOURCE AND {gone} THEN DELETE",
        ]
    )
    clauses = " ".join(clause for clause in (matched, unmatched, by_source) if clause)
    return clauses or f"WHEN NOT MATCHED THEN {insert}"


def random_merge(tables: JoinTables, random: Random) -> str:
    """A statement into ``{t}``."""
    return f"MERGE INTO {{t}} t USING {_source(tables, random)} s ON {_condition(random)} {_clauses(random)}"


def _outcome(table: DeltaTable, statement: str, keys: bool) -> tuple[object, ...]:
    """The counts that a statement returns, or the condition of its error."""
    with conf(table.spark, {"spark.qbeast.use.joins.enabled": str(keys).lower()}):
        try:
            return tuple(table.sql(statement)[0])
        except (PySparkException, Py4JJavaError) as error:
            # An error of a broadcast arrives as Java's.
            named = re.search(r"\[([A-Z_.]+)\]", str(error))
            return "error", named[1] if named else str(error)[:60]


def check_merge(copies: Copies, statement: str, tally: MergeTally) -> None:
    """Runs a statement on a table and on its copy, and compares results and rows."""
    table, copy = copies.table, copies.copy
    before = table.version
    outcome, wanted = _outcome(table, statement, keys=True), _outcome(copy, statement, keys=False)
    tally.merges += 1
    if outcome != wanted:
        tally.failures.append(f"{statement}\n  returned {outcome}, not {wanted}")
    elif outcome[0] == "error":
        tally.errors[str(outcome[1])] += 1
    elif table.checksum() != copy.checksum():
        tally.failures.append(f"{statement}\n  left other rows")
    else:
        tally.changed += bool(outcome[0])
    if table.version > before:
        _count(table, tally)


def _count(table: DeltaTable, tally: MergeTally) -> None:
    """Counts what the newest commit says of its statement."""
    version = table.version
    note = json.loads(table.commit_info(version)["tags"]["use.statement"])
    if "keys_error" in note:
        tally.failures.append(f"version {version} of {table.name} could not read keys: {note['keys_error']}")
    if "files_with_keys" in note:
        former = json.loads((table.path / "_delta_log" / f"{version - 1:020d}.crc").read_text())
        tally.restricted += 1
        tally.skipping += note["files_with_keys"] < former["numFiles"]


def run_merges(
    spark: SparkSession, tables: JoinTables, folder: Path, seed: int, count: int, tally: MergeTally
) -> Iterator[int]:
    """Checks random MERGEs.

    Args:
        spark: the session.
        tables: as ``make_join_tables`` makes them; they are not changed.
        folder: receives the copies.
        seed: of the random numbers; each statement has a seed of its own, from this one upward. The first one and each
            ``ROUND``-th after it begin with new copies.
        count: how many statements.
        tally: receives what was found.

    Yields:
        The seed of each statement, once it is done.
    """
    copies: list[Copies] = []
    for number in range(seed, seed + count):
        if (number - seed) % ROUND == 0:
            copies = [Copies.of(table, folder / f"{number}-{position}") for position, table in enumerate(tables.facts)]
        random = Random(number)
        settings = {
            "spark.sql.ansi.enabled": random.choice(["false", "false", "false", "true"]),
            "spark.sql.session.timeZone": random.choice(ZONES),
            "spark.qbeast.use.merges.bytes": "1",
            "spark.qbeast.use.joins.keys": random.choice(["5", "50000", "50000"]),
            "spark.databricks.delta.merge.materializeSource": random.choice([*["auto"] * 8, "all", "none"]),
        }
        with conf(spark, settings):
            check_merge(random.choice(copies), random_merge(tables, random), tally)
        yield number
