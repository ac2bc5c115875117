"""Tables for the fuzz target of the readers, with their rows: made by Spark, and stored for tests without Spark.

The values of the rows are Python's, as in ``sql_truth``: dates are days and timestamps microseconds since 1970. Spark
gets them as literals of SQL, and no reader has read them.
"""

from __future__ import annotations

import json
import math
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tables import DeltaTable

STORED = Path(__file__).with_name("reader_tables.zip")
_ROWS = "rows.json"
_DAY = 86_400_000_000
_LAST_MICROS = 253_402_300_799_999_999
HOSTILE = (
    "New York", "b=/%", "%20", "a:b", "it's", "#?&", "back\\slash", "+", "..", " ", "\u00e9\u00fc", "\U0001f600",
    "a", "A", "a%2Fb", '"', "x" * 40, "1", "null", "__HIVE_DEFAULT", "{}[]^`|~<>*", "a\tb",
)  # fmt: skip
_TEXTS = (
    "", "a", "ab", "abc", "abd", "b", "xyz", "A", "\u00df", "\u00e9\U0001f600", "\ue000", "\U00010000", "it's", "a%",
    "a_b", "a\\b", " a", "a ", "ab" * 20, "ab" * 20 + "c", "ab" * 16, "\x7f", "z" * 33, "\U0010ffff" * 34,
    "line\nbreak", "10", "null",
)  # fmt: skip
_FLOATS = (
    math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1e308, 1.7976931348623157e308, -1.7976931348623157e308, 0.1,
    0.30000000000000004, -10.310118564421344, 10.5, 1.0, 1e-9, 123456789.12345679, 2.0**53, 16777217.0,
)  # fmt: skip
_DATES = (0, -1, 18262, -141428, 2932896, -719162, 11016, -141429, 2932897, -719529, 5373484)
_TIMES = (
    0, -1, 1, 1_577_836_800_000_000, -12_219_292_800_000_000, 1_577_836_800_123_456, 1_577_836_800_123_999, -999, -1001,
    _LAST_MICROS, -62_135_596_800_000_000, 253_402_300_800_000_000, 1_000_000_000_000_000_000,
)  # fmt: skip


def single(value: float) -> float:
    """The nearest FLOAT."""
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def draw(kind: str, random: Random) -> Any:
    """A value of a type, special ones among them."""
    match kind:
        case "boolean":
            return random.random() < 0.5
        case "tinyint" | "smallint" | "int" | "bigint":
            most = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[kind]
            if random.random() < 0.1:
                return random.choice((2**most - 1, -(2**most), 0))
            return random.randrange(-(2 ** min(most, 55)), 2 ** min(most, 55)) // random.choice((1, 2**3, 2**6))
        case "double":
            return (
                random.choice(_FLOATS)
                if random.random() < 0.3
                else random.choice((random.gauss(0, 10), round(random.gauss(0, 9), 2)))
            )
        case "float":
            return single(draw("double", random))
        case "string":
            return random.choice(_TEXTS) if random.random() < 0.6 else f"s{random.randrange(40)}"
        case "binary":
            return bytes(random.choices((0, 1, 65, 127, 128, 255), k=random.randrange(4)))
        case "date":
            return random.choice(_DATES) if random.random() < 0.3 else random.randrange(18_000, 19_000)
        case "timestamp" | "timestamp_ntz":
            return (
                random.choice(_TIMES)
                if random.random() < 0.3
                else random.randrange(18_000 * _DAY, 18_100 * _DAY) // random.choice((1, 10**6)) * 1
            )
    if kind.startswith("decimal"):
        precision, scale = digits(kind)
        whole = random.randrange(-(10 ** random.randint(1, precision)) + 1, 10 ** random.randint(1, precision))
        return Decimal(whole).scaleb(-scale) if random.random() < 0.9 else Decimal(random.randrange(-9, 10))
    if kind.startswith("char"):
        width = int(kind[5:-1])
        return random.choice(("", "a", "ab", "abcd", "b", "a b")).ljust(width)
    raise ValueError(kind)


def digits(kind: str) -> tuple[int, int]:
    precision, scale = kind[8:-1].split(",")
    return int(precision), int(scale)


def sql_of(value: Any, kind: str) -> str:
    """A value as an expression of SQL, whatever the readers accept."""
    if value is None:
        return f"CAST(NULL AS {kind})"
    match kind:
        case "boolean":
            return str(value)
        case "float" | "double":
            return f"CAST('{value!r}' AS {kind})"
        case "string":
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case "binary":
            return f"X'{value.hex()}'"
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamp":
            return f"timestamp_micros({value})"
        case "timestamp_ntz":
            return f"CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)"
    if kind.startswith("char"):
        return f"'{value.rstrip()}'"
    return f"CAST('{value}' AS {kind})"


