"""Predicates over the rows of a table, which are parsed and checked against the schema before any data is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StructField, StructType, VariantType
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, TooComplexError, UnknownNameError, first_line
from catalog.jvm.java_errors import is_stack_overflow, text_of
from catalog.jvm.session import same_active_session
from catalog.predicates.sql_conditions import name_parts

_ACCEPTED = "one predicate over the table's columns, e.g. 'x > 1 AND y IN (2, 3)'"
_LONGEST = 1_000_000
# Spark evaluates the predicate over the statistics of every file, and each of its optimizer's rules walks through it.
_MOST_CONNECTIVES = 1_000
_CONNECTIVES = (TokenType.AND, TokenType.OR)
_DEEPEST = 30
_DEPTH_LIMIT = f"at most {_DEEPEST} levels of brackets, CASE, NOT and signs (of STRUCT, {_DEEPEST // 4})"
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
# sqlglot names its classes in messages.
_PYTHON_CLASS = re.compile(r" for <class '[^']*'>")
_REJECTED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate function"),
    (exp.DDL, "a statement"),
    (exp.DML, "a statement"),
    (exp.Command, "a statement"),
)


@dataclass(frozen=True)
class RowPredicate:
    """A parsed predicate.

    Attributes:
        parameter: name of the argument, for errors.
        text: the text of the user.
        tree: the parsed text.
    """

    parameter: str
    text: str
    tree: exp.Expr

    @classmethod
    def parse(cls, parameter: str, text: str) -> RowPredicate:
        """Parses a predicate.

        Raises:
            TooComplexError: the text is too long or too deeply nested.
            InvalidArgumentError: the text is not one predicate.
        """
        if len(text) > _LONGEST:
            raise TooComplexError.of(parameter, f"at most {_LONGEST:,} characters; this one has {len(text):,}")
        try:
            tokens = sqlglot.tokenize(text, read="spark")
            if sum(token.token_type in _CONNECTIVES for token in tokens) > _MOST_CONNECTIVES:
                raise TooComplexError.of(parameter, f"at most {_MOST_CONNECTIVES:,} AND and OR; use IN or BETWEEN")
            if _depth(tokens) > _DEEPEST:
                raise TooComplexError.of(parameter, _DEPTH_LIMIT)
            statements = sqlglot.parse(text, read="spark")
        except RecursionError as error:
            raise TooComplexError.of(parameter, _DEPTH_LIMIT) from error
        except SqlglotError as error:
            reason = _PYTHON_CLASS.sub("", first_line(error))
            raise InvalidArgumentError.of(parameter, text, f"{_ACCEPTED} ({reason})") from error
        tree = statements[0] if len(statements) == 1 else None
        if not isinstance(tree, exp.Expression):
            raise InvalidArgumentError.of(parameter, text, _ACCEPTED)
        for kind, name in _REJECTED:
            # EXISTS(array, x -> ...) is a function over an array unless it contains a query.
            if tree.find(kind) is not None:
                raise InvalidArgumentError.of(parameter, text, f"{_ACCEPTED}, without {name}")
        if not isinstance(tree, (exp.Condition, exp.Func, exp.Boolean)):
            raise InvalidArgumentError.of(parameter, text, _ACCEPTED)
        return cls(parameter, text, tree)

    def check(self, spark: SparkSession, schema: StructType) -> None:
        """Checks the predicate against a schema without reading rows.

        Raises:
            UnknownNameError: the schema lacks a column.
            TooComplexError: the predicate is too deeply nested for Spark.
            InvalidArgumentError: Spark does not accept it as a condition.
        """
        for node in self.tree.find_all(exp.Column):
            self._check_column(schema, name_parts(node))
        with same_active_session():
            rows = spark.createDataFrame([], schema)
        try:
            data_type = rows.select(F.expr(self.text)).schema[0].dataType
            rows.where(self.text).schema  # noqa: B018 - reading the schema analyses the query
        except Py4JJavaError as error:
            if not is_stack_overflow(error):
                raise
            raise TooComplexError.of(self.parameter, "operators nested less deeply: Spark cannot analyse it") from error
        except PySparkException as error:
            raise InvalidArgumentError.of(self.parameter, self.text, f"{_ACCEPTED} ({text_of(error)})") from error
        self._check_casts(spark)
        if not isinstance(data_type, BooleanType):
            kind = data_type.simpleString()
            raise InvalidArgumentError.of(self.parameter, self.text, f"{_ACCEPTED}; this is a value of type {kind}")

    def _check_casts(self, spark: SparkSession) -> None:
        """Rejects a literal that the session cannot cast, because no row could be compared with it."""
        casts = [n.sql("spark") for n in self.tree.find_all(exp.Cast) if isinstance(n.this, exp.Literal)]
        try:
            if casts:
                spark.sql(f"SELECT {', '.join(casts)}").collect()  # literals only: no Spark job
        except PySparkException as error:
            raise InvalidArgumentError.of(self.parameter, self.text, f"{_ACCEPTED} ({text_of(error)})") from error

    def _check_column(self, schema: StructType, parts: Sequence[str]) -> None:
        inside: DataType = schema
        for number, part in enumerate(parts):
            field = _field(inside, part)
            if field is None and isinstance(inside, (ArrayType, MapType, VariantType)):
                return  # Spark checks access to elements
            if field is None:
                before = "".join(f"{p}." for p in parts[:number])
                known = [f"{before}{name}" for name in inside.names] if isinstance(inside, StructType) else []
                raise UnknownNameError.of("column", ".".join(parts), known, self.parameter)
            inside = field.dataType


def resolve(schema: StructType, node: exp.Expr) -> tuple[StructField, ...] | None:
    """Returns the fields from the top-level column to the named one; None if there is no such field."""
    path: list[StructField] = []
    inside: DataType = schema
    for part in name_parts(node):
        field = _field(inside, part)
        if field is None:
            return None
        path.append(field)
        inside = field.dataType
    return tuple(path) or None


def _depth(tokens: Sequence[Token]) -> int:
    """Returns the depth to which a parser has to recurse into a text."""
    deepest = prefixes = 0
    open_levels: list[int] = []
    before = None
    for token in tokens:
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        if token.token_type in _OPENING:
            # STRUCT( may also start a type. The parser tries both alternatives, on each level.
            open_levels.append(4 if before == TokenType.STRUCT else 1)
        elif token.token_type in _CLOSING and open_levels:
            open_levels.pop()
        before = token.token_type
        deepest = max(deepest, sum(open_levels[-_DEEPEST - 1 :]) + prefixes)
    return deepest


def _field(inside: DataType, name: str) -> StructField | None:
    """Looks up a field case-insensitively; None if the name is ambiguous."""
    if not isinstance(inside, StructType):
        return None
    matches = [f for f in inside.fields if f.name.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else None
