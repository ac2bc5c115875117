"""Four attached writers send random statements to one indexed table beside the service and ``use.optimize``.

    make soak-statements COUNT=10000
    make soak-statements ARGS="--shared --deletion-vectors"

Each writer has a partition of its own and names it in every statement, so that Delta has no reason to refuse one. With
``--shared``, all writers change all rows: a statement may then lose to one of another writer, but never to a rewrite.

Every statement is applied again to rows in Python, in the order of the commits. Ends with 0 when the rows are the same
and no statement failed because of USE, else with 1.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import SparkSession  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import DeltaTable, create  # noqa: E402

import sql_ext  # noqa: E402
from procedures.service.service import Service  # noqa: E402

COLUMNS = "w INT, key BIGINT, x INT, v BIGINT, s STRING"
WRITERS = 4
ROWS = 500  # of each writer at first; deletes by range keep about as many
KINDS = ("insert", "update", "delete", "merge")
REWRITING = {"UPDATE", "DELETE", "MERGE"}
SPACE = 10_000
RECENT_KEYS = 1_000
WARM_UP = 20
LONG = 2_000  # from here on, the optimizing compiler pays
REPORT_SECONDS = 30
MANY_REPEATS = 4  # from here on, a statement is shown
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
MERGE_LOGGER = "org.apache.spark.sql.delta.commands.MergeIntoCommand"
SERVICE = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "2s",
    "spark.qbeast.use.listener-interval": "1s",
}
ALONE, BESIDE = "alone", "beside"

# ------------------------------------------------------------------------------------------------------ the statements

Row = tuple[int, int | None, int, str]
"""w, x, v, s"""
Rows = dict[int, Row]
"""by key"""


@dataclass(frozen=True)
class Statement:
    """A statement as SQL and in Python.

    Attributes:
        number: its own number, which its commit carries.
        writer: who sends it.
        kind: one of ``KINDS``.
        sql: its text, with ``{t}`` for the table.
        apply: changes rows in Python, and returns how many.
    """

    number: int
    writer: int
    kind: str
    sql: str
    apply: Callable[[Rows], int]


class Statements:
    """Random statements of a writer; they depend on nothing but the seed."""

    def __init__(self, seed: int, writer: int, is_shared: bool) -> None:
        self.writer, self.is_shared = writer, is_shared
        self._chance = random.Random(f"{seed} {writer}")
        self._keys = self._sent = 0

    def first_rows(self) -> Rows:
        return {self._new_key(): self._row() for _ in range(ROWS)}

    def next(self) -> Statement:
        kind = self._chance.choice(KINDS)
        number = self._sent * WRITERS + self.writer
        self._sent += 1
        sql, apply = getattr(self, f"_{kind}")()
        return Statement(number, self.writer, kind, sql, apply)

    # -------------------------------------------------------------------------------------------------------- parts

    def _new_key(self) -> int:
        """Keys of different writers differ."""
        self._keys += 1
        return self._keys * WRITERS + self.writer

    def _old_key(self) -> int:
        """A key that was there at some time; with ``is_shared``, of any writer."""
        writer = self._chance.randrange(WRITERS) if self.is_shared else self.writer
        # Of the keys of other writers, only the first ones are sure to be there: no other writer inserts them again.
        last = self._keys if writer == self.writer else ROWS
        return self._chance.randrange(max(1, last - RECENT_KEYS), last + 1) * WRITERS + writer

    def _x(self) -> int | None:
        if self._chance.random() < 0.03:
            return None
        # Few values are outside the space of the first revision.
        return self._chance.randrange(SPACE if self._chance.random() < 0.99 else SPACE * 20)

    def _row(self) -> Row:
        return self.writer, self._x(), self._chance.randrange(1_000), f"{self._chance.getrandbits(160):040x}"

    def _condition(self) -> tuple[str, Callable[[int, Row], bool]]:
        choice, writer = self._chance.random(), self.writer
        if choice < 0.35:
            keys = frozenset(self._old_key() for _ in range(self._chance.randrange(1, 40)))
            sql, holds = f"key IN ({', '.join(map(str, sorted(keys)))})", lambda key, row: key in keys
        elif choice < 0.8:
            low = self._chance.randrange(SPACE)
            high = low + self._chance.choice([SPACE // 200, SPACE // 20, SPACE // 6])
            sql = f"x BETWEEN {low} AND {high}"
            holds = lambda key, row: row[1] is not None and low <= row[1] <= high  # noqa: E731
        else:
            rest = self._chance.randrange(25)
            sql, holds = f"(key DIV 4) % 25 = {rest}", lambda key, row: key // 4 % 25 == rest
        if self.is_shared:
            return sql, holds
        return f"w = {writer} AND {sql}", lambda key, row: row[0] == writer and holds(key, row)

    # -------------------------------------------------------------------------------------------------------- kinds

    def _insert(self) -> tuple[str, Callable[[Rows], int]]:
        added = {self._new_key(): self._row() for _ in range(self._chance.randrange(1, 100))}

        def apply(rows: Rows) -> int:
            rows.update(added)
            return len(added)

        return f"INSERT INTO {{t}} VALUES {values_of(added)}", apply

    def _update(self) -> tuple[str, Callable[[Rows], int]]:
        condition, holds = self._condition()
        step, moves = self._chance.randrange(1, 100), self._chance.random() < 0.4

        def apply(rows: Rows) -> int:
            matches = [key for key, row in rows.items() if holds(key, row)]
            for key in matches:
                w, x, v, s = rows[key]
                rows[key] = w, (x * 7 + step) % SPACE if moves and x is not None else x, v + step, s
            return len(matches)

        moved = f", x = (x * 7 + {step}) % {SPACE}" if moves else ""
        return f"UPDATE {{t}} SET v = v + {step}{moved} WHERE {condition}", apply

    def _delete(self) -> tuple[str, Callable[[Rows], int]]:
        condition, holds = self._condition()

        def apply(rows: Rows) -> int:
            matches = [key for key, row in rows.items() if holds(key, row)]
            for key in matches:
                del rows[key]
            return len(matches)

        return f"DELETE FROM {{t}} WHERE {condition}", apply

    def _merge(self) -> tuple[str, Callable[[Rows], int]]:
        old = {self._old_key() for _ in range(self._chance.randrange(1, 40))}
        new = (self._new_key() for _ in range(self._chance.randrange(0, 30)))
        source = {key: self._row() for key in [*sorted(old), *new]}
        deletes, writer, is_shared = self._chance.random() < 0.5, self.writer, self.is_shared

        def apply(rows: Rows) -> int:
            changed = 0
            for key, (w, x, v, s) in source.items():
                former = rows.get(key)
                changed += 1
                if former is None or not (is_shared or former[0] == writer):
                    rows[key] = w, x, v, s
                elif deletes and v % 5 == 0:
                    del rows[key]
                else:
                    rows[key] = former[0], x, former[2] + v, s
            return changed

        sql = (
            f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {values_of(source)} AS s(w, key, x, v, s)) s "
            f"ON {'' if is_shared else f't.w = {writer} AND '}t.key = s.key "
            f"{'WHEN MATCHED AND s.v % 5 = 0 THEN DELETE ' if deletes else ''}"
            "WHEN MATCHED THEN UPDATE SET x = s.x, v = t.v + s.v, s = s.s "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        return sql, apply


def values_of(rows: Rows) -> str:
    return ", ".join(
        f"({w}, {key}L, {'CAST(NULL AS INT)' if x is None else x}, {v}L, '{s}')" for key, (w, x, v, s) in rows.items()
    )


# --------------------------------------------------------------------------------------------------------- the writers


@dataclass(frozen=True)
class Outcome:
    """What became of a statement.

    Attributes:
        statement: the statement.
        phase: ``ALONE``, ``BESIDE``, or empty for the warm-up.
        seconds: how long it took.
        versions: the newest version before it, and after it.
        changed: the rows that it changed, as its result says; None for INSERT.
        error: what it failed with.
    """

    statement: Statement
    phase: str
    seconds: float
    versions: tuple[int, int]
    changed: int | None
    error: str | None

    def __str__(self) -> str:
        statement = self.statement
        return f"statement {statement.number} at versions {self.versions}: {statement.sql[:1500]}"


class Newest:
    """The newest version, without listing the log."""

    def __init__(self, path: Path) -> None:
        self._log, self._version = path / "_delta_log", 0

    def __call__(self) -> int:
        version = self._version
        while (self._log / f"{version + 1:020d}.json").exists():
            version += 1
        self._version = max(version, self._version)
        return version


class Writer:
    """Sends one statement after another, in a session of its own."""

    def __init__(self, spark: SparkSession, table: DeltaTable, statements: Statements, newest: Newest) -> None:
        self._table, self._statements, self._newest = DeltaTable(spark, table.name), statements, newest
        self.outcomes: list[Outcome] = []

    def send(self, phase: str) -> None:
        statement = self._statements.next()
        self._table.spark.conf.set(USER_METADATA, f"statement {statement.number}")
        changed, error, before, begun = None, None, self._newest(), time.monotonic()
        try:
            result = self._table.sql(statement.sql)
            changed = int(result[0]["num_affected_rows"]) if statement.kind != "insert" else None
        except Exception as failure:  # noqa: BLE001 - it is what is looked for
            error = str(failure)
        seconds = time.monotonic() - begun
        outcome = Outcome(statement, phase, seconds, (before, self._newest()), changed, error)
        self.outcomes.append(outcome)
        # Most failures with --shared are those that Delta's rules want.
        if error is not None and not re.search(r"a concurrent (?!USE)", error):
            print(f"failed: {outcome}\n  {error[:600]}", flush=True)


class Optimizer:
    """Calls ``use.optimize`` with the default strategies, or with one that rewrites what they leave."""

    def __init__(self, spark: SparkSession, table: DeltaTable, seed: int) -> None:
        self._table, self._chance = DeltaTable(spark, table.name), random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def step(self) -> None:
        strategy = self._chance.choice(["", "", "strategy => 'CubeDefragmentation', ", "revision_rewrite => true, "])
        call = f"CALL use.optimize(table => '{self._table.name}', {strategy}max_iterations => 2)"
        try:
            rows = self._table.sql(call)
        except Exception as failure:  # noqa: BLE001 - it is what is looked for
            if "USE_CONCURRENT_CHANGE" in str(failure):
                self.counts["call lost to a statement"] += 1
            else:
                self.failures.append(f"{call}: {failure}")
            return
        for row in rows:
            self.counts[row.state if row.state == "committed" else f"{row.state} {row.reason}"] += 1
            if row.state == "failed" and row.reason != "USE_CONCURRENT_CHANGE":
                self.failures.append(f"{call}: {row.reason} {row.message}")


def run_statements(writers: Sequence[Writer], phase: str, count: int, minutes: float = float("inf")) -> None:
    """Has the writers send so many statements in all, or fewer if the time ends before."""
    left, lock, begun = iter(range(count)), threading.Lock(), time.monotonic()

    def work(writer: Writer) -> None:
        while True:
            with lock:
                if next(left, None) is None or time.monotonic() - begun > minutes * 60:
                    return
            writer.send(phase)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    earlier = sum(len(writer.outcomes) for writer in writers)
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        end = time.monotonic() + REPORT_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        done = sum(len(writer.outcomes) for writer in writers) - earlier
        print(f"{time.monotonic() - begun:5.0f} s  {phase or 'warm-up'}: {done} statements", flush=True)


# -------------------------------------------------------------------------------------------------------------- the log


@dataclass(frozen=True)
class Commit:
    """A commit, as the log has it."""

    version: int
    actions: list[dict]

    @cached_property
    def info(self) -> dict:
        return next((a["commitInfo"] for a in self.actions if "commitInfo" in a), {})

    @property
    def operation(self) -> str:
        return self.info.get("operation", "")

    @property
    def is_ours(self) -> bool:
        return self.operation.startswith("USE ")

    @property
    def statement(self) -> int | None:
        """The number of the statement that it is of."""
        text = self.info.get("userMetadata") or ""
        return int(text.split()[1]) if text.startswith("statement ") and not self.is_ours else None

    @cached_property
    def note(self) -> dict:
        return json.loads((self.info.get("tags") or {}).get("use.statement", "{}"))

    @property
    def written(self) -> list[dict]:
        """The data files that it added: not those of which it only marked rows as deleted."""
        known = {a["remove"]["path"] for a in self.actions if "remove" in a}
        return [a["add"] for a in self.actions if "add" in a and a["add"]["path"] not in known]


def commits_of(table: DeltaTable) -> list[Commit]:
    return [Commit(version, table.actions(version)) for version in range(table.version + 1)]


def winner_of(outcome: Outcome, commits: Sequence[Commit]) -> Commit | None:
    """The commit that a statement lost to, as Delta's error names it."""
    error = outcome.error or ""
    version = re.search(r"committed at version (\d+)", error)
    if version:
        return commits[int(version[1])]
    named = re.search(r"Conflicting commit: .*?\"timestamp\":(\d+)", error)
    if named:
        return next((c for c in commits if str(c.info.get("timestamp")) == named[1]), None)
    return None


