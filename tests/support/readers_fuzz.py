"""Random conditions on the readers without Spark: the rows must be those for which the condition is true.

The truth comes from ``sql_truth``, which shares no code with the readers, over rows that no reader has read. The tables
are stored (``reader_tables``). With ``--spark``, Spark makes them anew from ``--values``, and evaluates each condition.
``make fuzz-readers ARGS="--seed 7 --count 1"`` repeats a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

import pyarrow as pa
import pyarrow.parquet as pq
from reader_tables import STORED, ReaderTable, draw, fresh, make_tables, single, store, stored_tables
from sql_truth import WHOLE_BITS, Operand, Row, Session, truth

from catalog.errors import InvalidArgumentError
from sql_ext import readers
from sql_ext.readers.delta_files import DeltaFile, DeltaFiles

# Conditions of one query of Spark.
_BATCH = 250
_COMPARISONS = ("=", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ESCAPED = {"'": "\\'", "\\": "\\\\", "\n": "\\n", '"': '\\"'}


@dataclass(frozen=True)
class Condition:
    """A condition.

    Attributes:
        seed: repeats it.
        table: the table.
        text: of SQL.
        node: for ``sql_truth``; None if the readers must refuse it.
    """

    seed: int
    table: ReaderTable
    text: str
    node: tuple | None


@dataclass
class Outcome:
    """What a run has seen.

    Attributes:
        count: conditions tried.
        refused: those that were refused, as they must be.
        met: rows for which a condition was true.
        files: files of the tables, for each condition.
        read: those that were read.
        operators: how often each kind of condition was answered.
        failures: texts of what went wrong.
    """

    count: int = 0
    refused: int = 0
    met: int = 0
    files: int = 0
    read: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(tables: Sequence[ReaderTable], seed: int, count: int, spark: Any = None) -> Outcome:
    """Tries conditions.

    Args:
        tables: the tables.
        seed: of the first condition; each following one has the next.
        count: number of conditions.
        spark: evaluates them, too, if given.
    """
    outcome = Outcome()
    with _loaded_once():
        for start in range(seed, seed + count, _BATCH * len(tables)):
            end = min(start + _BATCH * len(tables), seed + count)
            conditions = [condition(tables, number) for number in range(start, end)]
            for one in conditions:
                _try(one, outcome)
            if spark is not None:
                for table in tables:
                    _compare_with_spark(spark, [c for c in conditions if c.table is table and c.node], outcome)
    return outcome


def expected(one: Condition) -> list[bool | None]:
    """Whether the condition is true for each row."""
    return [truth(one.node, Row(row), Session()) for row in one.table.rows]


def _try(one: Condition, outcome: Outcome) -> None:
    outcome.count += 1
    try:
        plan = readers.scan(str(one.table.path), where=one.text, columns=["id"])
        ids = sorted(plan.to_table()["id"].to_pylist())
    except InvalidArgumentError as error:
        outcome.refused += 1
        if one.node is not None:
            outcome.failures.append(f"seed {one.seed}, {one.table.name}: {one.text}: refused: {error}")
        return
    except Exception as error:  # noqa: BLE001 - an error without a code is a failure of the readers
        outcome.failures.append(f"seed {one.seed}, {one.table.name}: {one.text}: {type(error).__name__}: {error}")
        return
    outcome.files += plan.table_files
    outcome.read += plan.files
    if one.node is None:
        outcome.failures.append(f"seed {one.seed}, {one.table.name}: {one.text}: not refused")
        return
    right = sorted(row["id"] for row, holds in zip(one.table.rows, expected(one), strict=True) if holds)
    outcome.met += len(right)
    outcome.operators.update(_operators(one.node))
    if ids != right:
        outcome.failures.append(f"seed {one.seed}, {one.table.name}: {one.text}: rows {ids} instead of {right}")


def _operators(node: tuple) -> Iterator[str]:
    if node[0] in ("and", "or", "not"):
        yield node[0]
        for part in node[1:]:
            yield from _operators(part)
    else:
        yield node[1] if node[0] == "compare" else node[0]


class _ParquetFile:
    """Rows of a file, which were read once, in the place of Arrow's reader."""

    def __init__(self, rows: pa.Table, **_: Any) -> None:
        self.rows, self.schema_arrow = rows, rows.schema
        # The kinds of INT96 columns matter only in files of old versions of Spark.
        self.metadata, self.schema = SimpleNamespace(metadata=rows.schema.metadata), ()

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self.rows.select(columns).to_batches(size) or [
            pa.RecordBatch.from_struct_array(pa.array([{}] * self.rows.num_rows, pa.struct([])))
        ]


