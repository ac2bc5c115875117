"""Statements with broken names, quotes and injections, for an attached Spark session.

A statement returns rows, or fails with one line that has a condition and no stack. Whatever it is, the rows of the
tables stay the same.
"""

from __future__ import annotations

import logging
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from inputs.mutations import any_text, changed_text, odd_text

_TABLES = ("default.orders", "default.second")
_STACK = re.compile(r"\n\s+at [\w.$]+\(|Traceback \(most recent|Py4J|py4j|File \"/")
_MOST_SECONDS = 10
_VIRTUAL = ("optimizations", "revisions", "cubes", "blocks", "ingestion", "consumption", "plans", "nothing", "a`b")
_PROPERTIES = (
    "use.index.columns", "use.index.cubeSize", "use.optimization.type", "use.fleet.period", "use.index.columnStats",
    "use.retention.hours", "use.health.alert", "use.compaction.primaryKey", "use.nothing", "use.clustering.enabled",
)  # fmt: skip
_VALUES = (
    "id,x",
    "auto",
    "5000",
    "1 day",
    "UnindexedFiles",
    '{"x_min": 0, "x_max": 9}',
    "168",
    "id",
    "true",
    "score>50",
)
_MOST_FAILURES = 10
_LONGEST = 2_000


def _quoted(text: str) -> str:
    """A literal of SQL; sometimes its quotes are not doubled, as in a program that pastes texts together."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(chance: Random, *sound: str) -> str:
    text = any_text(chance, *sound)[:_LONGEST].encode("utf-8", "replace").decode()
    return _quoted(text) if chance.random() < 0.9 else f"'{text}'"


def _name(chance: Random) -> str:
    name = chance.choice((*_TABLES, *_TABLES, "orders", "missing", "default.missing", "delta.`/nowhere`"))
    kind = chance.random()
    if kind < 0.5:
        return name
    odd = odd_text(chance)[:_LONGEST].encode("utf-8", "replace").decode()
    if kind < 0.75:
        return f"`{odd.replace('`', '``')}`" if chance.random() < 0.8 else f"`{odd}`"
    return changed_text(chance, name)[:_LONGEST].encode("utf-8", "replace").decode()


def _call(chance: Random) -> str:
    from procedures.calls.registry import procedures

    name = chance.choice(sorted(procedures()))
    parameters = procedures()[name].parameters
    given = []
    for parameter in parameters:
        if not parameter.required and chance.random() > 0.25:
            continue
        if parameter.name == "table":
            value = _quoted(_name(chance))
        elif parameter.name == "out":
            continue  # it writes a file
        elif chance.random() < 0.6 and parameter.type in ("INT", "BIGINT", "DOUBLE"):
            value = chance.choice(("0", "-1", "1", "0.5", "9999999999", "NULL", "CAST(1 AS TINYINT)"))
        elif chance.random() < 0.6 and parameter.type == "BOOLEAN":
            value = chance.choice(("true", "false", "NULL"))
        elif parameter.type.startswith("ARRAY"):
            value = f"array({_text(chance, 'id')}, {_text(chance, 'x')})"
        elif parameter.type.startswith("MAP"):
            value = f"map({_text(chance, 'min_files')}, {_text(chance, '2')})"
        else:
            value = _text(chance, "id", "x > 1", "1 day", "full", "SELECT * FROM default.orders WHERE x > 1")
        given.append(value if chance.random() < 0.1 else f"{parameter.name} => {value}")
    if any(p.name == "dry_run" for p in parameters) and not any("dry_run" in each for each in given):
        given.append("dry_run => true")
    called = name if chance.random() < 0.95 else chance.choice(("optimise", f"`{odd_text(chance)[:50]}`", "a.b"))
    return f"CALL use.{called}({', '.join(given)})"


def _alter(chance: Random) -> str:
    pairs = ", ".join(
        f"{_text(chance, *_PROPERTIES)} = {_text(chance, *_VALUES)}" for _ in range(chance.choice((1, 1, 2)))
    )
    prefix = chance.choice(("", "", "use_catalog.spark_catalog."))
    word = chance.choice(("SET TBLPROPERTIES", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"))
    return f"ALTER TABLE {prefix}{_name(chance)} {word} ({pairs})"


def _select(chance: Random) -> str:
    virtual = chance.choice(_VIRTUAL)
    virtual = f"`{virtual.replace('`', '``')}`" if chance.random() < 0.5 else virtual
    percent = chance.choice(("1", "x", "-1", "101"))
    sources = (
        f"{_name(chance)}.{virtual}",
        f"use_catalog.spark_catalog.{_name(chance)}.{virtual}",
        f"use_catalog.system.{virtual}",
        f"{_name(chance)} TABLESAMPLE ({percent} PERCENT)",
    )
    source = chance.choice(sources)
    where = (
        f" WHERE {chance.choice(('version', 'x', '`a``b`'))} > {_text(chance, '1')}" if chance.random() < 0.4 else ""
    )
    return f"SELECT * FROM {source}{where} LIMIT 5"


def statement(chance: Random) -> str:
    """Returns a statement, which most often fails."""
    made = chance.choices((_call, _alter, _select), (6, 3, 3))[0](chance)
    return made if chance.random() < 0.9 else changed_text(chance, made)[:20_000].encode("utf-8", "replace").decode()


def problem_of(run: Callable[[str], object], text: str) -> tuple[str, str | None]:
    """Runs a statement.

    Args:
        run: runs it and collects its rows.
        text: the statement.

    Returns:
        How it has ended, and what is wrong with that; None if nothing is.
    """
    from pyspark.errors import PySparkException

    began = time.monotonic()
    try:
        run(text)
    except PySparkException as error:
        end, message = error.getCondition() or type(error).__name__, str(error)
        if _STACK.search(message):
            return end, f"the message has a stack: {message[:1_000]}"
        if end in ("USE_INTERNAL", "INTERNAL_ERROR") or "INTERNAL_ERROR" in message:
            return end, f"an internal error: {message[:1_000]}"
    except Exception as error:  # noqa: BLE001 - any other error is the finding
        return type(error).__name__, f"no error of SQL: {error!r:.1000}"
    else:
        end = "rows"
    seconds = time.monotonic() - began
    return end, f"it takes {seconds:.0f} s" if seconds > _MOST_SECONDS else None


def run_statements(first: int, count: int) -> int:
    """Gives statements to a session, and returns the number of failures."""
    logging.disable(logging.CRITICAL)
    from sessions import start_session

    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        try:
            for name in _TABLES:
                columns = "id BIGINT, x DOUBLE, `a``b` STRING"
                spark.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ('use.index.columns' = 'id,x')")
                spark.sql(f"INSERT INTO {name} SELECT id, id / 7, concat('v', id) FROM range(300)")
            return _run(spark, first, count)
        finally:
            spark.stop()


def _rows(spark: Any) -> list[Any]:
    return [spark.sql(f"SELECT count(*), bit_xor(xxhash64(id, x, `a``b`)) FROM {name}").first() for name in _TABLES]


def _run(spark: Any, first: int, count: int) -> int:
    rows, failures, ends, began = _rows(spark), 0, Counter[str](), time.monotonic()
    for done, seed in enumerate(range(first, first + count), 1):
        text = statement(Random(seed))
        end, problem = problem_of(lambda sql: spark.sql(sql).collect(), text)
        ends[end] += 1
        if problem is None and (done % 50 == 0 or done == count) and _rows(spark) != rows:
            problem = "rows of a table have changed since the last look, 50 statements ago at most"
        if problem is not None or count == 1:
            print(f"{text!r}\n  {end}: {problem}", flush=True)
        if problem is not None:
            failures += 1
            print(f"  repeat it: make fuzz-inputs ARGS=--sql COUNT=1 SEED={seed}\n", flush=True)
        if failures >= _MOST_FAILURES:
            break
        if done % 200 == 0:
            print(
                f"{done:,} statements, {done / (time.monotonic() - began):.1f} a second, {failures} failed", flush=True
            )
    for end, number in ends.most_common(25):
        print(f"{end:44} {number:>6,}")
    print(f"\n{sum(ends.values()):,} statements in {time.monotonic() - began:,.0f} s: {failures} failed")
    sys.stdout.flush()
    return failures
