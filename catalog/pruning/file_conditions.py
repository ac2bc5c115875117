"""Selection of files that may match a predicate, by the statistics and partition values in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from catalog.pruning.row_predicate import RowPredicate, resolve

_HELPER = "__use_bounds"
_LONGEST_LIST = 1_000
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
# Conditions under which a comparison can be true for a value of the file, whose values are between {low} and {high}.
_POSSIBLE = {
    "=": "{low} <= {value} AND {high} >= {value}",
    "<>": "NOT ({low} = {value} AND {high} = {value})",
    "<": "{low} < {value}",
    "<=": "{low} <= {value}",
    ">": "{high} > {value}",
    ">=": "{high} >= {value}",
}
_CAST_TYPES = {
    exp.DType.DATE: "date", exp.DType.TIMESTAMPTZ: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}  # fmt: skip
_NUMBER_TYPES = (
    exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE,
    exp.DType.DECIMAL,
)  # fmt: skip
# Types of literals, in addition to strings, with which a time may be compared. Conversions between the two kinds of
# timestamps do not keep the order when clocks change.
_TIMES = {
    "date": ("date", "timestamp", "timestamp_ntz"),
    "timestamp": ("date", "timestamp"),
    "timestamp_ntz": ("date", "timestamp_ntz"),
}


def files_that_may_match(
    spark: SparkSession, schema: StructType, partition_columns: Sequence[str], predicate: RowPredicate
) -> Callable[[DataFrame], DataFrame]:
    """Returns a filter for ``TableSnapshot.only`` that keeps every file that may contain a matching row.

    Comparisons of a column with literals, BETWEEN, IN, IS [NOT] NULL and AND, OR, NOT over them are evaluated. Any
    other condition may be true in any file, and any condition may be true in a file without statistics.

    Args:
        spark: session whose time zone and settings apply.
        schema: logical schema of the table.
        partition_columns: logical names.
        predicate: checked against the schema.
    """
    if '"' in predicate.text and spark.conf.get("spark.sql.ansi.doubleQuotedIdentifiers", "false") == "true":
        return lambda files: files  # a string in the parsed tree may be a name in Spark
    translation = _Translation(spark, schema)
    possible = translation.possible(predicate.tree, wanted=True)
    if possible is None:
        return lambda files: files
    bounds = _bounds(translation.columns, partition_columns)
    return lambda files: files.withColumn(_HELPER, bounds).where(possible).drop(_HELPER)


@dataclass
class _Translation:
    """Generates SQL over the bounds of a file and collects the columns whose bounds it needs."""

    spark: SparkSession
    schema: StructType
    columns: list[tuple[StructField, ...]] = field(default_factory=list)

    def possible(self, node: exp.Expr, wanted: bool) -> str | None:
        """Returns SQL that is true if ``node`` may equal ``wanted`` for a row of the file; None = always true."""
        if isinstance(node, exp.Paren):
            return self.possible(node.this, wanted)
        if isinstance(node, exp.Not):
            return self.possible(node.this, not wanted)
        if isinstance(node, (exp.And, exp.Or)):
            parts = [self.possible(operand, wanted) for operand in _operands(node)]
            # "not (a and b)" is "not a or not b", even if one of them is null.
            if isinstance(node, exp.And) == wanted:
                return " AND ".join(f"({part})" for part in parts if part is not None) or None
            return None if None in parts else " OR ".join(f"({part})" for part in parts)
        return self._leaf(node, wanted)

    def _leaf(self, node: exp.Expr, wanted: bool) -> str | None:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            number = self._column(node.this)
            return None if number is None else f"{_HELPER}.{'null' if wanted else 'some'}{number}"
        if isinstance(node, exp.In) and not node.args.get("query") and not node.args.get("unnest"):
            return self._in(node, wanted)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            both = [
                self._compared(node.this, op, node.args[end], wanted) for op, end in ((">=", "low"), ("<=", "high"))
            ]
            if wanted:
                return " AND ".join(part for part in both if part is not None) or None
            return None if None in both else " OR ".join(f"({part})" for part in both)
        operator = _OPERATORS.get(type(node))
        if operator is None:
            return None
        if isinstance(node.this, (exp.Column, exp.Dot)):
            return self._compared(node.this, operator, node.expression, wanted)
        return self._compared(node.expression, _MIRRORED[operator], node.this, wanted)

    def _in(self, node: exp.In, wanted: bool) -> str | None:
        # Values of several types are compared in their common type, which pairs of values do not determine.
        if not 0 < len(node.expressions) <= _LONGEST_LIST or len({_kind(value) for value in node.expressions}) > 1:
            return None
        parts = [self._compared(node.this, "=", value, wanted) for value in node.expressions]
        if wanted:
            return None if None in parts else " OR ".join(f"({part})" for part in parts)
        return " AND ".join(f"({part})" for part in parts if part is not None) or None

    def _compared(self, column: exp.Expr, operator: str, value: exp.Expr, wanted: bool) -> str | None:
        number = self._column(column)
        if number is None:
            return None
        literal = self._literal(value, self.columns[number][-1].dataType)
        if literal is None:
            return None
        if operator == "<=>":
            if not wanted:  # null differs from every value
                return None
            operator = "="
        possible = _POSSIBLE[operator if wanted else _OPPOSITE[operator]]
        text = possible.format(low=f"{_HELPER}.low{number}", high=f"{_HELPER}.high{number}", value=literal)
        return f"{_HELPER}.some{number} AND coalesce({text}, true)"

    def _column(self, node: exp.Expr) -> int | None:
        """Returns the number of a column that has bounds; None if it has none."""
        path = resolve(self.schema, node)
        if path is None:
            return None
        last = path[-1]
        data_type = last.dataType
        known = isinstance(data_type, (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType))
        # CHAR values are padded when they are read, and other collations have a different order.
        is_text = data_type == StringType() and "__CHAR_VARCHAR_TYPE_STRING" not in (last.metadata or {})
        if not known and not is_text:
            return None
        if path not in self.columns:
            self.columns.append(path)
        return self.columns.index(path)

    def _literal(self, node: exp.Expr, column: DataType) -> str | None:
        """Returns SQL of a literal that is compared in the order of the column's values; None for other literals."""
        if isinstance(node, exp.Paren):
            return self._literal(node.this, column)
        if isinstance(column, BooleanType):
            return str(node.this).lower() if isinstance(node, exp.Boolean) else None
        if isinstance(column, StringType):
            return _text(node)
        if isinstance(column, NumericType):
            return _number(node)
        return self._time(node, column)

    def _time(self, node: exp.Expr, column: DataType) -> str | None:
        kind = column.simpleString()
        if isinstance(node, exp.Literal):
            text = _text(node)
            return None if text is None else f"try_cast({text} AS {kind})"
        if not isinstance(node, (exp.Cast, exp.TryCast)):
            return None
        as_type = _CAST_TYPES.get(node.to.this)
        text = _text(node.this)
        if as_type is None or text is None or as_type not in _TIMES[kind]:
            return None
        # A setting decides which kind of timestamp TIMESTAMP means.
        if as_type == "timestamp" and self.spark.conf.get("spark.sql.timestampType") != "TIMESTAMP_LTZ":
            return None
        return f"try_cast({text} AS {as_type})"


