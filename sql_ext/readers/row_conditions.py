"""Conditions of a ``where`` text: parsed once, for the selection of files and for the rows.

Accepted are AND, OR, NOT, parentheses and comparisons of a column with literals: ``=``, ``==``, ``<>``, ``!=``, ``<``,
``<=``, ``>``, ``>=``, ``<=>``, BETWEEN, IN, IS [NOT] NULL, ``LIKE 'prefix%'``, and a BOOLEAN column. They mean
what they mean in Spark: three-valued logic, NaN equal to itself and above all numbers, strings in the order of bytes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, UnknownNameError
from sql_ext.readers.table_columns import Column

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ACCEPTED = (
    "AND, OR, NOT and comparisons of one column with literals (=, <>, <, <=, >, >=, <=>, BETWEEN, IN, IS NULL, "
    "LIKE 'prefix%')"
)


@dataclass(frozen=True)
class Comparison:
    """A column compared with literals.

    Attributes:
        column: the column.
        operator: ``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``<=>``, ``in``, ``is_null`` or ``starts_with``.
        values: the literals in the column's type.
    """

    column: Column
    operator: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Combination:
    """``and``, ``or`` or ``not`` with its operands."""

    operator: str
    of: tuple[Condition, ...]


Condition = Comparison | Combination


def parsed(text: str, find: Callable[[Sequence[str]], Column]) -> Condition:
    """Parses a condition.

    Args:
        text: in Spark's SQL.
        find: returns the column of a path of names; raises ``UnknownNameError``.

    Raises:
        InvalidArgumentError: the text cannot be parsed, or a part of it is not accepted; the message names the part.
        UnknownNameError: there is no such column.
    """
    try:
        (statement,) = sqlglot.parse(f"SELECT 1 WHERE {text}", read="spark")
    except (SqlglotError, ValueError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        raise InvalidArgumentError.of("where", text, f"{_ACCEPTED}; it cannot be parsed ({reason})") from error
    where = statement.args.get("where") if isinstance(statement, exp.Select) else None
    if statement is None or where is None or {k for k, v in statement.args.items() if v} - {"expressions", "where"}:
        raise InvalidArgumentError.of("where", text, f"one condition: {_ACCEPTED}")
    return _Parser(text, find).condition(where.this)


@dataclass(frozen=True)
class _Parser:
    text: str
    find: Callable[[Sequence[str]], Column]

    def condition(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case exp.And() | exp.Or():
                operator = "and" if isinstance(node, exp.And) else "or"
                return Combination(operator, tuple(self.condition(part) for part in node.flatten()))
            case exp.Not():
                return Combination("not", (self.condition(node.this),))
            case exp.Between():
                low = self._comparison(node, node.this, ">=", [node.args["low"]])
                high = self._comparison(node, node.this, "<=", [node.args["high"]])
                return Combination("and", (low, high))
            case exp.In() if node.expressions:
                return self._comparison(node, node.this, "in", node.expressions)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Comparison(self._column(node, node.this), "is_null", ())
            case exp.Like() if not node.args.get("escape"):
                return self._like(node)
            case exp.Column():
                column = self._column(node, node)
                if column.sql_type == "boolean":
                    return Comparison(column, "=", (True,))
            case _ if type(node) in _OPERATORS:
                operator = _OPERATORS[type(node)]
                if isinstance(node.this, exp.Column):
                    return self._comparison(node, node.this, operator, [node.expression])
                mirrored = _MIRRORED.get(operator, operator)
                return self._comparison(node, node.expression, mirrored, [node.this])
        raise self._refused(node)

    def _comparison(self, node: exp.Expr, column: exp.Expr, operator: str, literals: Sequence[exp.Expr]) -> Comparison:
        of = self._column(node, column)
        return Comparison(of, operator, tuple(self._value(literal, of) for literal in literals))

    def _like(self, node: exp.Like) -> Comparison:
        pattern = node.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string:
            text = str(pattern.this)
            if text.endswith("%") and not set(text[:-1]) & set("%_\\"):
                column = self._column(node, node.this)
                if column.sql_type == "string":
                    return Comparison(column, "starts_with", (text[:-1],))
        raise self._refused(node)

    def _column(self, node: exp.Expr, column: exp.Expr) -> Column:
        if not isinstance(column, exp.Column):
            raise self._refused(node)
        return self.find([part.name for part in column.parts])

    def _value(self, literal: exp.Expr, column: Column) -> Any:
        try:
            return _literal(literal, column.sql_type)
        except (ValueError, TypeError, InvalidOperation, OverflowError):
            text = literal.sql(dialect="spark")
            accepted = f"literals of the type of {column.name}, {column.sql_type.upper()}, and {text} is none"
            raise InvalidArgumentError.of("where", self.text, accepted) from None

    def _refused(self, node: exp.Expr) -> InvalidArgumentError:
        return InvalidArgumentError.of("where", self.text, f"{_ACCEPTED}, and not {node.sql(dialect='spark')}")


def _literal(node: exp.Expr, sql_type: str) -> Any:
    """The value of a literal in a column's type.

    Raises:
        ValueError: it has none.
    """
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean) and sql_type == "boolean":
        return bool(node.this)
    if isinstance(node, exp.Cast):
        wanted = {"date": exp.DType.DATE, "timestamp": exp.DType.TIMESTAMPTZ, "timestamp_ntz": exp.DType.TIMESTAMPNTZ}
        kinds = (
            {wanted.get(sql_type), exp.DType.TIMESTAMP} if sql_type.startswith("timestamp") else {wanted.get(sql_type)}
        )
        if node.to.this not in kinds:
            raise ValueError
        node = node.this
    sign = -1 if isinstance(node, exp.Neg) else 1
    if isinstance(node, exp.Neg):
        node = node.this
    if not isinstance(node, exp.Literal):
        raise ValueError(node)  # noqa: TRY004 - a literal of another kind, which the caller names
    text = str(node.this)
    if node.is_string:
        return _of_text(text, sql_type)
    return _of_number(sign * Decimal(text), sql_type)


def _of_number(number: Decimal, sql_type: str) -> Any:
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}.get(sql_type)
    if bits is not None:
        whole = int(number)
        if whole != number or not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise ValueError
        return whole
    if sql_type in ("float", "double"):
        return float(number)
    if sql_type.startswith("decimal"):
        precision, scale = (int(part) for part in sql_type[8:-1].split(","))
        exponent = number.normalize().as_tuple().exponent
        if (isinstance(exponent, int) and -exponent > scale) or number.adjusted() >= precision - scale:
            raise ValueError
        return number
    raise ValueError


def _of_text(text: str, sql_type: str) -> Any:
    match sql_type:
        case "string":
            return text
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            moment = datetime.fromisoformat(text)
            return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        case "timestamp_ntz":
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                return moment
        case "float" | "double" if text.strip().lower() in ("nan", "inf", "-inf", "infinity", "-infinity"):
            return float(text)
    raise ValueError


# ------------------------------------------------------------------------------------- what the index understands


def tree_of(condition: Condition) -> dict[str, Any]:
    """Returns the condition as ``catalog.pruning.conditions`` reads it."""
    if isinstance(condition, Combination):
        return {"operator": condition.operator, "of": [tree_of(part) for part in condition.of]}
    column, operator = condition.column, condition.operator
    if operator == "<>":
        return {"operator": "not", "of": [tree_of(Comparison(column, "=", condition.values))]}
    values = [_internal(value) for value in condition.values]
    tree = {"operator": operator, "column": column.stored_name, "type": column.sql_type, "values": values}
    # Spark compares FLOAT with a literal as DOUBLE.
    return {**tree, "as": "double"} if column.sql_type == "float" else tree


def _internal(value: Any) -> Any:
    """A literal as the shim of Spark writes it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(
                value, "NaN" if math.isnan(value) else repr(value)
            )
        case Decimal():
            return str(value)
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            return (moment - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case bytes():
            return base64.b64encode(value).decode()
    raise TypeError(type(value))


# ------------------------------------------------------------------------------------------------------------- rows


def mask_of(condition: Condition, column_of: Callable[[Column], pa.Array], rows: int) -> pa.Array:
    """Returns for each row whether the condition is true, false, or NULL.

    Args:
        condition: the condition.
        column_of: returns the values of a column.
        rows: number of rows.
    """
    if isinstance(condition, Combination):
        masks = [mask_of(part, column_of, rows) for part in condition.of]
        if condition.operator == "not":
            return pc.invert(masks[0])
        combine = pc.and_kleene if condition.operator == "and" else pc.or_kleene
        result = masks[0]
        for mask in masks[1:]:
            result = combine(result, mask)
        return result
    return _compared(condition, column_of(condition.column))


def _compared(comparison: Comparison, values: pa.Array) -> pa.Array:
    operator, kind = comparison.operator, comparison.column.sql_type
    if operator == "is_null":
        return values.is_null()
    if operator == "starts_with":
        return pc.starts_with(values, pattern=comparison.values[0])
    if kind in ("float", "double"):
        values = values.cast(pa.float64())
    literals = [pa.scalar(value, type=values.type) for value in comparison.values]
    if operator == "in":
        masks = [_equal(values, literal) for literal in literals]
        result = masks[0]
        for mask in masks[1:]:
            result = pc.or_kleene(result, mask)
        return result
    (literal,) = literals
    if operator == "<=>":
        return values.is_null() if not literal.is_valid else pc.fill_null(_equal(values, literal), fill_value=False)
    if operator in ("=", "<>"):
        equal = _equal(values, literal)
        return equal if operator == "=" else pc.invert(equal)
    return _ordered(values, operator, literal)


def _is_nan(literal: pa.Scalar) -> bool:
    return literal.is_valid and pa.types.is_floating(literal.type) and math.isnan(literal.as_py())


def _equal(values: pa.Array, literal: pa.Scalar) -> pa.Array:
    return pc.is_nan(values) if _is_nan(literal) else pc.equal(values, literal)


def _ordered(values: pa.Array, operator: str, literal: pa.Scalar) -> pa.Array:
    """An order comparison in which NaN is equal to itself and above all numbers."""
    functions = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
    if not pa.types.is_floating(values.type) or not literal.is_valid:
        return functions[operator](values, literal)
    nan = pc.is_nan(values)
    if _is_nan(literal):
        constant = {
            "<": pc.invert(nan),
            "<=": pc.or_(nan, pc.invert(nan)),
            ">": pc.and_(nan, pc.invert(nan)),
            ">=": nan,
        }
        return constant[operator]
    compared = functions[operator](values, literal)
    return pc.or_(compared, nan) if operator in (">", ">=") else compared


def columns_in(condition: Condition) -> list[Column]:
    """Returns the columns of a condition."""
    if isinstance(condition, Comparison):
        return [condition.column]
    return [column for part in condition.of for column in columns_in(part)]


def unknown_column(names: Sequence[str], known: Sequence[str]) -> UnknownNameError:
    """Builds the error about a column that a table does not have."""
    return UnknownNameError.of("column", ".".join(names), known)