def cause_of(outcome: Outcome, commits: Sequence[Commit]) -> str:
    """``OTHERS`` with another writer's statement, or why the failure is because of us."""
    winner = winner_of(outcome, commits)
    if winner is None:
        return "UNKNOWN: the error names no commit"
    if not outcome.versions[0] < winner.version <= outcome.versions[1] + 1:
        return "UNKNOWN: the named commit is no concurrent one"
    if winner.is_ours:
        return f"OURS: {winner.operation}"
    if winner.statement is None or winner.statement % WRITERS == outcome.statement.writer:
        return f"UNKNOWN: lost to {winner.operation} of itself"
    return f"OTHERS: {winner.operation}"


# ----------------------------------------------------------------------------------------------------------- the oracle


@dataclass
class Replay:
    """The statements once more, in Python.

    Attributes:
        first: the rows at first.
        outcomes: what became of the statements.
        commits: the log.
    """

    first: Rows
    outcomes: Sequence[Outcome]
    commits: Sequence[Commit]

    def steps(self) -> Iterator[tuple[Commit, Rows, int | None]]:
        """For each commit: the rows after it, and how many its statement changed."""
        rows = dict(self.first)
        by_number = {outcome.statement.number: outcome.statement for outcome in self.outcomes}
        for commit in self.commits:
            changed = None if commit.statement is None else by_number[commit.statement].apply(rows)
            yield commit, rows, changed

    def rows_at(self, version: int) -> Rows:
        return next(rows for commit, rows, _ in self.steps() if commit.version == version)

    def problems(self) -> Iterator[str]:
        """Statements with another number of commits, or of changed rows, than they should have."""
        by_number = {outcome.statement.number: outcome for outcome in self.outcomes}
        times = Counter(commit.statement for commit in self.commits if commit.statement is not None)
        for number, outcome in by_number.items():
            if times[number] > 1 or (outcome.error is not None and times[number]):
                yield f"{times[number]} commits of {outcome}, error {outcome.error}"
        # A statement without a commit changes nothing: at one version, at least, while it ran.
        without = {n: o for n, o in by_number.items() if o.error is None and not times[n]}
        for commit, rows, changed in self.steps():
            outcome = by_number.get(commit.statement) if commit.statement is not None else None
            if outcome is not None and outcome.changed not in (None, changed):
                yield f"version {commit.version} changed {changed} rows, the result says {outcome.changed}: {outcome}"
            for number, silent in list(without.items()):
                before, after = silent.versions
                if before <= commit.version <= after and not silent.changed and not silent.statement.apply(dict(rows)):
                    del without[number]
        for outcome in without.values():
            yield f"no commit of {outcome}"