@contextlib.contextmanager
def _loaded_once() -> Iterator[None]:
    """Inside it, each table and each file is loaded once, because they do not change."""
    load, open_file = DeltaFiles.of, DeltaFiles.open
    tables: dict[str, DeltaFiles] = {}
    files: dict[tuple[str, str], pa.Table] = {}

    def table(location: str, version: int | None, storage_options: Any) -> DeltaFiles:
        if location not in tables:
            tables[location] = load(location, version, storage_options)
            assert tables[location].files
        return tables[location]

    def opened(of: DeltaFiles, file: DeltaFile) -> contextlib.AbstractContextManager[pa.Table]:
        key = (of.location, file.path)
        if key not in files:
            with open_file(of, file) as source:
                files[key] = pq.ParquetFile(source, coerce_int96_timestamp_unit="us").read()
        return contextlib.nullcontext(files[key])

    parquet = SimpleNamespace(ParquetFile=_ParquetFile)
    with (
        mock.patch.object(DeltaFiles, "of", table),
        mock.patch.object(DeltaFiles, "open", opened),
        mock.patch("sql_ext.readers.table_scan.pq", parquet),
    ):
        yield


# ------------------------------------------------------------------------------------------------------------- Spark


def _compare_with_spark(spark: Any, conditions: Sequence[Condition], outcome: Outcome) -> None:
    """Compares ``expected`` with Spark, in one query."""
    if not conditions:
        return
    table = conditions[0].table
    # Above so many values, Spark's IN takes -0.0 for another number than 0.0, and NaN beside NULL is not unknown.
    spark.conf.set("spark.sql.optimizer.inSetConversionThreshold", "1000")
    view = f"readers_{table.name}"
    if not spark.catalog.tableExists(view):
        spark.read.format("delta").load(str(table.path)).createTempView(view)
        spark.catalog.cacheTable(view)
    columns = ", ".join(f"({c.text}\n) AS c{number}" for number, c in enumerate(conditions))
    try:
        found = spark.sql(f"SELECT id, {columns} FROM {view}").toArrow().to_pydict()
    except Exception as error:  # noqa: BLE001 - any error of Spark is narrowed down to a condition
        if len(conditions) == 1:
            text = str(error).split("JVM stacktrace")[0][:300]
            outcome.failures.append(
                f"seed {conditions[0].seed}, {table.name}: {conditions[0].text}: Spark fails: {text}"
            )
            return
        half = len(conditions) // 2
        _compare_with_spark(spark, conditions[:half], outcome)
        _compare_with_spark(spark, conditions[half:], outcome)
        return
    for number, one in enumerate(conditions):
        by_id = dict(zip(found["id"], found[f"c{number}"], strict=True))
        right = expected(one)
        of_spark = [by_id[row["id"]] for row in table.rows]
        if of_spark != right or len(by_id) != len(table.rows):
            wrong = [row["id"] for row, a, b in zip(table.rows, of_spark, right, strict=True) if a is not b]
            outcome.failures.append(f"seed {one.seed}, {table.name}: {one.text}: Spark differs at {wrong}")


# -------------------------------------------------------------------------------------------------------- conditions


def condition(tables: Sequence[ReaderTable], seed: int) -> Condition:
    """Makes a condition from its seed."""
    random = Random(seed)
    table = tables[seed % len(tables)]
    if random.random() < 0.05:
        return Condition(seed, table, _refused(table, random), None)
    node, text = _tree(table, random, random.choice((0, 0, 0, 1, 1, 2, 3)))
    return Condition(seed, table, text, node)


