"""Conditions of a ``where`` text: parsed once, for the selection of files and for the rows.

Accepted are AND, OR, NOT, brackets and comparisons of a column with literals: ``=``, ``==``, ``<>``, ``!=``, ``<``,
``<=``, ``>``, ``>=``, ``<=>``, IS [NOT] DISTINCT FROM, [NOT] BETWEEN, [NOT] IN, IS [NOT] NULL, [NOT] LIKE 'prefix%', a
BOOLEAN column, and IS [NOT] TRUE or FALSE of one. They mean what they mean in Spark with ANSI on, its default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, TooComplexError
from catalog.predicates.conditions import Comparison, Condition, Not, Unknown, with_leaves
from catalog.predicates.index_conditions import IndexCondition, StoredColumn
from catalog.predicates.operators import EQUAL, IN, IS_NULL, NULL_SAFE_EQUAL, STARTS_WITH
from catalog.predicates.sql_conditions import SqlConditions, literal_text, name_parts, unwrapped
from sql_ext.readers.literals import literal
from sql_ext.readers.table_columns import Column, TableColumns

_DEEPEST = 50
_SURROGATES = re.compile("[\ud800-\udfff]")
_ACCEPTED = (
    "AND, OR, NOT and comparisons of one column with literals (=, <>, <, <=, >, >=, <=>, BETWEEN, IN, IS NULL, "
    "LIKE 'prefix%')"
)

RowCondition: TypeAlias = Condition[Column]
"""Values are of the column's type, see ``literals``."""


def parsed(text: str, find: Callable[[Sequence[str]], Column]) -> RowCondition:
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


def _parsed(text: str, find: Callable[[Sequence[str]], Column]) -> RowCondition:
    if not isinstance(text, str):
        raise InvalidArgumentError.of("where", text, "a text")
    if _SURROGATES.search(text):
        raise InvalidArgumentError.of("where", text, "valid Unicode, without halves of surrogate pairs")
    try:
        (statement,) = sqlglot.parse(f"SELECT 1 WHERE {text}", read="spark")
    except (SqlglotError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise InvalidArgumentError.of("where", text, f"{_ACCEPTED}; it cannot be parsed ({reason})") from error
    where = statement.args.get("where") if isinstance(statement, exp.Select) else None
    if statement is None or where is None or {k for k, v in statement.args.items() if v} - {"expressions", "where"}:
        raise InvalidArgumentError.of("where", text, f"one condition: {_ACCEPTED}")
    return SqlConditions(_Reading(text, find), _DEEPEST).condition(where.this)


@dataclass(frozen=True)
class _Reading:
    """Refuses by name what is not understood."""

    text: str
    find: Callable[[Sequence[str]], Column]

    def comparison(
        self, node: exp.Expr, column: exp.Expr, operator: str, literals: Sequence[exp.Expr]
    ) -> Comparison[Column]:
        of = self._column(node, column)
        if operator == IS_NULL:
            return Comparison(of, operator)
        if of.collation is not None:
            raise self._refused(node, f": {of.name} has the collation {of.collation}")
        values = tuple(self._value(literal, of, is_listed=operator == IN) for literal in literals)
        # Spark pads the literals of CHAR(n), but not those of BETWEEN.
        if of.width is not None and operator == IN and None in values:
            raise self._refused(
                node, f": {of.name} is CHAR({of.width}), and Spark pads a list with NULL in another way"
            )
        if of.width is not None and not isinstance(node, exp.Between):
            values = tuple(self._padded(value, of.width, of) for value in values)
        return Comparison(of, operator, values)

    def other(self, node: exp.Expr, detail: str = "") -> RowCondition:
        match node:
            case _ if detail:
                pass
            case exp.Column() if self._column(node, node).sql_type == "boolean":
                return Comparison(self._column(node, node), EQUAL, (True,))
            case exp.Is():
                column = self._column(node, node.this)
                if isinstance(node.expression, exp.Boolean) and column.sql_type == "boolean":
                    return Comparison(column, NULL_SAFE_EQUAL, (bool(node.expression.this),))
            case exp.Like():
                like = self._like(node)
                return Not(like) if node.args.get("negate") else like
            case exp.NullSafeNEQ():
                return Not(SqlConditions(self).compared(node, NULL_SAFE_EQUAL))
        raise self._refused(node, detail)

    def _like(self, node: exp.Like) -> Comparison[Column]:
        pattern = literal_text(unwrapped(node.expression))
        column = self._column(node, node.this)
        prefix = "%" if pattern is None else pattern.removesuffix("%")
        if set(prefix) & set("%_\\") or column.sql_type != "string" or column.collation is not None:
            raise self._refused(node)
        return Comparison(column, EQUAL if prefix == pattern else STARTS_WITH, (prefix,))

    def _column(self, node: exp.Expr, column: exp.Expr) -> Column:
        column = unwrapped(column)
        parts = name_parts(column)
        if not isinstance(column, exp.Column) or not parts:
            raise self._refused(node)
        return self.find(parts)

    def _value(self, node: exp.Expr, column: Column, *, is_listed: bool) -> Any:
        try:
            return literal(node, column.sql_type, is_listed=is_listed)
        except ValueError:
            if not column.sql_type:
                accepted = f"only IS NULL of {column.name}, which is a struct, an array or a map"
                raise InvalidArgumentError.of("where", self.text, accepted) from None
            text = node.sql(dialect="spark")
            accepted = f"literals of the type of {column.name}, {column.sql_type.upper()}, and {text} is none"
            raise InvalidArgumentError.of("where", self.text, accepted) from None

    def _padded(self, value: str | None, width: int, column: Column) -> str | None:
        if value is not None and len(value) > width:
            accepted = f"texts of at most {width} characters for {column.name}, CHAR({width})"
            raise InvalidArgumentError.of("where", self.text, accepted)
        return value if value is None else value.ljust(width)

    def _refused(self, node: exp.Expr, detail: str = "") -> InvalidArgumentError:
        accepted = f"{_ACCEPTED}, and not {node.sql(dialect='spark')}{detail}"
        return InvalidArgumentError.of("where", self.text, accepted)


def index_condition(condition: RowCondition, columns: TableColumns) -> IndexCondition:
    """Returns a condition as the index judges it.

    Args:
        condition: the condition.
        columns: all columns of the table.
    """

    def leaf(of: Comparison[Column] | Unknown) -> IndexCondition:
        if isinstance(of, Unknown) or (of.column.width is not None and of.operator != IS_NULL):
            return Unknown()  # files may have the values of CHAR without their padding
        column = of.column
        if columns.is_ambiguous(column.stored_name):
            return Unknown()  # the index may be that of another column
        # Spark compares FLOAT with a literal as DOUBLE.
        stored = StoredColumn(column.stored_name, column.sql_type, "double" if column.sql_type == "float" else None)
        return Comparison(stored, of.operator, of.values)

    return with_leaves(condition, leaf)