def rows_of(rows: Rows) -> Counter[tuple]:
    return Counter((key, *row) for key, row in rows.items())


def rows_in(table: DeltaTable, version: int) -> Counter[tuple]:
    data = table.spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    return Counter(tuple(row) for row in data.select("key", "w", "x", "v", "s").collect())


def first_difference(table: DeltaTable, replay: Replay) -> int:
    """The first version with other rows than the replay, if all later ones have them, too."""
    low, high = -1, replay.commits[-1].version
    while high - low > 1:
        middle = (low + high) // 2
        if middle and rows_in(table, middle) != rows_of(replay.rows_at(middle)):
            high = middle
        else:
            low = middle
    return high


# ----------------------------------------------------------------------------------------------------------- the report


def seconds_by_kind(outcomes: Iterable[Outcome]) -> str:
    """Medians alone and beside the service, and their ratio."""
    measured = list(outcomes)
    lines = []
    for kind in (*KINDS, "any"):
        times = {
            phase: [o.seconds for o in measured if o.phase == phase and kind in (o.statement.kind, "any")]
            for phase in (ALONE, BESIDE)
        }
        if not all(times.values()):
            continue
        alone, beside = (median(times[phase]) for phase in (ALONE, BESIDE))
        lines.append(
            f"  {kind:6}  alone {alone:.2f} s ({len(times[ALONE])}), beside the service {beside:.2f} s "
            f"({len(times[BESIDE])}), slowest {max(times[ALONE]):.2f} and {max(times[BESIDE]):.2f} s, "
            f"ratio {beside / alone:.2f}"
        )
    return "\n".join(lines)