def _tree(table: ReaderTable, random: Random, depth: int) -> tuple[tuple, str]:
    if not depth:
        return _leaf(table, random)
    if random.random() < 0.3:
        node, text = _tree(table, random, depth - 1)
        return ("not", node), random.choice((f"NOT ({text})", f"not({text})", f"!({text})"))
    parts = [_tree(table, random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
    operator = random.choice(("and", "or"))
    node, text = parts[0]
    for other, other_text in parts[1:]:
        node = (operator, node, other)
        text = f"{text} {random.choice((operator, operator.upper()))} {other_text}"
    # Without brackets, AND would bind the outer parts of an OR. Those of a single AND are only for show.
    return node, text if operator == "and" and random.random() < 0.3 and not _has_or(parts) else f"({text})"


def _has_or(parts: Sequence[tuple[tuple, str]]) -> bool:
    return any(node[0] == "or" for node, _ in parts)


def _leaf(table: ReaderTable, random: Random) -> tuple[tuple, str]:
    column, kind = random.choice(list(table.kinds.items()))
    shapes = [_compared, _compared, _compared, _between, _in, _in, _null, _distinct]
    if kind == "string" or kind.startswith("char"):
        shapes += [_like, _like]
    if kind == "boolean":
        shapes += [_flag, _flag]
    return random.choice(shapes)(table, column, kind, random)


def _compared(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    value, text = _padded(table, column, kind, random)
    operator, name = random.choice(_COMPARISONS), _name(column, random)
    if random.random() < 0.2:
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return _comparison(mirrored, column, kind, value), f"{text} {operator} {name}"
    space = random.choice((" ", " ", "", "\n"))
    return _comparison(operator, column, kind, value), f"{name}{space}{operator}{space}{text}"


def _comparison(operator: str, column: str, kind: str, value: Any) -> tuple:
    of = Operand(column, kind)
    if operator in ("<>", "!="):
        return ("not", ("compare", "=", of, value))
    return ("compare", {"==": "="}.get(operator, operator), of, value)


def _between(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    # Spark pads the literals that a CHAR is compared with, but not those of BETWEEN.
    (low, low_text), (high, high_text) = (_literal(table, column, kind, random) for _ in range(2))
    node = ("and", _comparison(">=", column, kind, low), _comparison("<=", column, kind, high))
    return _maybe_not(node, random, _name(column, random), f"BETWEEN {low_text} AND {high_text}")


def _in(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    found = [_padded(table, column, kind, random, is_listed=True) for _ in range(random.choice((1, 2, 3, 12)))]
    if kind.startswith("char"):  # with NULL, it is refused
        found = [(value, text) for value, text in found if value is not None] or [("a".ljust(4), "'a'")]
    listed = random.choice((", ", ",")).join(text for _, text in found)
    node = ("in", Operand(column, kind), [value for value, _ in found])
    return _maybe_not(node, random, _name(column, random), f"IN ({listed})")


def _null(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    is_negated = random.random() < 0.5
    kind_of = "is_not_null" if is_negated else "is_null"
    return (kind_of, Operand(column, kind)), f"{_name(column, random)} IS {'NOT ' if is_negated else ''}NULL"


def _distinct(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    value, text = _padded(table, column, kind, random)
    same = ("compare", "<=>", Operand(column, kind), value)
    name = _name(column, random)
    if random.random() < 0.5:
        return same, f"{name} IS NOT DISTINCT FROM {text}"
    return ("not", same), f"{name} IS DISTINCT FROM {text}"


def _like(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    value = _value(table, column, kind, random) or ""
    prefix = value[: random.randrange(len(value) + 1)]
    # Within brackets, only letters: what must be escaped is refused.
    prefix = "".join(character for character in prefix if character not in "%_\\")
    is_whole = random.random() < 0.2
    of = Operand(column, kind)
    node = ("compare", "=", of, prefix) if is_whole else ("compare", "starts_with", of, prefix)
    return _maybe_not(node, random, _name(column, random), f"LIKE {_quoted(prefix + '%' * (not is_whole), random)}")


def _flag(table: ReaderTable, column: str, kind: str, random: Random) -> tuple[tuple, str]:
    name, of = _name(column, random), Operand(column, kind)
    wanted, is_negated = random.random() < 0.5, random.random() < 0.5
    if random.random() < 0.4:
        node = ("compare", "=", of, True)
        return (("not", node), random.choice((f"NOT {name}", f"!{name}"))) if is_negated else (node, name)
    node = ("compare", "<=>", of, wanted)
    return (("not", node) if is_negated else node), f"{name} IS {'NOT ' if is_negated else ''}{str(wanted).upper()}"


def _maybe_not(node: tuple, random: Random, name: str, rest: str) -> tuple[tuple, str]:
    if random.random() < 0.5:
        return node, f"{name} {rest}"
    return ("not", node), random.choice((f"{name} NOT {rest}", f"{name} not {rest}", f"NOT {name} {rest}"))


def _name(column: str, random: Random) -> str:
    parts = column.split(".")
    if " " in column or random.random() < 0.2:
        parts = [f"`{part}`" for part in parts]
    name = ".".join(parts)
    name = random.choice((name.upper(), name.lower())) if random.random() < 0.2 else name
    return f"({name})" if random.random() < 0.05 else name


# ---------------------------------------------------------------------------------------------------------- literals


def _value(table: ReaderTable, column: str, kind: str, random: Random) -> Any:
    """A value of the column, one near it, or any other."""
    if random.random() < 0.35:
        return draw(kind, random)
    value = random.choice(table.rows)[column]
    if random.random() < 0.75 or value is None:
        return value
    return _neighbour(value, kind, random)


def _neighbour(value: Any, kind: str, random: Random) -> Any:
    step = random.choice((-1, 1))
    if kind in WHOLE_BITS:
        most = 2 ** (WHOLE_BITS[kind] - 1)
        return min(max(value + step, -most), most - 1)
    if kind.startswith("timestamp"):
        return min(max(value + step * random.choice((1, 999, 1000)), -62_135_596_800_000_000), 253_402_300_799_999_999)
    if kind == "date":
        return min(max(value + step, -719_162), 2_932_896)
    if kind == "float":
        return single(value * (1 + step * 2.0**-22))
    if kind == "double":
        return value * (1 + step * random.choice((2.0**-51, 2.0**-23, 2.0**-20)))
    if kind == "string":
        return value[:-1] if step < 0 else value + "a"
    return value


def _padded(table: ReaderTable, column: str, kind: str, random: Random, *, is_listed: bool = False) -> tuple[Any, str]:
    value, text = _literal(table, column, kind, random, is_listed=is_listed)
    is_char = kind.startswith("char") and value is not None
    return value.ljust(int(kind[5:-1])) if is_char else value, text


def _literal(table: ReaderTable, column: str, kind: str, random: Random, *, is_listed: bool = False) -> tuple[Any, str]:
    if random.random() < 0.06:
        return None, random.choice(("NULL", "null", "CAST(NULL AS INT)")) if kind == "int" else "NULL"
    while True:
        value = _value(table, column, kind, random)
        found = None if value is None else _spelled(value, kind, random, is_listed)
        if found is not None:
            value, text = found
            return value, f"({text})" if random.random() < 0.03 else text


def _spelled(value: Any, kind: str, random: Random, is_listed: bool) -> tuple[Any, str] | None:
    """A value and a literal; None if no literal has this value."""
    match kind:
        case "boolean":
            return value, random.choice((str(value), str(value).upper()))
        case "binary":
            return value, f"X'{value.hex().upper()}'"
        case "string":
            return value, _quoted(value, random)
        case "date":
            return _date(value, random)
        case "timestamp" | "timestamp_ntz":
            return _moment(value, kind, random)
        case "float" | "double":
            return value, _real(value, kind, random)
    if kind.startswith("char"):
        written = random.choice((value, value.rstrip(" ")))
        return written, _quoted(written, random)
    if kind.startswith("decimal"):
        return value, random.choice((f"{value:f}", f"{value:f}BD")) if abs(value) < 10**20 else f"{value:f}"
    suffixes = {"tinyint": ("Y", "S"), "smallint": ("S",), "int": (), "bigint": ()}[kind]
    shapes = [f"{value}", f"{value}", f"{value}L", *(f"{value}{suffix}" for suffix in suffixes)]
    if abs(value) < 2**53:
        shapes += [f"{value}.0", f"CAST({value} AS BIGINT)"]
        # With one DOUBLE in the list, Spark compares all of them as such.
        shapes += [] if is_listed and kind == "bigint" else [f"{value}e0"]
    return value, random.choice(shapes)


def _quoted(text: str, random: Random) -> str:
    if random.random() < 0.1 and not set(text) & set("'\\\n"):
        return f"r'{text}'"
    if random.random() < 0.1 and "'" not in text and "\\" not in text:
        return '"' + text.replace('"', '\\"') + '"'
    quoted = "".join(_ESCAPED.get(character, character) for character in text)
    if random.random() < 0.1:
        quoted = "".join(f"\\U{ord(c):08X}" if ord(c) > 127 else c for c in quoted)
    return f"'{quoted}'"


def _date(value: int, random: Random) -> tuple[int, str] | None:
    try:
        day = date(1970, 1, 1) + timedelta(days=value)
    except OverflowError:
        return None
    text = f"{day.year:04}-{day.month}-{day.day}" if random.random() < 0.2 else day.isoformat()
    return value, random.choice((f"'{text}'", f"DATE'{text}'", f"CAST('{text}' AS DATE)", f"date '{text}'"))


def _moment(value: int, kind: str, random: Random) -> tuple[int, str] | None:
    minutes, zone = 0, ""
    if kind == "timestamp" and random.random() < 0.4:
        minutes = random.choice((0, 0, 330, -480, 1080, -1080, 60))
        zone = "Z" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    try:
        local = (_EPOCH + timedelta(microseconds=value, minutes=minutes)).replace(tzinfo=None)
    except OverflowError:
        return None
    text = local.isoformat(sep=random.choice((" ", "T")))
    text = f"{text}00" if local.microsecond and random.random() < 0.1 else text
    if not local.microsecond and not zone and local.hour == local.minute == local.second == 0 and random.random() < 0.5:
        text = text[:10]
    name = "TIMESTAMP" if kind == "timestamp" else "TIMESTAMP_NTZ"
    quoted = f"'{text}{zone}'"
    return value, random.choice((quoted, f"{name}{quoted}", f"CAST({quoted} AS {name})"))


def _real(value: float, kind: str, random: Random) -> str:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else random.choice(("inf", "Infinity", "INF"))
        name = f"-{name}" if value < 0 else name
        quoted = f"'{name}'"
        return random.choice((quoted, f"double({quoted})", f"CAST({quoted} AS DOUBLE)", f"float({quoted})"))
    shapes = [f"{value!r}D", f"{value!r}D", f"CAST({value!r}D AS DOUBLE)"]
    shapes += [f"{value!r}"] if "e" in repr(value) else [repr(value), repr(value)]
    if value == int(value) and abs(value) < 2**63:
        shapes += [f"{int(value)}", f"{int(value)}L"] if value or random.random() < 0.5 else []
    if kind == "float" and abs(value) < 1e6 and value == single(value):
        shapes += [f"{_shortest(value)}F"]
    return random.choice(shapes)


def _shortest(value: float) -> str:
    """The shortest decimal number that is this FLOAT."""
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if single(float(text)) == value:
            return text
    raise ValueError(value)


# ----------------------------------------------------------------------------------------------------------- refused

_REFUSED_OF_TEXTS: tuple[Callable[[str], str], ...] = (
    lambda s: f"{s} RLIKE 'a'",
    lambda s: f"{s} NOT RLIKE 'a'",
    lambda s: f"{s} REGEXP 'a'",
    lambda s: f"{s} ILIKE 'a%'",
    lambda s: f"{s} NOT ILIKE 'a%'",
    lambda s: f"{s} LIKE '%a'",
    lambda s: f"{s} NOT LIKE '%a%'",
    lambda s: f"{s} LIKE 'a_'",
    lambda s: f"{s} NOT LIKE 'a\\\\%'",
    lambda s: f"{s} LIKE 'a/%' ESCAPE '/'",
    lambda s: f"{s} NOT LIKE 'a/%' ESCAPE '/'",
    lambda s: f"{s} LIKE ANY ('a%', 'b%')",
    lambda s: f"{s} NOT LIKE ALL ('a%', 'b%')",
    lambda s: f"{s} LIKE {s}",
    lambda s: f"upper({s}) = 'A'",
    lambda s: f"{s} || 'a' = 'aa'",
    lambda s: f"{s} = 'a' 'b'",
    lambda s: f"{s} COLLATE UTF8_LCASE = 'a'",
    lambda s: f"{s} = 5",
    lambda s: f"{s} = 'a",
)
_REFUSED_OF_WHOLES: tuple[Callable[[str], str], ...] = (
    lambda i: f"{i} + 1 = 2",
    lambda i: f"-{i} = 2",
    lambda i: f"{i} % 2 = 1",
    lambda i: f"{i} = {i}",
    lambda i: f"{i} IN ({i}, 1)",
    lambda i: f"{i} IN (SELECT 1)",
    lambda i: f"{i} NOT IN (SELECT 1)",
    lambda i: f"{i} BETWEEN {i} AND 5",
    lambda i: f"{i} BETWEEN SYMMETRIC 5 AND 1",
    lambda i: f"{i} = '5'",
    lambda i: f"{i} = -'5'",
    lambda i: f"{i} = 1.5",
    lambda i: f"{i} = 1e400",
    lambda i: f"{i} = 1e999999999",
    lambda i: f"{i} = 99999999999999999999",
    lambda i: f"{i} = 1 IS NULL",
    lambda i: f"{i} = 1 = true",
    lambda i: f"({i} = 1) IS NOT TRUE",
    lambda i: f"({i} IN (1)) <=> NULL",
    lambda i: f"CAST({i} AS STRING) = '1'",
    lambda i: f"{i}::string = '1'",
    lambda i: f"TRY_CAST('x' AS INT) = {i}",
    lambda i: f"{i} = TRY_CAST(1 AS INT)",
    lambda i: f"{i}",
    lambda i: f"({i}, 1) = (1, 1)",
    lambda i: f"({i}, {i}) IN ((1, 1))",
    lambda i: f"EXISTS (SELECT 1 WHERE {i} = 1)",
    lambda i: f"CASE WHEN {i} = 1 THEN true END",
    lambda i: f"isnull({i})",
    lambda i: f"NOT isnotnull({i})",
    lambda i: f"{i} = 1 LIMIT 1",
    lambda i: f"{i} = 1; {i} = 2",
    lambda i: f"{i} = 1 UNION SELECT 1",
    lambda i: f"{i} = ALL (1)",
    lambda i: f"{i} = :p",
    lambda i: f"{i} IN ()",
    lambda _: "NULL",
    lambda _: "true",
    lambda _: "1 = 1",
    lambda i: f"{i} =",
)


def _refused(table: ReaderTable, random: Random) -> str:
    """A condition that Spark understands, or nobody, and that the readers refuse."""
    texts = [c for c, kind in table.kinds.items() if kind == "string"]
    wholes = [f"`{c}`" if " " in c else c for c, kind in table.kinds.items() if kind in WHOLE_BITS]
    shapes = [*_REFUSED_OF_WHOLES, *(_REFUSED_OF_TEXTS if texts else ())]
    shape = random.choice(shapes)
    text = shape(random.choice(texts if shape in _REFUSED_OF_TEXTS else wholes))
    return random.choice((text, text, f"NOT ({text})", f"id > 3 AND ({text})"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first condition (default 0)")
    parser.add_argument("--count", type=int, default=100_000, help="conditions to try (default 100,000)")
    parser.add_argument("--spark", action="store_true", help="make the tables, and compare each condition with Spark")
    parser.add_argument("--values", type=int, default=0, help="seed of the tables that Spark makes (default 0)")
    parser.add_argument("--store", action="store_true", help="store the tables that Spark makes")
    arguments = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.spark:
            from sessions import start_session  # needs pyspark, and a folder of its own

            spark = start_session(fresh(Path(folder) / "spark"))
            tables = make_tables(spark, arguments.values)
        else:
            spark, tables = None, stored_tables(Path(folder))
        if arguments.store:
            store(tables)
            print(f"stored {len(tables)} tables in {STORED}")
        print(f"seeds from {arguments.seed}, {arguments.count:,} conditions", flush=True)
        outcome = run(tables, arguments.seed, arguments.count, spark)
    print(
        f"{outcome.count:,} conditions in {time.monotonic() - start:.0f} s: {outcome.refused:,} refused, "
        f"{outcome.met:,} rows met theirs, {outcome.read:,} of {outcome.files:,} files read, "
        f"{len(outcome.failures)} failures"
    )
    for failure in outcome.failures[:20]:
        print(failure)
    sys.exit(bool(outcome.failures))


if __name__ == "__main__":
    main()
