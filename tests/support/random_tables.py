"""Random tables with a random history, from a seed; a type is a line in ``TYPES``."""

import json
from dataclasses import dataclass
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tables import DeltaTable, create

from catalog.properties.index_properties import logical_name

ROWS = 250


@dataclass(frozen=True)
class Kind:
    """A column type of the generator.

    Attributes:
        sql_type: its SQL type.
        value: SQL of a value from ``{v}``, a whole number from 0 to 199; also the spelling of literals.
        specials: SQL of further values.
        transformations: what it may be indexed by, empty for the default.
    """

    sql_type: str
    value: str
    specials: tuple[str, ...] = ()
    transformations: tuple[str, ...] = ("",)

    def literal(self, random: Random) -> str:
        if self.specials and random.random() < 0.15:
            return random.choice(self.specials)
        return self.value.format(v=random.randrange(-5, 205))


_ENDS = ("double('NaN')", "double('Infinity')", "double('-Infinity')", "double('-0.0')", "double('0.0')")
_FLOAT_ENDS = tuple(text.replace("double", "float") for text in _ENDS)

# A new type, or a new transformation of one, is a line here.
TYPES = (
    Kind("TINYINT", "CAST({v} / 2 - 50 AS TINYINT)", ("127Y", "-128Y")),
    Kind("SMALLINT", "CAST(({v} - 100) * 300 AS SMALLINT)"),
    Kind("INT", "CAST(({v} - 100) * 1000000 AS INT)", ("2147483647", "-2147483648")),
    Kind("BIGINT", "CAST({v} - 100 AS BIGINT) * 10000000000", ("9223372036854775807L",)),
    Kind("FLOAT", "CAST(({v} - 100) / 7D AS FLOAT)", _FLOAT_ENDS),
    Kind("DOUBLE", "({v} - 100) / 7D", _ENDS),
    Kind("DECIMAL(10,2)", "CAST(({v} - 100) / 8D AS DECIMAL(10,2))"),
    Kind("DECIMAL(25,4)", "CAST(({v} - 100) * 1.25D AS DECIMAL(25,4))", ("123456789012345678901.2345BD",)),
    Kind("DATE", "date_add(DATE'2020-01-01', CAST({v} * 5 AS INT))", ("DATE'1582-10-04'", "DATE'9999-12-31'")),
    Kind("TIMESTAMP", "timestamp_micros(1600000000000000 + CAST({v} AS BIGINT) * 86400001007)"),
    Kind("STRING", "concat('s', CAST({v} AS INT) % 60)", ("''", "'é\U0001f600'"), ("", "hashing")),
)


@dataclass
class RandomTable:
    """A table, what its columns are, and how it came to be."""

    table: DeltaTable
    columns: dict[str, Kind]
    history: list[str]

    @property
    def hashed(self) -> list[str] | None:
        """Today's names of the columns that a sample hashes; None before the first indexing."""
        revisions = self.table.revisions
        # The schema of a DataFrame does not tell the names of column mapping.
        schema = StructType.fromJson(json.loads(self.table.replayed()[1]["schemaString"]))
        if not revisions or not revisions[max(revisions)].transformations:
            return None
        return [logical_name(schema, c) for c in revisions[max(revisions)].columns]


def random_table(spark: SparkSession, name: str, random: Random) -> RandomTable:
    """Creates a table, fills it and takes it through appends, changes and optimizations."""
    kinds = [random.choice(TYPES) for _ in range(random.randint(3, 5))]
    columns = {f"c{i}": kind for i, kind in enumerate(kinds)}
    properties = {}
    if random.random() < 0.5:
        properties["delta.enableDeletionVectors"] = "true"
    if random.random() < 0.3:
        properties["delta.columnMapping.mode"] = "name"
    text = ", ".join(["id BIGINT", "p INT", *(f"{c} {kind.sql_type}" for c, kind in columns.items())])
    partitioned = random.random() < 0.3
    tail = "PARTITIONED BY (p)" if partitioned else ""
    table = create(
        spark, name, text, index=_index(columns, random), cube_size=random.choice([20, 60]),
        file_bytes=random.choice(["3kb", "6kb"]), properties=properties, tail=tail,
    )  # fmt: skip
    made = RandomTable(table, columns, [f"CREATE ({text}) {properties} {partitioned=}"])
    _append(made, random)
    if random.random() < 0.95:
        _index_it(made, random)
    steps = [_append, _delete, _update, _merge, _index_it, _compact, _other_columns]
    for step in random.choices(steps, weights=[4, 3, 2, 2, 4, 1, 2], k=random.randint(2, 4)):
        step(made, random)
    return made