def _operands(node: exp.Connector) -> list[exp.Expr]:
    """Returns the operands of a chain of one connective, so that thousands of them form one level."""
    operands: list[exp.Expr] = []
    todo: list[exp.Expr] = [node]
    while todo:
        operand = todo.pop()
        if isinstance(operand, exp.Connector) and type(operand) is type(node):
            todo += [operand.right, operand.left]
        else:
            operands.append(operand)
    return operands


def _kind(node: exp.Expr) -> str:
    """Returns the kind of a literal, which determines how it is compared."""
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _kind(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return "double" if "e" in node.this.lower() else "exact number"
    return "text" if isinstance(node, exp.Literal) else type(node).__name__ + str(node.args.get("to", ""))


def _text(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    # A setting of Spark decides whether a backslash escapes.
    return None if "\\" in node.this or "'" in node.this else f"'{node.this}'"


def _number(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else f"-({inner})"
    if isinstance(node, (exp.Cast, exp.TryCast)):
        plain = isinstance(node.this, exp.Literal) and node.to.this in _NUMBER_TYPES
        return node.sql(dialect="spark", comments=False).replace("TRY_CAST", "try_cast") if plain else None
    if isinstance(node, exp.Literal) and not node.is_string:
        return str(node.this)
    return None


def _bounds(columns: Sequence[tuple[StructField, ...]], partition_columns: Sequence[str]) -> Column:
    """Returns a struct of low, high, some (there may be a value) and null (there may be a null) for each column."""
    stats = F.from_json("stats", _stats_schema(columns))
    fields = []
    for number, path in enumerate(columns):
        stored = [_stored_name(part) for part in path]
        data_type = path[-1].dataType
        if path[0].name in partition_columns:
            text = F.col("partitionValues")[stored[0]]
            # Delta stores a null partition value as null or as an empty string.
            text = F.when(text != "", text)
            low = high = text.try_cast(data_type)
            some, null = text.isNotNull(), text.isNull()
        else:
            low = _at(stats["minValues"], stored).try_cast(data_type)
            high = _at(stats["maxValues"], stored).try_cast(data_type)
            if isinstance(data_type, (TimestampType, TimestampNTZType)):
                # Statistics are truncated to milliseconds; the sum may exceed the last timestamp.
                high = F.try_add(high, F.expr("INTERVAL '0.001' SECOND"))
            nulls = _at(stats["nullCount"], stored)
            some = F.coalesce(nulls < stats["numRecords"], F.lit(True))
            null = F.coalesce(nulls > 0, F.lit(True))
        pairs = (("low", low), ("high", high), ("some", some), ("null", null))
        fields += [column.alias(f"{name}{number}") for name, column in pairs]
    return F.struct(*fields)


def _at(column: Column, path: Sequence[str]) -> Column:
    for name in path:
        column = column.getField(name)
    return column


def _stored_name(part: StructField) -> str:
    return str((part.metadata or {}).get("delta.columnMapping.physicalName", part.name))


def _stats_schema(columns: Sequence[tuple[StructField, ...]]) -> StructType:
    paths = [[_stored_name(part) for part in path] for path in columns]
    texts, counts = _nested(paths, StringType()), _nested(paths, LongType())
    of_kind = {"minValues": texts, "maxValues": texts, "nullCount": counts}
    return StructType([StructField("numRecords", LongType()), *(StructField(n, t) for n, t in of_kind.items())])


def _nested(paths: Sequence[Sequence[str]], leaf: DataType) -> StructType:
    """Returns a struct type that contains each path, with values of the leaf type."""
    by_first: dict[str, list[Sequence[str]]] = {}
    for path in paths:
        by_first.setdefault(path[0], []).append(path[1:])
    return StructType(
        [StructField(first, _nested(rest, leaf) if rest[0] else leaf) for first, rest in by_first.items()]
    )