@dataclass(frozen=True)
class ReaderTable:
    """A table on disk.

    Attributes:
        name: its name.
        path: its folder.
        kinds: types of its columns today; those of fields of structs under ``outer.inner``.
        rows: the live rows, by the same names.
    """

    name: str
    path: Path
    kinds: dict[str, str]
    rows: list[dict[str, Any]]


def stored_tables(folder: Path) -> list[ReaderTable]:
    """Unpacks the stored tables below a folder."""
    with zipfile.ZipFile(STORED) as archive:
        archive.extractall(folder)
    found = []
    for name, of_table in json.loads((folder / _ROWS).read_text(encoding="utf-8")).items():
        kinds = of_table["kinds"]
        rows = [dict(zip(kinds, map(_decoded, row, kinds.values()), strict=True)) for row in of_table["rows"]]
        found.append(ReaderTable(name, folder / name, kinds, rows))
    return found


def store(tables: list[ReaderTable], archive_path: Path = STORED) -> None:
    """Packs tables; checksum files of the local file system and Delta's sums are left out."""
    texts = {t.name: {"kinds": t.kinds, "rows": [[_encoded(r[c]) for c in t.kinds] for r in t.rows]} for t in tables}
    with zipfile.ZipFile(archive_path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(_ROWS, json.dumps(texts))
        for table in tables:
            for file in sorted(table.path.rglob("*")):
                if file.is_file() and file.suffix != ".crc" and "_use" not in file.parts:
                    archive.write(file, f"{table.name}/{file.relative_to(table.path)}")


def _encoded(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    return str(value) if isinstance(value, Decimal) else value.hex() if isinstance(value, bytes) else value


def _decoded(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind in ("float", "double"):
        return float(value)
    return Decimal(value) if kind.startswith("decimal") else bytes.fromhex(value) if kind == "binary" else value


# ------------------------------------------------------------------------------------------------------ made by Spark

_ALL = {
    "id": "bigint", "b": "boolean", "y": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "f": "float",
    "d": "double", "n": "decimal(10,2)", "w": "decimal(25,4)", "s": "string", "x": "binary", "dt": "date",
    "ts": "timestamp", "tn": "timestamp_ntz",
}  # fmt: skip
_STRUCT = {"st.a": "int", "st.d": "double", "st.s": "string"}


class _Maker:
    """A table that is being made, and its rows so far."""

    def __init__(self, spark: SparkSession, name: str, kinds: Mapping[str, str], seed: int, **wishes: Any) -> None:
        from tables import create

        self.random, self.kinds, self.rows, self.name, self.appended = Random(seed), dict(kinds), [], name, 0
        self.table: DeltaTable = create(spark, f"default.readers_{name}", self._ddl(), **wishes)

    def _ddl(self) -> str:
        inner = ", ".join(f"{c[3:]}: {kind}" for c, kind in self.kinds.items() if c.startswith("st."))
        outer = [f"{c} {kind}" for c, kind in self.kinds.items() if "." not in c]
        return ", ".join([*outer, *([f"st STRUCT<{inner}>"] if inner else [])])

    def append(
        self, count: int, nulls: float = 0.1, change: Callable[[dict[str, Any], int], None] | None = None
    ) -> _Maker:
        """Appends a file of random rows."""
        rows = []
        focus = {c: self.random.random() < 0.5 for c in self.kinds}
        for number in range(count):
            row = {
                c: None if self.random.random() < nulls else draw(kind, self.random) for c, kind in self.kinds.items()
            }
            for c, kind in self.kinds.items():
                # Files whose values are few or close have narrow statistics.
                if focus[c] and rows and row[c] is not None and kind != "boolean" and self.random.random() < 0.6:
                    row[c] = self.random.choice(rows)[c]
            row["id"] = self.appended + number
            if change is not None:
                change(row, number)
            rows.append(row)
        self.rows += rows
        self.appended += count
        values = ",\n".join(f"({', '.join(self._values(row))})" for row in rows)
        self.table.append(self.table.spark.sql(f"SELECT * FROM VALUES {values} AS t({', '.join(self._names())})"))
        return self

    def _names(self) -> list[str]:
        names = [f"`{c}`" for c in self.kinds if "." not in c]
        return [*names, *(["st"] if any("." in c for c in self.kinds) else [])]

    def _values(self, row: dict[str, Any]) -> list[str]:
        texts = [sql_of(row[c], kind) for c, kind in self.kinds.items() if "." not in c]
        inner = {c: kind for c, kind in self.kinds.items() if "." in c}
        if inner:
            parts = ", ".join(f"'{c[3:]}', {sql_of(row[c], kind)}" for c, kind in inner.items())
            is_null = all(row[c] is None for c in inner)
            typed = ", ".join(f"{c[3:]}: {kind}" for c, kind in inner.items())
            texts.append(f"CAST(NULL AS STRUCT<{typed}>)" if is_null else f"named_struct({parts})")
        return texts

    def delete(self, part: int) -> _Maker:
        """Deletes a third of the rows, by deletion vectors where the table has them."""
        self.table.sql(f"DELETE FROM {{t}} WHERE id % 3 = {part} AND id % 2 = 0")
        self.rows = [row for row in self.rows if row["id"] % 3 != part or row["id"] % 2]
        return self

    def done(self) -> ReaderTable:
        return ReaderTable(self.name, self.table.path, self.kinds, self.rows)


def make_tables(spark: SparkSession, seed: int = 0) -> list[ReaderTable]:
    """Makes the tables by Spark.

    Args:
        spark: a session of the tests.
        seed: of the values.
    """
    makers = (_plain, _indexed, _changed, _texts, _values_as_partitions, _widened, _checkpointed)
    return [make(spark, seed * 100 + number).done() for number, make in enumerate(makers)]


def _plain(spark: SparkSession, seed: int) -> _Maker:
    made = _Maker(spark, "plain", {**_ALL, "c": "char(4)", **_STRUCT}, seed)
    for nulls in (0.0, 0.1, 0.6, 1.0):
        made.append(12, nulls)

    def finite(row: dict[str, Any], _: int) -> None:
        row["d"], row["f"] = made.random.gauss(0, 10), single(made.random.gauss(0, 10))

    def zero(row: dict[str, Any], number: int) -> None:
        row["d"] = row["f"] = -0.0 if number else 0.0

    def infinite(row: dict[str, Any], number: int) -> None:
        row["d"] = row["f"] = row["st.d"] = (10.5, math.inf, -math.inf)[number % 3]

    def undefined(row: dict[str, Any], number: int) -> None:
        row["d"] = row["f"] = row["st.d"] = math.nan if number % 3 == 1 else single(-10.310118564421344)

    return made.append(6, 0, finite).append(3, 0, zero).append(3, 0, infinite).append(4, 0, undefined)


def _indexed(spark: SparkSession, seed: int) -> _Maker:
    made = _Maker(spark, "indexed", {**_ALL, **_STRUCT}, seed, index="d,i,s", cube_size=8, file_bytes="5kb")
    made.append(30).append(10, 0)
    made.table.index()
    made.table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='f,ts,n,st.a')")
    made.append(30, 0.2)
    made.table.index()
    return made.append(6)


def _changed(spark: SparkSession, seed: int) -> _Maker:
    """Renamed, added and dropped columns, deletion vectors, and texts indexed by hashes."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    kinds = {**_ALL, "gone": "int", **_STRUCT}
    made = _Maker(
        spark, "changed", kinds, seed, index="s:hashing,l,dt", cube_size=10, file_bytes="5kb", properties=properties
    )
    made.append(24).append(12, 0.3)
    made.table.index()
    made.delete(0)
    for text in (
        "RENAME COLUMN l TO `long name`",
        "DROP COLUMN gone",
        "ADD COLUMN later DATE",
        "RENAME COLUMN d TO D2",
    ):
        made.table.sql(f"ALTER TABLE {{t}} {text}")
    kept = {"l": "long name", "d": "D2"}
    inner = {c: made.kinds.pop(c) for c in _STRUCT}
    made.rows = [{kept.get(c, c): v for c, v in row.items() if c != "gone"} | {"later": None} for row in made.rows]
    made.kinds = {kept.get(c, c): kind for c, kind in made.kinds.items() if c != "gone"} | {"later": "date"} | inner
    made.append(20)
    return made.delete(1)


def _texts(spark: SparkSession, seed: int) -> _Maker:
    """Partitions by texts that paths have to escape."""
    kinds = {"id": "bigint", "p": "string", "Q": "string", "d": "double", "s": "string"}
    made = _Maker(
        spark, "texts", kinds, seed, tail="PARTITIONED BY (p, Q)", index="d,s", cube_size=10, file_bytes="5kb"
    )

    def hostile(row: dict[str, Any], number: int) -> None:
        row["p"] = HOSTILE[number] if number < len(HOSTILE) else None if number % 2 else ""
        row["Q"] = HOSTILE[number % 3] if number % 4 else None

    made.append(len(HOSTILE) + 4, 0.1, hostile)
    # Spark writes an empty text in a partition column as null.
    made.rows = [{**row, "p": row["p"] or None} for row in made.rows]
    return made


def _values_as_partitions(spark: SparkSession, seed: int) -> _Maker:
    """Partitions by values of other types."""
    parts = {
        "pd": "double", "pf": "float", "pt": "timestamp", "pq": "timestamp_ntz", "pg": "date", "pn": "decimal(10,2)",
        "pb": "boolean", "pi": "bigint",
    }  # fmt: skip
    made = _Maker(
        spark, "values", {"id": "bigint", "i": "int", **parts}, seed, tail=f"PARTITIONED BY ({', '.join(parts)})"
    )

    def special(row: dict[str, Any], number: int) -> None:
        row["pd"] = _FLOATS[number] if number < len(_FLOATS) else row["pd"]
        row["pf"] = single(_FLOATS[-number]) if number < len(_FLOATS) else row["pf"]
        row["pt"] = _TIMES[number] if number < len(_TIMES) else row["pt"]
        row["pq"] = _TIMES[-number] if number < len(_TIMES) else row["pq"]
        row["pg"] = _DATES[number] if number < len(_DATES) else row["pg"]

    return made.append(24, 0.1, special)


def _widened(spark: SparkSession, seed: int) -> _Maker:
    """Widened columns of all kinds, with rows deleted before and after."""
    kinds = {
        "id": "bigint", "y": "tinyint", "h": "smallint", "i": "int", "k": "int", "e": "int", "f": "float",
        "n": "decimal(10,2)", "dt": "date", "m": "decimal(10,2)", "s": "string", "st.a": "int",
        "st.d": "float", "st.s": "string",
    }  # fmt: skip
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableTypeWidening": "true",
        "delta.feature.timestampNtz": "supported",
    }
    made = _Maker(
        spark, "widened", kinds, seed, index="f,i,dt,n", cube_size=10, file_bytes="5kb", properties=properties
    )
    made.append(24).append(12, 0.2)
    made.table.index()
    made.append(6, 0).delete(2)
    changes: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "y": ("int", int), "h": ("bigint", int), "i": ("bigint", int), "k": ("double", float),
        "e": ("decimal(20,2)", Decimal), "f": ("double", float), "n": ("decimal(14,4)", Decimal),
        "dt": ("timestamp_ntz", lambda days: days * _DAY), "m": ("decimal(25,6)", Decimal), "st.a": ("bigint", int),
        "st.d": ("double", float),
    }  # fmt: skip
    for column, (kind, change) in changes.items():
        made.table.sql(f"ALTER TABLE {{t}} ALTER COLUMN {column} TYPE {kind}")
        made.kinds[column] = kind
        for row in made.rows:
            row[column] = None if row[column] is None else change(row[column])
    made.append(12)
    made.delete(1)
    return made.append(6, 0.3)


def _checkpointed(spark: SparkSession, seed: int) -> _Maker:
    """Statistics that are columns of a checkpoint, and partitions whose values are, too."""
    properties = {
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.enableDeletionVectors": "true",
    }
    kinds = {
        "id": "bigint",
        "p": "string",
        "pt": "timestamp",
        **{c: kind for c, kind in _ALL.items() if c != "id"},
        **_STRUCT,
    }
    made = _Maker(
        spark,
        "checkpointed",
        kinds,
        seed,
        properties=properties,
        tail="PARTITIONED BY (p, pt)",
        index="d,dt",
        cube_size=10,
    )

    def place(row: dict[str, Any], number: int) -> None:
        row["p"] = (None, "New York", "b=/%")[number % 3]
        row["pt"] = (_LAST_MICROS, 64_060_588_800_000_001, None)[number % 3]

    made.append(15, 0.1, place).append(15, 0, place)
    made.table.index()
    made.delete(0).append(6, 0.2, place)
    made.table.checkpoint()
    for file in (made.table.path / "_delta_log").glob("*.json"):
        if int(file.stem) < made.table.version:
            file.unlink()
    return made.append(6, 0.2, place)


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
