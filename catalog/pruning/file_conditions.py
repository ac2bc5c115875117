"""Selection of files that may match a predicate, by the statistics and partition values in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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

from catalog.columns.column_names import DECLARED_TYPE_KEY
from catalog.predicates.conditions import AnyOf, Comparison, Condition, Unknown, leaves, visit
from catalog.predicates.operators import BOUND_TESTS, EQUAL, IN, IS_NULL, NEGATED, NOT_EQUAL, NULL_SAFE_EQUAL
from catalog.predicates.sql_conditions import SqlConditions
from catalog.pruning.row_predicate import RowPredicate, resolve

_Path: TypeAlias = tuple[StructField, ...]
_HELPER = "__use_bounds"
_LONGEST_LIST = 1_000
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
    condition = SqlConditions(_Reading(spark, schema)).condition(predicate.tree)
    columns = list(dict.fromkeys(leaf.column for leaf in leaves(condition) if isinstance(leaf, Comparison)))
    possible = _possible(condition, columns)
    if possible is None:
        return lambda files: files
    bounds = _bounds(columns, partition_columns)
    return lambda files: files.withColumn(_HELPER, bounds).where(possible).drop(_HELPER)


def _possible(condition: Condition[_Path], columns: Sequence[_Path]) -> str | None:
    """Returns SQL over the bounds of a file that is true if the condition may be true for a row; None = always true."""

    def leaf(of: Comparison[_Path] | Unknown, negated: bool) -> str | None:
        return None if isinstance(of, Unknown) else _test(of, columns.index(of.column), negated)

    def both(parts: Sequence[str | None]) -> str | None:
        return " AND ".join(f"({part})" for part in parts if part is not None) or None

    def either(parts: Sequence[str | None]) -> str | None:
        return None if None in parts else " OR ".join(f"({part})" for part in parts) or "false"

    return visit(condition, leaf, both, either)


def _test(comparison: Comparison[_Path], number: int, negated: bool) -> str | None:
    operator = comparison.operator
    if operator == IS_NULL:
        return f"{_HELPER}.{'some' if negated else 'null'}{number}"
    if negated and operator not in NEGATED:  # null differs from every value
        return None
    operator = NEGATED[operator] if negated else EQUAL if operator == NULL_SAFE_EQUAL else operator
    (value,) = comparison.values
    if operator == NOT_EQUAL:
        text = f"NOT ({_HELPER}.low{number} = {value} AND {_HELPER}.high{number} = {value})"
    else:
        text = " AND ".join(f"{_HELPER}.{end}{number} {test} {value}" for end, test in BOUND_TESTS[operator])
    return f"{_HELPER}.some{number} AND coalesce({text}, true)"


@dataclass(frozen=True)
class _Reading:
    """Takes what it does not understand as unknown; values are literals of SQL."""

    spark: SparkSession
    schema: StructType

    def other(self, node: exp.Expr, detail: str = "") -> Unknown:  # noqa: ARG002 - the text of it is not needed
        return Unknown()

    def comparison(
        self,
        node: exp.Expr,  # noqa: ARG002 - the comparison says it all
        column: exp.Expr,
        operator: str,
        literals: Sequence[exp.Expr],
    ) -> Condition[_Path]:
        path = self._path(column)
        if path is None:
            return Unknown()
        if operator == IS_NULL:
            return Comparison(path, operator)
        if operator != IN:
            return self._compared(path, operator, literals[0])
        # Values of several types are compared in their common type, which pairs of values do not determine.
        if len(literals) > _LONGEST_LIST or len({_kind(value) for value in literals}) > 1:
            return Unknown()
        return AnyOf(tuple(self._compared(path, EQUAL, value) for value in literals))

    def _compared(self, path: _Path, operator: str, value: exp.Expr) -> Comparison[_Path] | Unknown:
        literal = self._literal(value, path[-1].dataType)
        return Unknown() if literal is None else Comparison(path, operator, (literal,))

    def _path(self, node: exp.Expr) -> _Path | None:
        """Returns the fields down to a column that has bounds; None if it has none."""
        path = resolve(self.schema, node)
        if path is None:
            return None
        last = path[-1]
        data_type = last.dataType
        known = isinstance(data_type, (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType))
        # CHAR values are padded when they are read, and other collations have a different order.
        is_text = data_type == StringType() and DECLARED_TYPE_KEY not in (last.metadata or {})
        return path if known or is_text else None

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


def _bounds(columns: Sequence[_Path], partition_columns: Sequence[str]) -> Column:
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


def _stats_schema(columns: Sequence[_Path]) -> StructType:
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