def predicate(columns: dict[str, Kind], random: Random, depth: int = 2) -> str:
    """A condition over the columns, with operators that the index understands and some that it does not."""
    if depth and random.random() < 0.6:
        parts = [predicate(columns, random, depth - 1) for _ in range(random.randint(2, 3))]
        text = "(" + random.choice([" AND ", " AND ", " OR "]).join(parts) + ")"
        return f"NOT {text}" if random.random() < 0.15 else text
    column, kind = random.choice(list(columns.items()))

    def value() -> str:
        return kind.literal(random) if random.random() < 0.95 else f"CAST(NULL AS {kind.sql_type})"

    comparison = random.choice(["=", "<=>", "<", "<=", ">", ">=", "<>"])
    shapes = [
        f"{column} {comparison} {value()}",
        f"{column} {comparison} {value()}",
        f"{value()} {comparison} {column}",
        f"{column} BETWEEN {value()} AND {value()}",
        f"{column} IN ({', '.join(value() for _ in range(random.choice([1, 3, 14])))})",
        f"{column} IS {random.choice(['', 'NOT '])}NULL",
        f"NOT ({column} {comparison} {value()})",
        f"coalesce({column}, {kind.literal(random)}) {comparison} {value()}",
        f"CAST({column} AS STRING) {comparison} CAST({value()} AS STRING)",
        f"hash({column}) % 3 = 1",
    ]
    if kind.sql_type in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"):
        shapes += [f"{column} {comparison} {random.choice(['1.5D', '17', '-3.25BD', '9007199254740993L'])}"]
        shapes += [f"abs({column} / 2) < 10"]
    if kind.sql_type in ("DATE", "TIMESTAMP"):
        shapes += [f"{column} {comparison} TIMESTAMP'2020-12-07 03:00:00'", f"{column} {comparison} DATE'2021-02-03'"]
        shapes += [f"CAST({column} AS DATE) {comparison} DATE'2020-11-02'"]
    if kind.sql_type == "STRING":
        shapes += [f"{column} LIKE 's{random.randrange(6)}%'", f"startswith({column}, 's1')", f"upper({column}) > 'S3'"]
    return random.choice(shapes)


def _index(columns: dict[str, Kind], random: Random) -> str:
    chosen = random.sample(list(columns), random.randint(1, min(3, len(columns))))
    entries = [(c, random.choice(columns[c].transformations)) for c in chosen]
    return ",".join(f"{c}:{kind}" if kind else c for c, kind in entries)


def _rows(made: RandomTable, start: int, count: int, random: Random) -> DataFrame:
    """Rows of which some columns are skewed, some hold one value only, and all hold nulls and special values."""
    values = []
    for column, kind in made.columns.items():
        draw = f"pmod(xxhash64(id, '{column}', {random.randrange(1000)}), 200)"
        shape = random.choice(["{d}", "{d}", "CAST(pow({d} / 200D, 4) * 200 AS INT)", "{d} % 3", "7"])
        value = kind.value.format(v=f"({shape.format(d=draw)})")
        cases = ["WHEN 0 THEN NULL", *(f"WHEN {i} THEN {s}" for i, s in enumerate(kind.specials, 1))]
        seldom = f"pmod(xxhash64(id, 'special', '{column}'), {random.choice([15, 60, 1000])})"
        values.append(f"CAST(CASE {seldom} {' '.join(cases)} ELSE {value} END AS {kind.sql_type}) {column}")
    return made.table.spark.range(start, start + count, 1, 1).selectExpr("id", "CAST(id % 3 AS INT) p", *values)


def _append(made: RandomTable, random: Random) -> None:
    made.table.append(_rows(made, 10_000 * len(made.history), random.choice([20, ROWS, 2 * ROWS]), random))
    made.history.append("append")


def _delete(made: RandomTable, random: Random) -> None:
    condition = f"id % 7 = {random.randrange(7)} OR ({predicate(made.columns, random, 0)} AND id % 2 = 0)"
    made.table.sql(f"DELETE FROM {{t}} WHERE {condition}")
    made.history.append(f"DELETE {condition}")


def _update(made: RandomTable, random: Random) -> None:
    column, kind = random.choice(list(made.columns.items()))
    text = f"SET {column} = CAST({kind.literal(random)} AS {kind.sql_type}) WHERE id % 11 = {random.randrange(11)}"
    made.table.sql(f"UPDATE {{t}} {text}")
    made.history.append(f"UPDATE {text}")


def _merge(made: RandomTable, random: Random) -> None:
    _rows(made, random.choice([0, 10_000]), 60, random).createOrReplaceTempView("oracle_source")
    made.table.sql(
        "MERGE INTO {t} t USING oracle_source s ON t.id = s.id WHEN MATCHED AND s.id % 5 = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    made.history.append("MERGE")


def _index_it(made: RandomTable, random: Random) -> None:
    made.table.index()
    made.history.append("index")


def _compact(made: RandomTable, random: Random) -> None:
    made.table.optimize(max_iterations=2)
    made.history.append("optimize")


def _other_columns(made: RandomTable, random: Random) -> None:
    wanted = _index(made.columns, random)
    made.table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.columns'='{wanted}')")
    made.history.append(f"index columns {wanted}")
