"""A table whose rows and columns are replaced again and again, beside everything that maintains it.

    make soak-replacements MINUTES=10

One writer overwrites the table or a partition, empties it, restores older versions, and creates the table anew with
other partitions, another order of columns and another index. A second writer appends. The service, procedures that
change the index, vacuum, purge, consolidation of the log, protections and readers run beside them.

Each version must have the rows that its log says. Delta without USE, delta-rs and DuckDB read the versions, too. Ends
with 0 if every answer was right, and every error was a conflict.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import SparkSession  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import DeltaTable  # noqa: E402

from catalog.jvm.java_errors import known_error  # noqa: E402
from procedures.service.service import Service  # noqa: E402
from soak.arguments import arguments  # noqa: E402
from soak.board import Board, Soak  # noqa: E402
from soak.engines import Engines  # noqa: E402
from soak.history import X_SQL, Columns, History, Statement, Values, x_of  # noqa: E402
from soak.maintenance import Maintenance  # noqa: E402
from soak.readers import READ_SECONDS, Overviews, Reader  # noqa: E402
from soak.soak import SERVICE, verdict  # noqa: E402

NAME, RETENTION_SECONDS, ROWS = "replaced", 90, 400
PARTITIONS = 4
REMEMBERED_VERSIONS = 500
FIRST_APPENDED = 100_000_000
INDEXES = ("x,y", "y,x", "id", "x:hashing,id", "y", None)
KINDS = (*("insert", "overwrite", "delete", "truncate", "create", "select"), *("partition", "restore") * 2)


def number_of(row_id: int) -> int:
    """What a row adds to the digest of a version; all its values follow from its id."""
    return Values(x_of(row_id), row_id % 1000).number(row_id)


def rows_after(what: Statement, before: Set[int], restored: Set[int]) -> Set[int]:
    """The ids that a statement leaves, if nobody else commits between its read and its commit.

    Args:
        what: the statement; ``rest`` is the partition, or the rest of a division by 3.
        before: the ids of the version that it has read.
        restored: the ids of the version that it restores.
    """
    new = set(range(what.low, what.high))
    match what.kind:
        case "insert":
            return before | new
        case "overwrite" | "select":
            return new
        case "partition":
            others = {row for row in before if row % PARTITIONS != what.rest}
            return others | {row for row in new if row % PARTITIONS == what.rest}
        case "delete":
            return {row for row in before if row % 3 != what.rest}
        case "restore":
            return restored
        case "truncate" | "create":
            return set()
    raise ValueError(what.kind)


@dataclass
class ReplacedHistory(History):
    """Follows the log. What a statement adds and removes depends on the version that it has read."""

    ids: dict[int, Set[int]] = field(default_factory=lambda: {-1: frozenset()})

    def _apply_commit(self, number: int, info: dict) -> tuple[Columns, tuple[int, int]]:
        newest = self.ids[number - 1]
        if not info["operation"].startswith("USE ") and info.get("userMetadata") in self._begun:
            what, _ = self._begun.pop(info["userMetadata"])
            read = self.ids[info.get("readVersion", -1)]
            left = rows_after(what, read, self.ids.get(what.low, frozenset()) if what.kind == "restore" else ())
            newest = frozenset((newest - (read - left)) | (left - read))
        self.ids[number] = newest
        self.ids.pop(number - REMEMBERED_VERSIONS, None)
        return Columns(), (len(newest), sum(map(number_of, newest)))


class Replacer:
    """The writer that replaces rows, partitions and the table."""

    def __init__(self, soak: Soak, seed: int) -> None:
        self.soak, self.session, self.chance = soak, soak.spark.newSession(), random.Random(seed)
        self.next = 0

    def step(self) -> None:
        """One statement."""
        kind = self.chance.choice(KINDS)
        versions = self.soak.history.readable(READ_SECONDS)
        version = self.chance.choice(versions)
        low, self.next = self.next, self.next + self.chance.randint(1, ROWS)
        rows = f"SELECT id, {X_SQL} AS x, CAST(id % 1000 AS INT) AS y, CAST(id % {PARTITIONS} AS INT) AS p"
        rows = f"{rows} FROM range({low}, {self.next}, 1, {self.chance.randint(1, 3)})"
        rest = self.chance.randrange(3)
        self.session.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
        texts = {
            "insert": f"INSERT INTO {{t}} (id, x, y, p) {rows}",
            "overwrite": f"INSERT OVERWRITE {{t}} (id, x, y, p) {rows}",
            "delete": f"DELETE FROM {{t}} WHERE id % 3 = {rest}",
            "truncate": "TRUNCATE TABLE {t}",
            "restore": f"RESTORE TABLE {{t}} TO VERSION AS OF {version.number}",
            "create": create_text(self.chance),
            "select": f"{create_text(self.chance, with_columns=False)} AS {rows}",
        }
        partition = f"{rows} WHERE id % {PARTITIONS} = {rest}"
        text = self._replace_partition(partition, rest) if kind == "partition" else texts[kind]
        what = Statement(kind, text, version.number if kind == "restore" else low, self.next, rest)
        try:
            self.soak.execute(self.session, what)
        except Exception:
            if kind != "restore" or not self.soak.history.is_expired(version):
                raise
            self.soak.board.count("statements: restored an expired version")

    def _replace_partition(self, rows: str, rest: int) -> str:
        """Overwrites one partition, or the rows of the same predicate in a table that has none."""
        detail = self.session.sql(f"DESCRIBE DETAIL {NAME}").first()
        is_dynamic = bool(detail.partitionColumns) and self.chance.random() < 0.5
        if is_dynamic:
            self.session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
            return f"INSERT OVERWRITE {{t}} (id, x, y, p) {rows}"
        # This statement takes values by position.
        names = ", ".join(self.session.table(NAME).columns)
        return f"INSERT INTO {{t}} REPLACE WHERE p = {rest} SELECT {names} FROM ({rows})"


def create_text(chance: random.Random, *, with_columns: bool = True) -> str:
    """Creates the table, or another one in its place, with random columns, partitions and index."""
    index = chance.choice(INDEXES)
    properties = {
        "use.optimization.quietPeriod": "1 second",
        "use.index.cubeSize": str(chance.choice((20, 100, 1000))),
        "use.index.targetFileBytes": str(chance.choice((2_000, 5_000, 100_000))),
        "delta.enableDeletionVectors": chance.choice(("true", "false")),
        **({"use.index.columns": index, "use.optimization.autoOptimize.enabled": "true"} if index else {}),
    }
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = ["id BIGINT", "x INT", "y INT"]
    chance.shuffle(columns)
    return (
        f"CREATE OR REPLACE TABLE {{t}} {'(' + ', '.join(columns) + ', p INT)' if with_columns else ''} USING delta "
        f"{chance.choice(('', 'PARTITIONED BY (p)'))} TBLPROPERTIES ({pairs})"
    )


class Appender:
    """The writer that appends a few rows at a time."""

    def __init__(self, soak: Soak, seed: int) -> None:
        self.soak, self.session, self.chance = soak, soak.spark.newSession(), random.Random(seed)
        self.next = FIRST_APPENDED

    def step(self) -> None:
        """One append."""
        low, self.next = self.next, self.next + self.chance.randint(1, 40)
        values = f"id, {X_SQL}, CAST(id % 1000 AS INT), CAST(id % {PARTITIONS} AS INT)"
        text = f"INSERT INTO {{t}} (id, x, y, p) SELECT {values} FROM range({low}, {self.next}, 1, 1)"
        self.soak.execute(self.session, Statement("insert", text, low, self.next))


class IndexChanges(Maintenance):
    """Calls the procedures of a soak, and those that change the index or remove deleted rows."""

    def __init__(self, soak: Soak, reader: Reader, seed: int) -> None:
        super().__init__(soak, reader, seed)
        more = (self._index, self._optimize, self._compact, self._rewrite, self._drop_index)
        self.steps = cycle((self._vacuum, *more, self._protect, self._optimize, self._purge, *more, self._log))

    def _index(self) -> None:
        columns = self.chance.choice([index for index in INDEXES if index])
        self.soak.call("index", columns=columns, cube_size=self.chance.choice((20, 200)))
        self.soak.board.count("maintenance: index")

    def _drop_index(self) -> None:
        self.soak.call("drop_index")
        self.soak.board.count("maintenance: drop_index")

    def _compact(self) -> None:
        self.soak.call("compact", min_deleted_ratio=0.0, min_deleted_rows=1)
        self.soak.board.count("maintenance: compact")

    def _rewrite(self) -> None:
        self.soak.call("optimize", revision_rewrite=True)
        self.soak.board.count("maintenance: revision_rewrite")


def with_or_without_index(soak: Soak, step: Callable[[], None]) -> Callable[[], None]:
    """A step during which the table may have no index."""

    def take() -> None:
        try:
            step()
        except Exception as error:
            if known_error(error).code not in ("USE_NO_INDEX_COLUMNS", "USE_NOT_INDEXED"):
                raise
            soak.board.count("maintenance: no index")

    return take


def run(spark: SparkSession, folder: Path, minutes: float, seed: int) -> Board:
    """Runs everything for some minutes."""
    chance = random.Random(seed)
    spark.sql(create_text(chance).format(t=NAME))
    table = DeltaTable(spark, NAME)
    history = ReplacedHistory(table.path, RETENTION_SECONDS)
    engines = Engines(table.path, folder / "engines")
    soak = Soak(spark.newSession(), NAME, history, engines, Board(), RETENTION_SECONDS)
    reader = Reader(soak, seed)
    maintenance = IndexChanges(soak, reader, seed + 1)
    steps = {
        "replacer": (Replacer(soak, seed + 2).step, 0.5),
        # An overwrite loses to each append that is committed while it runs.
        "appender": (Appender(soak, seed + 3).step, 6),
        "reader": (Reader(soak, seed + 4).step, 0.5),
        "maintenance": (with_or_without_index(soak, maintenance.step), 1),
        "overviews": (with_or_without_index(soak, Overviews(soak).step), 3),
        "follower": (history.follow, 1),
    }
    for key, value in SERVICE.items():
        spark.conf.set(key, value)
    service = Service(spark, [NAME])
    service.start()
    threads = [soak.thread(name, step, pause) for name, (step, pause) in steps.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + minutes * 60
    try:
        while time.monotonic() < end:
            time.sleep(min(30, minutes * 60))
            newest = history.newest()
            print(
                f"version {newest.number:,}, {newest.digest[0]:,} rows, failures {len(soak.board.failures)}", flush=True
            )
    finally:
        # An error must not leave the threads running.
        soak.ended.set()
    for thread in threads:
        thread.join()
    service.stop()
    maintenance.unprotect()
    soak.call("index", columns="x,y")
    verdict(soak, table, reader)
    engines.stop()
    return soak.board


def main() -> int:
    wanted = arguments(__doc__, minutes=10)
    with tempfile.TemporaryDirectory(prefix="use-soak-") as folder:
        spark = start_session(Path(folder), settings={"spark.ui.showConsoleProgress": "false"})
        board = run(spark, Path(folder), wanted.minutes, wanted.seed)
        spark.stop()
    for first in ("statements: ", "conflicts: ", "reads: ", "maintenance: ", "overviews: "):
        print(f"{first}{board.text(first)}")
    print(f"{len(board.failures)} failures" if board.failures else "every answer was right")
    return 1 if board.failures else 0


if __name__ == "__main__":
    sys.exit(main())
