"""Parsing of queries into conditions; literals stay SQL texts."""

from __future__ import annotations

import sys
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, UnknownNameError, UseError, first_line
from catalog.jvm.metastore import quoted
from catalog.table.near_names import name_parts
from procedures.insight.recommendation.conditions import (
    EQUAL,
    IS_NOT_NULL,
    IS_NULL,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Unusable,
)
from procedures.insight.recommendation.workload import WorkloadQuery

ACCEPTED = "one SELECT over the table, such as SELECT * FROM t WHERE x > 1"
_LONGEST = 100_000
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", IS_NULL: IS_NOT_NULL, IS_NOT_NULL: IS_NULL}


def parse_query(
    number: int, text: str, is_table: Callable[[str], bool], resolve: Callable[[str], str]
) -> WorkloadQuery:
    """Parses one query.

    Args:
        number: position of the query, from 1, for errors.
        text: the query.
        is_table: whether a table name in the query is the table.
        resolve: returns the name of a column as the table has it.

    Raises:
        InvalidArgumentError: the query does not parse, is no SELECT, reads another table or has parameters.
        UnknownNameError: the table lacks a column.
    """
    try:
        return _parsed(number, text, is_table, resolve)
    except RecursionError as error:
        raise _refused(number, text[:100], "it is nested too deeply") from error


def _refused(number: int, text: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError.of("queries", text, f"query {number}: {reason}; give {ACCEPTED}")


def _parsed(number: int, text: str, is_table: Callable[[str], bool], resolve: Callable[[str], str]) -> WorkloadQuery:
    if len(text) > _LONGEST:
        raise _refused(number, text[:100], f"it has {len(text):,} characters, at most {_LONGEST:,} are accepted")
    try:
        statements = sqlglot.parse(text, read="spark")
    except SqlglotError as error:
        raise _refused(number, text, f"it does not parse ({first_line(error)})") from error
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select):
        raise _refused(number, text, "it is not a SELECT")
    if select.find(exp.Placeholder, exp.Parameter, exp.SessionParameter):
        raise _refused(number, text, "it has parameters; write the values")
    tables = list(select.find_all(exp.Table))
    if len(tables) != 1 or any(query is not select for query in select.find_all(exp.Query)):
        raise _refused(number, text, "it must read the table once, without joins and subqueries")
    table = tables[0]
    name = ".".join(part.sql("spark") for part in table.parts)
    if not is_table(name):
        raise _refused(number, text, f"it reads {name}, which is another table")
    _resolve_columns(number, select, table, resolve)
    where = select.args.get("where")
    condition = _condition(where.this, wanted=True) if where is not None else AllOf(())
    text_of_condition = _sql_text(where.this) if where is not None else None
    return WorkloadQuery(number, condition, _fraction(number, text, table), where=text_of_condition)


def _resolve_columns(number: int, select: exp.Select, table: exp.Table, resolve: Callable[[str], str]) -> None:
    """Checks the columns of a query, and removes the table's name or alias from those of the condition."""
    qualifiers = {table.alias_or_name.lower(), table.name.lower()}
    outputs = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
    for column in list(select.find_all(exp.Column)):
        parts = list(column.parts)
        if isinstance(parts[-1], exp.Star) or column.find_ancestor(exp.Lambda):
            continue
        if len(parts) > 1 and parts[0].name.lower() in qualifiers:
            parts = parts[1:]
        in_condition = column.find_ancestor(exp.Where) is not None
        if not in_condition and len(parts) == 1 and parts[0].name.lower() in outputs:
            continue
        try:
            resolved = resolve(".".join(part.sql("spark") for part in parts))
        except UseError as error:
            raise UnknownNameError(
                f"Query {number}: {error.message}", code=error.code, sql_state=error.sql_state
            ) from error
        if in_condition:
            column.replace(exp.Column(this=exp.Var(this=resolved)))