def print_report(outcomes: Sequence[Outcome], commits: Sequence[Commit], optimizer: Optimizer) -> None:
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    kinds = Counter(outcome.statement.kind for outcome in outcomes)
    print(
        f"statements: {len(outcomes)} ({', '.join(f'{kinds[kind]} {kind}' for kind in KINDS)}); failed: {len(failed)}"
    )
    for cause, count in Counter(cause_of(outcome, commits) for outcome in failed).most_common():
        print(f"  {count} × {cause}")
    notes = [commit.note for commit in commits if commit.operation in REWRITING]
    repeats = Counter(note.get("repeats", "no note") for note in notes)
    repeated = sum(count for times, count in repeats.items() if times)
    print(
        f"repeats of {len(notes)} commits of statements: {dict(sorted(repeats.items(), key=str))}; repeated: {repeated}"
    )
    by_number = {outcome.statement.number: outcome for outcome in outcomes}
    for commit in commits:
        times = commit.note.get("repeats", 0)
        if times < MANY_REPEATS or commit.statement is None:
            continue
        outcome = by_number[commit.statement]
        first, last = outcome.versions
        ours = Counter(c.operation for c in commits[first + 1 : last + 1] if c.is_ours)
        print(f"  {times} repeats in {outcome.seconds:.1f} s beside {dict(ours)}: {str(outcome)[:200]}")
    plain: Counter[str] = Counter()
    for note in notes:
        plain.update(note.get("plain_files", {}))
    for name, operations in (("UPDATE, DELETE and MERGE", REWRITING), ("INSERT", {"WRITE"})):
        adds = [add for commit in commits if commit.operation in operations for add in commit.written]
        indexed = sum(add["size"] for add in adds if (add.get("tags") or {}).get("revision", "0") != "0")
        size = sum(add["size"] for add in adds)
        print(f"{name} wrote {len(adds)} files with {size} bytes, {indexed / max(size, 1):.2%} of the bytes indexed")
    print(f"plain files by reason: {dict(plain)}")
    vectors = sum("deletionVector" in a.get("add", {}) for c in commits if not c.is_ours for a in c.actions)
    print(f"files of which statements marked rows: {vectors}")
    rewrites = Counter(commit.operation for commit in commits if commit.is_ours)
    replaced = sum("remove" in action for commit in commits if commit.is_ours for action in commit.actions)
    revisions = sum("metaData" in action for commit in commits if commit.is_ours for action in commit.actions)
    print(f"commits of USE: {dict(rewrites)}, which replaced {replaced} files; changes of metadata: {revisions}")
    print(f"rows of the calls of use.optimize: {dict(optimizer.counts.most_common())}")
    print(f"median seconds of a statement:\n{seconds_by_kind(outcomes)}", flush=True)


