"""300 real tables, writers and readers, and one budget: bytes that readers read by how the budget is given out.

    make bench-fleet-tables

Every policy sees the same events in the same order: 3 writers append to some tables more than to others, and 2 readers
ask some tables more often than others, for ranges of the indexed column. Nobody waits: the events of 20 minutes follow
each other at once, and the service looks after those of every 20 seconds. Bytes are those of Spark's input metrics.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench"), str(ROOT / "tests" / "support")]

from bench_session import start_session  # noqa: E402
from measured_query import COUNTED_READS, execute  # noqa: E402

from procedures.process.application import Application  # noqa: E402
from procedures.service import workers  # noqa: E402
from procedures.service.execution import ledger_of  # noqa: E402
from procedures.service.service import Service  # noqa: E402
from procedures.service.service_settings import ENABLED  # noqa: E402
from procedures.service.turns import Turns, next_turns  # noqa: E402

DATABASE = "fleet"
ROWS, IDS = 4_000, 1_000_000
FIRST_FILES = 6
WRITE_EVERY, READ_EVERY, LOOK_EVERY = 6, 4, 20
WRITERS, READERS = 3, 2
SKEW = 1.1
SETTINGS = {
    **COUNTED_READS,
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # No service of the session: each policy has one of its own.
    ENABLED.name: "false",
    "spark.qbeast.use.optimization-interval": "5s",
    "spark.qbeast.use.listener-interval": "1s",
}


def in_due_order(due: Sequence[workers.Worker], *_: object) -> Turns:
    """Round robin: who has waited longest goes first, whatever it gains."""
    return Turns(due, (), False)


POLICIES: dict[str, Callable[..., Turns] | None] = {
    "none": None,
    "round robin": in_due_order,
    "best saving per byte": next_turns,
}


@dataclass(frozen=True)
class Event:
    """What happens in a second: an append to a table, or a query of one."""

    second: int
    table: int
    is_write: bool
    low: int


def events(tables: int, seconds: int, seed: int) -> list[Event]:
    """The events of all writers and readers; they depend on nothing but the arguments."""
    chance = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, tables + 1) ** SKEW
    weights /= weights.sum()
    written, read = chance.permutation(tables), chance.permutation(tables)
    made = []
    for second in range(seconds):
        for count, every, order in ((WRITERS, WRITE_EVERY, written), (READERS, READ_EVERY, read)):
            if second % every == 0:
                for table in order[chance.choice(tables, count, p=weights)]:
                    low = int(chance.integers(0, IDS * 99 // 100))
                    made.append(Event(second, int(table), order is written, low))
    return made


def register(spark: SparkSession, folder: Path, tables: int, budget: int) -> None:
    """Makes the tables: copies of one, each with some small files that no index covers."""
    spark.sql(
        f"CREATE DATABASE {DATABASE} WITH DBPROPERTIES ('use.fleet.enabled' = 'true', 'use.index.columns' = 'id', "
        f"'use.fleet.maxBytes' = '{budget}', 'use.fleet.period' = '1 day', 'use.optimization.quietPeriod' = '0', "
        "'use.insights.consumption.enabled' = 'true', 'use.index.targetFileBytes' = '1MB')"
    )
    template = folder / "t0"
    for _ in range(FIRST_FILES):
        append(spark, f"delta.`{template}`", 0)
    for number in range(tables):
        path = folder / f"t{number}"
        if number:
            shutil.copytree(template, path)
        spark.sql(f"CREATE TABLE {DATABASE}.t{number} USING delta LOCATION '{path}'")


def append(spark: SparkSession, table: str, low: int) -> None:
    """Appends rows whose ids are anywhere."""
    rows = spark.range(ROWS).selectExpr(f"CAST(rand({low}) * {IDS} AS BIGINT) AS id", "rand() AS x", "uuid() AS s")
    if table.startswith("delta."):
        rows.coalesce(1).write.format("delta").mode("append").save(table[7:-1])
    else:
        rows.coalesce(1).write.format("delta").mode("append").saveAsTable(table)


def measured(spark: SparkSession, folder: Path, policy: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Lets all events happen under a policy.

    Args:
        spark: the session.
        folder: an empty folder.
        policy: one of ``POLICIES``.
        arguments: number of tables, budget in bytes, seed.
    """
    spark.conf.set("spark.qbeast.use.fleet.location", str(folder / "ledger"))
    register(spark, folder, arguments.tables, arguments.budget)
    turns, service = POLICIES[policy], None
    if turns is not None:
        spark.conf.set(ENABLED.name, "true")
        workers.next_turns = turns
        service = Service(spark, app=Application(), spawn=_at_once)
    size, queries, rows = 0, 0, 0
    for second, happening in _by_second(events(arguments.tables, arguments.minutes * 60, arguments.seed)):
        for event in happening:
            name = f"{DATABASE}.t{event.table}"
            if event.is_write:
                append(spark, name, event.low)
                continue
            query = f"SELECT count(*), sum(x) FROM {name} WHERE id BETWEEN {event.low} AND {event.low + IDS // 100}"
            execution = execute(spark, query)
            size, queries, rows = size + execution.input_bytes, queries + 1, rows + int(str(execution.rows[0][0]))
        if service is not None and second % LOOK_EVERY == 0:
            service.tick()
            # What has ended wakes the loop of a service.
            while service._wake.is_set():
                service._wake.clear()
                service.tick(look=False)
    spent = ledger_of(spark, str(folder / "ledger")).state().spent_of(None, 0)
    if service is not None:
        service.stop()
        spark.conf.set(ENABLED.name, "false")
    workers.next_turns = next_turns
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
    return {"read_bytes": size, "queries": queries, "rows": rows, "rewritten_bytes": spent}


def _at_once(_: str, work: Callable[[], None]) -> None:
    work()


def _by_second(made: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    of_second: dict[int, list[Event]] = {}
    for event in made:
        of_second.setdefault(event.second, []).append(event)
    for second in range(max(of_second) + 1):
        yield second, of_second.get(second, [])


def main() -> None:
    """Measures all policies and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--minutes", type=int, default=20, help="of events")
    parser.add_argument("--budget", type=int, default=20_000_000, help="bytes in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="use-fleet-tables-"))
    spark = start_session("fleet tables", home, "3g", SETTINGS)
    results = {}
    for number, policy in enumerate(arguments.policies):
        folder = home / str(number)
        folder.mkdir()
        results[policy] = measured(spark, folder, policy, arguments)
        print(f"{policy:22} {results[policy]}", flush=True)
    if len({result["rows"] for result in results.values()}) != 1:
        raise SystemExit("the policies do not give the same rows")
    if arguments.json is not None:
        asked = {name: getattr(arguments, name) for name in ("tables", "minutes", "budget", "seed")}
        facts = {**asked, "policies": results}
        arguments.json.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