def _sql_text(condition: exp.Expr) -> str:
    """Returns a condition with resolved columns as SQL, with names in backquotes where they need them."""

    def as_sql(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Var):
            return exp.Column(this=exp.Var(this=".".join(map(quoted, name_parts(node.this.name)))))
        return node

    return condition.transform(as_sql).sql("spark")


def _fraction(number: int, text: str, table: exp.Table) -> float:
    """Returns the share of the rows that the query samples."""
    sample = table.args.get("sample")
    if sample is None:
        return 1.0
    percent = sample.args.get("percent")
    if not isinstance(percent, exp.Literal) or percent.is_string or not 0 <= float(percent.this) <= 100:
        raise _refused(number, text, "only samples such as TABLESAMPLE (1 PERCENT) can be estimated")
    return float(percent.this) / 100


def _condition(node: exp.Expr, *, wanted: bool) -> Condition:
    """Returns the condition that ``node`` is ``wanted``, with negations moved to the comparisons."""
    match node:
        case exp.Paren():
            return _condition(node.this, wanted=wanted)
        case exp.Not():
            return _condition(node.this, wanted=not wanted)
        case exp.And() | exp.Or():
            parts = (_condition(node.this, wanted=wanted), _condition(node.expression, wanted=wanted))
            return AllOf(parts) if isinstance(node, exp.And) == wanted else AnyOf(parts)
        case exp.Between():
            ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
            both = tuple(_compared(node, node.this, op, (end,), wanted=wanted) for op, end in ends)
            return AllOf(both) if wanted else AnyOf(both)
        case exp.In() if node.expressions and not node.args.get("query"):
            return _compared(node, node.this, EQUAL, tuple(node.expressions), wanted=wanted)
        case exp.Like() if (prefix := _prefix(node)) is not None:
            if wanted == bool(node.args.get("negate")):
                return Unusable(node.sql("spark"), "almost all values satisfy its negation")
            ends = ((">=", prefix), ("<", _after(prefix)))
            literals = [(operator, exp.Literal.string(end)) for operator, end in ends if end is not None]
            return AllOf(tuple(_compared(node, node.this, op, (end,), wanted=True) for op, end in literals))
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _compared(node, node.this, IS_NULL, (), wanted=wanted)
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return _unusable(node)
    left, right = node.this, node.expression
    if isinstance(left, exp.Column):
        return _compared(node, left, operator, (right,), wanted=wanted)
    return _compared(node, right, _MIRRORED[operator], (left,), wanted=wanted)


def _prefix(node: exp.Like) -> str | None:
    """Returns the prefix of the values that a pattern such as ``'ab%'`` matches; None for other patterns."""
    pattern = node.expression
    if not (isinstance(node.this, exp.Column) and isinstance(pattern, exp.Literal) and pattern.is_string):
        return None
    prefix = str(pattern.this).rstrip("%")
    is_prefix = len(prefix) > 0 and pattern.this != prefix and not set(prefix) & set("%_\\")
    return prefix if is_prefix else None


def _after(prefix: str) -> str | None:
    """Returns the least text above all that begin with a prefix, in the order of bytes; None if there is none."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # The code points of surrogates are no characters.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)


def _compared(
    node: exp.Expr, column: exp.Expr, operator: str, literals: tuple[exp.Expr, ...], *, wanted: bool
) -> Condition:
    negated = _NEGATED.get(operator)
    if not isinstance(column, exp.Column) or any(literal.find(exp.Column) for literal in literals):
        return _unusable(node)
    if not wanted and negated is None:
        return Unusable(node.sql("spark"), "almost all values satisfy its negation")
    used = operator if wanted or negated is None else negated
    return Comparison(column.name, used, tuple(literal.sql("spark") for literal in literals))


def _unusable(node: exp.Expr) -> Unusable:
    column = node.find(exp.Column)
    if column is None:
        reason = "it compares no column"
    elif isinstance(node, exp.NEQ):
        reason = "almost all values satisfy it"
    else:
        reason = "only comparisons of a column itself with literals can"
    return Unusable(node.sql("spark"), reason)