# ----------------------------------------------------------------------------------------------------------------- main


def make_table(spark: SparkSession, folder: Path, wanted: argparse.Namespace, rows: Rows) -> DeltaTable:
    properties = {
        "delta.enableDeletionVectors": str(wanted.deletion_vectors).lower(),
        "use.optimization.autoOptimize.enabled": "true",
        # A checkpoint takes as long as a statement.
        "delta.checkpointInterval": "50",
    }
    if wanted.quiet_period:
        properties["use.optimization.quietPeriod"] = wanted.quiet_period
    table = create(
        spark,
        f"delta.`{folder / 't'}`",
        COLUMNS,
        index="x,key",
        cube_size=200,
        file_bytes=20_000,
        properties=properties,
        tail="PARTITIONED BY (w)",
    )
    data = spark.createDataFrame([(w, key, x, v, s) for key, (w, x, v, s) in rows.items()], COLUMNS)
    data.write.format("delta").mode("append").save(str(folder / "t"))
    return table.index()


def run_beside(
    spark: SparkSession, table: DeltaTable, wanted: argparse.Namespace, act: Callable[[], None]
) -> Optimizer:
    """Acts while the service and ``use.optimize`` rewrite the table."""
    for key, value in SERVICE.items():
        spark.conf.set(key, value)
    service, optimizer = Service(spark, [table.name]), Optimizer(spark.newSession(), table, wanted.seed)
    ended = threading.Event()

    def optimize() -> None:
        while not ended.wait(wanted.pause):
            optimizer.step()

    thread = threading.Thread(target=optimize)
    service.start()
    thread.start()
    act()
    ended.set()
    thread.join()
    service.stop()
    spark.conf.set("spark.qbeast.use.service.enabled", "false")
    return optimizer


