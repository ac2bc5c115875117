"""Conditions of a ``where`` text: parsed once, for the selection of files and for the rows.

Accepted are AND, OR, NOT, brackets and comparisons of a column with literals: ``=``, ``==``, ``<>``, ``!=``, ``<``,
``<=``, ``>``, ``>=``, ``<=>``, IS [NOT] DISTINCT FROM, [NOT] BETWEEN, [NOT] IN, IS [NOT] NULL, [NOT] LIKE 'prefix%', a
BOOLEAN column, and IS [NOT] TRUE or FALSE of one. They mean what they mean in Spark with ANSI on, its default.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, TooComplexError
from sql_ext.readers.literals import literal
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
# What a node may say, where it is more than its operands.
_PARTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Like: ("this", "expression", "negate"),
    exp.Column: ("this", "table", "db", "catalog"),
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 50
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
        values: the literals, see ``literals``.
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
        TooComplexError: it is too deeply nested.
        UnknownNameError: there is no such column.
    """
    try:
        return _parsed(text, find)
    except RecursionError as error:
        raise TooComplexError.of("where", f"at most {_DEEPEST} levels of NOT and brackets") from error


def _parsed(text: str, find: Callable[[Sequence[str]], Column]) -> Condition:
    if not isinstance(text, str):
        raise InvalidArgumentError.of("where", text, "a text")
    try:
        (statement,) = sqlglot.parse(f"SELECT 1 WHERE {text}", read="spark")
    except (SqlglotError, ValueError) as error:
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

    def condition(self, node: exp.Expr, depth: int = 0) -> Condition:
        if depth > _DEEPEST:
            raise TooComplexError.of("where", f"at most {_DEEPEST} levels of NOT and brackets")
        self._check_parts(node)
        match node:
            case exp.Paren():
                return self.condition(node.this, depth + 1)
            case exp.And() | exp.Or():
                operator = "and" if isinstance(node, exp.And) else "or"
                return Combination(operator, tuple(self.condition(part, depth + 1) for part in _operands(node)))
            case exp.Not():
                return _negated(self.condition(node.this, depth + 1))
            case exp.Column():
                column = self._column(node, node)
                if column.sql_type == "boolean":
                    return Comparison(column, "=", (True,))
                raise self._refused(node)
        return self._leaf(node)

    def _leaf(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Between():
                low = self._comparison(node, node.this, ">=", [node.args["low"]])
                high = self._comparison(node, node.this, "<=", [node.args["high"]])
                return Combination("and", (low, high))
            case exp.In() if node.expressions:
                return self._comparison(node, node.this, "in", node.expressions)
            case exp.Is():
                return self._is(node)
            case exp.Like():
                like = self._like(node)
                return _negated(like) if node.args.get("negate") else like
            case exp.NullSafeNEQ():
                return _negated(self._compared(node, "<=>"))
            case _ if type(node) in _OPERATORS:
                return self._compared(node, _OPERATORS[type(node)])
        raise self._refused(node)

    def _check_parts(self, node: exp.Expr) -> None:
        """Refuses a node that says more than is understood, such as ``SYMMETRIC`` of BETWEEN."""
        known = _PARTS.get(type(node), ("this", "expression"))
        others = [name for name, value in node.args.items() if value and name not in known]
        if others:
            raise self._refused(node, f" ({', '.join(others)})")

    def _compared(self, node: exp.Expr, operator: str) -> Comparison:
        if isinstance(_unwrapped(node.this), exp.Column):
            return self._comparison(node, node.this, operator, [node.expression])
        return self._comparison(node, node.expression, _MIRRORED.get(operator, operator), [node.this])

    def _comparison(self, node: exp.Expr, column: exp.Expr, operator: str, literals: Sequence[exp.Expr]) -> Comparison:
        of = self._column(node, column)
        if of.collation is not None:
            raise self._refused(node, f": {of.name} has the collation {of.collation}")
        values = tuple(self._value(literal, of, is_listed=operator == "in") for literal in literals)
        # Spark pads the literals of CHAR(n), but not those of BETWEEN.
        if of.width is not None and operator == "in" and None in values:
            raise self._refused(
                node, f": {of.name} is CHAR({of.width}), and Spark pads a list with NULL in another way"
            )
        if of.width is not None and not isinstance(node, exp.Between):
            values = tuple(self._padded(value, of.width, of) for value in values)
        return Comparison(of, operator, values)

    def _is(self, node: exp.Is) -> Comparison:
        column = self._column(node, node.this)
        if isinstance(node.expression, exp.Null):
            return Comparison(column, "is_null", ())
        if isinstance(node.expression, exp.Boolean) and column.sql_type == "boolean":
            return Comparison(column, "<=>", (bool(node.expression.this),))
        raise self._refused(node)

    def _like(self, node: exp.Like) -> Comparison:
        pattern = _unwrapped(node.expression)
        column = self._column(node, node.this)
        is_text = isinstance(pattern, exp.RawString) or (isinstance(pattern, exp.Literal) and pattern.is_string)
        prefix = str(pattern.this).removesuffix("%") if is_text else "%"
        if set(prefix) & set("%_\\") or column.sql_type != "string" or column.collation is not None:
            raise self._refused(node)
        return Comparison(column, "=" if prefix == pattern.this else "starts_with", (prefix,))

    def _column(self, node: exp.Expr, column: exp.Expr) -> Column:
        column = _unwrapped(column)
        if not isinstance(column, exp.Column) or not all(isinstance(part, exp.Identifier) for part in column.parts):
            raise self._refused(node)
        return self.find([part.name for part in column.parts])

    def _value(self, node: exp.Expr, column: Column, *, is_listed: bool) -> Any:
        try:
            return literal(node, column.sql_type, is_listed=is_listed)
        except ValueError:
            text = node.sql(dialect="spark")
            accepted = f"literals of the type of {column.name}, {column.sql_type.upper()}, and {text} is none"
            raise InvalidArgumentError.of("where", self.text, accepted) from None

    def _padded(self, value: str | None, width: int, column: Column) -> str | None:
        if value is not None and len(value) > width:
            accepted = f"texts of at most {width} characters for {column.name}, CHAR({width})"
            raise InvalidArgumentError.of("where", self.text, accepted)
        return value if value is None else value.ljust(width)

    def _refused(self, node: exp.Expr, reason: str = "") -> InvalidArgumentError:
        accepted = f"{_ACCEPTED}, and not {node.sql(dialect='spark')}{reason}"
        return InvalidArgumentError.of("where", self.text, accepted)


def _negated(condition: Condition) -> Condition:
    return Combination("not", (condition,))


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """What AND or OR connects, without the brackets that change nothing."""
    todo = [node]
    while todo:
        part = todo.pop()
        if type(part) is type(node):
            todo += [part.expression, part.this]
        else:
            yield part


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# ------------------------------------------------------------------------------------- what the index understands


def tree_of(condition: Condition) -> dict[str, Any]:
    """Returns the condition as ``catalog.pruning.conditions`` reads it."""
    if isinstance(condition, Combination):
        return {"operator": condition.operator, "of": [tree_of(part) for part in condition.of]}
    column, operator = condition.column, condition.operator
    if column.width is not None and operator != "is_null":
        return {"operator": "unknown"}  # files may have the values without their padding
    if operator == "<>":
        return {"operator": "not", "of": [tree_of(Comparison(column, "=", condition.values))]}
    values = [_internal(value) for value in condition.values]
    tree = {"operator": operator, "column": column.stored_name, "type": column.sql_type, "values": values}
    # Spark compares FLOAT with a literal as DOUBLE.
    return {**tree, "as": "double"} if column.sql_type == "float" else tree


def _internal(value: Any) -> Any:
    """A literal as the shim of Spark writes it."""
    match value:
        case float():
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(
                value, "NaN" if math.isnan(value) else repr(value)
            )
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    return value


def columns_in(condition: Condition) -> list[Column]:
    """Returns the columns of a condition."""
    if isinstance(condition, Comparison):
        return [condition.column]
    return [column for part in condition.of for column in columns_in(part)]
