"""Bounds of the values that a query aggregates, and of the rows that share a weight, from statistics in the log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from catalog.columns.column_names import FoundColumn, column_of, find_stored
from catalog.files.file_rows import bounds_of
from catalog.jvm.query_trees import ExpressionTree, PlanTree
from catalog.jvm.session import metadata_session
from catalog.table.snapshot import TableSnapshot

Range = tuple[float, float]
# Bits of whole numbers, without the sign.
_VALUE_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_WHOLE_LINE: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class TableBounds:
    """The facts in the log of a version about its rows.

    Attributes:
        rows: number of rows; None if a file has no statistics.
        rows_without_key: number of rows whose indexed columns are all NULL, at most. They share a weight.
        ranges: ranges of numeric columns, by lower-case name; only those that every file's statistics have.
    """

    rows: int | None
    rows_without_key: int
    ranges: Mapping[str, Range]

    @classmethod
    def of(cls, snapshot: TableSnapshot, columns: Sequence[str], indexed: Sequence[str]) -> TableBounds:
        """Reads the statistics by one Spark job.

        Args:
            snapshot: the version.
            columns: names of top-level columns.
            indexed: stored names of the indexed columns.
        """
        names = {name.lower() for name in columns}
        found = [
            column_of(field)
            for field in snapshot.schema.fields
            if field.name.lower() in names and isinstance(field.dataType, NumericType)
        ]
        keys = [find_stored(snapshot.schema, name) for name in indexed]
        low, high = map(F.expr, bounds_of(found))
        nulls = [_nulls(column) for column in (*found, *keys)]
        rows = F.get_json_object("stats", "$.numRecords").try_cast("bigint")
        deleted = F.coalesce(F.col("deletionVector.cardinality"), F.lit(0))
        session = metadata_session(snapshot.spark, snapshot.extent.log_bytes)
        files = snapshot.state.files_in(session).select(
            (rows - deleted).alias("rows"), rows.alias("records"), low, high, F.array(*nulls).alias("nulls")
        )
        least = [F.min(F.col("low")[n]) for n in range(len(found))]
        most = [F.max(F.col("high")[n]) for n in range(len(found))]
        unknown = [
            F.count_if((F.col("low")[n].isNull() | F.col("high")[n].isNull()) & _has_values(n))
            for n in range(len(found))
        ]
        of_keys = [F.sum(F.coalesce(F.col("nulls")[len(found) + n], F.col("records"))) for n in range(len(keys))]
        total = [F.sum("rows"), F.count_if(F.col("rows").isNull())]
        (row,) = files.agg(*total, *least, *most, *unknown, *of_keys).collect()
        count = len(found)
        values = row[2:]
        ranges = {
            column.path[0].lower(): (values[n], values[count + n])
            for n, column in enumerate(found)
            if values[n] is not None and values[count + n] is not None and not values[2 * count + n]
        }
        without_key = min((value or 0 for value in values[3 * count :]), default=0)
        return cls(None if row[1] else (row[0] or 0), int(without_key), ranges)


def _nulls(column: FoundColumn | None) -> Column:
    if column is None or any("'" in part for part in column.stored_path):
        return F.lit(None).cast("bigint")
    path = "".join(f"['{part}']" for part in column.stored_path)
    return F.get_json_object("stats", f"$['nullCount']{path}").try_cast("bigint")


def _has_values(number: int) -> Column:
    return F.coalesce(F.col("nulls")[number] < F.col("records"), F.lit(True))


class ValueRanges:
    """Ranges of expressions over the rows of a query, by interval arithmetic."""

    def __init__(
        self, bounds: TableBounds, relation: PlanTree, definitions: Mapping[int | None, ExpressionTree]
    ) -> None:
        """Begins with the ranges of the columns.

        Args:
            bounds: of the sampled table.
            relation: its scan.
            definitions: see ``source_columns.definitions_below``.
        """
        self._columns = {
            attribute.attribute_id: bounds.ranges[attribute.name.lower()]
            for attribute in relation.output
            if attribute.name.lower() in bounds.ranges
        }
        self._definitions = definitions

    def of(self, expression: ExpressionTree) -> Range:
        """Returns the least and greatest value; infinite where nothing is known."""
        low, high = self._exact(expression)
        bits = _VALUE_BITS.get(expression.type)
        # Without ANSI mode, larger whole numbers wrap around.
        wraps = bits is not None and low <= high and (low < -(2.0**bits) or high >= 2.0**bits)
        return _WHOLE_LINE if wraps else (low, high)

    def _exact(self, expression: ExpressionTree) -> Range:
        """The same for numbers of any size."""
        number = expression.attribute_id
        children = expression.children
        match expression.kind:
            case "AttributeReference" if number in self._definitions:
                return self.of(self._definitions[number])
            case "AttributeReference":
                return self._columns.get(number, _WHOLE_LINE)
            case "Literal":
                return _constant(expression)
            case "Alias" | "Cast" if expression.type not in ("BOOLEAN", "STRING"):
                return self._cast(expression)
            case "UnaryMinus":
                low, high = self.of(children[0])
                return -high, -low
            case "Abs":
                low, high = self.of(children[0])
                return (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
            case "Add" | "Subtract" | "Multiply":
                return _arithmetic(expression.kind, self.of(children[0]), self.of(children[1]))
            case "Coalesce":
                return _around(map(self.of, children))
            case "If":
                return _around(map(self.of, children[1:]))
            case "CaseWhen":
                values = [*children[1::2], *(children[-1:] if len(children) % 2 else ())]
                return _around(map(self.of, values))
        return _WHOLE_LINE

    def _cast(self, expression: ExpressionTree) -> Range:
        child = expression.children[0]
        if child.type == "BOOLEAN":
            return 0.0, 1.0
        low, high = self.of(child)
        if expression.type in ("DOUBLE", "FLOAT") or not (math.isfinite(low) and math.isfinite(high)):
            return low, high
        return math.floor(low), math.ceil(high)


def _constant(expression: ExpressionTree) -> Range:
    try:
        value = float(str(expression.constant))
    except ValueError:
        return (math.inf, -math.inf) if expression.constant is None else _WHOLE_LINE
    return value, value


def _around(ranges: Iterable[Range]) -> Range:
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _arithmetic(kind: str, left: Range, right: Range) -> Range:
    if kind == "Add":
        low, high = left[0] + right[0], left[1] + right[1]
    elif kind == "Subtract":
        low, high = left[0] - right[1], left[1] - right[0]
    else:
        products = [a * b for a in left for b in right]
        if any(map(math.isnan, products)):
            return _WHOLE_LINE
        low, high = min(products), max(products)
    return _WHOLE_LINE if math.isnan(low) or math.isnan(high) else (low, high)