def check(table: DeltaTable, *, deep: bool) -> list[str]:
    rows = sql_ext.call(table.spark, "check", table=table.name, deep=deep).collect()
    return [] if rows[-1].severity == "ok" else [f"use.check: {row}" for row in rows[-5:]]


def soak(spark: SparkSession, folder: Path, wanted: argparse.Namespace) -> list[str]:
    """Runs the writers; prints what happened, and returns what is wrong."""
    statements = [Statements(wanted.seed, number, wanted.shared) for number in range(WRITERS)]
    first = {key: row for one in statements for key, row in one.first_rows().items()}
    table = make_table(spark, folder, wanted, first)
    newest = Newest(table.path)
    writers = [Writer(spark.newSession(), table, one, newest) for one in statements]
    run_statements(writers, "", WARM_UP)
    # Half of it before, half of it after: the table and its log have changed in between.
    run_statements(writers, ALONE, wanted.alone // 2)
    optimizer = run_beside(spark, table, wanted, lambda: run_statements(writers, BESIDE, wanted.count, wanted.minutes))
    run_statements(writers, ALONE, wanted.alone - wanted.alone // 2)

    outcomes, commits = [o for writer in writers for o in writer.outcomes], commits_of(table)
    print_report(outcomes, commits, optimizer)
    replay = Replay(first, outcomes, commits)
    wrong = [*replay.problems(), *optimizer.failures]
    for outcome in (one for one in outcomes if one.error is not None):
        cause = cause_of(outcome, commits)
        if not cause.startswith("OTHERS"):
            wrong.append(f"{cause}: {outcome}\n{outcome.error[:3000]}")
    expected, rows = rows_of(replay.rows_at(commits[-1].version)), rows_in(table, commits[-1].version)
    print(f"rows: {rows.total()}, by the oracle {expected.total()}, at version {commits[-1].version}")
    if rows != expected:
        commit = commits[first_difference(table, replay)]
        missing, more = expected - rows, rows - expected
        wrong.append(f"{missing.total()} rows are missing {[*missing][:5]}, {more.total()} are too many {[*more][:5]}")
        wrong.append(
            f"the rows differ since version {commit.version}: {commit.operation}, statement {commit.statement}"
        )
        wrong += [str(outcome) for outcome in outcomes if outcome.statement.number == commit.statement]
    wrong += check(table, deep=False) + check(table, deep=True)
    table.optimize()
    if rows_in(table, table.version) != rows:
        wrong.append("the last optimize changed rows")
    return wrong + check(table, deep=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400, help="statements beside the service")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for fewer statements beside the service")
    parser.add_argument("--alone", type=int, default=120, help="statements without it, to compare")
    parser.add_argument("--shared", action="store_true", help="all writers change all rows")
    parser.add_argument("--deletion-vectors", action="store_true")
    parser.add_argument("--quiet-period", help="use.optimization.quietPeriod; the default by default")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two calls of use.optimize")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    wanted = parser.parse_args()
    print(" ".join(f"{name}={value}" for name, value in vars(wanted).items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="use-statements-") as folder:
        spark = start_session(Path(folder), short_lived=wanted.count < LONG)
        # It logs each loss with a trace of calls, although the statement then runs again.
        log4j = spark._jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(MERGE_LOGGER, log4j.Level.OFF)
        wrong = soak(spark, Path(folder), wanted)
        spark.stop()
    for text in wrong:
        print(f"FAILURE {text}", flush=True)
    print("FAILED" if wrong else "the rows are those of the oracle, and no statement failed because of USE")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
