"""Parsing of queries into conditions; literals stay SQL texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, UnknownNameError, UseError, first_line
from catalog.predicates.conditions import AllOf, Comparison, Not, Unknown
from catalog.predicates.operators import EQUAL, IN, NOT_EQUAL, NULL_SAFE_EQUAL, STARTS_WITH
from catalog.predicates.sql_conditions import SqlConditions
from catalog.sql_names import name_parts, quoted
from procedures.insight.recommendation.accepted_queries import ACCEPTED
from procedures.insight.recommendation.conditions import QueryCondition, without_negations
from procedures.insight.recommendation.workload import WorkloadQuery

_LONGEST = 100_000
# Levels of a condition; each AND and OR of a chain is one.
_DEEPEST = 900


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
    condition = _condition(where.this) if where is not None else AllOf(())
    text_of_condition = _sql_text(where.this) if where is not None else None
    return WorkloadQuery(number, condition, _fraction(number, text, table), where=text_of_condition)


def _resolve_columns(number: int, select: exp.Select, table: exp.Table, resolve: Callable[[str], str]) -> None:
    """Checks the columns of a query, and removes the table's name or alias from those of the condition."""
    names = [part.name.lower() for part in table.parts]
    # The longest first: t can also be a column.
    qualifiers = [*(names[start:] for start in range(len(names))), [table.alias_or_name.lower()]]
    outputs = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
    for column in list(select.find_all(exp.Column)):
        parts = list(column.parts)
        if isinstance(parts[-1], exp.Star) or column.find_ancestor(exp.Lambda):
            continue
        column_names = [part.name.lower() for part in parts]
        qualifier = next((q for q in qualifiers if q == column_names[: len(q)] and len(q) < len(parts)), [])
        parts = parts[len(qualifier) :]
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


def _condition(where: exp.Expr) -> QueryCondition:
    todo = [(where, 1)]
    while todo:
        node, depth = todo.pop()
        if depth > _DEEPEST:
            raise RecursionError
        if isinstance(node, (exp.Connector, exp.Not, exp.Paren)):
            todo += [(part, depth + 1) for part in node.iter_expressions()]
    return without_negations(SqlConditions(_Reading()).condition(where))


class _Reading:
    """Says of what cannot select files why it cannot; literals stay SQL texts."""

    def comparison(
        self, node: exp.Expr, column: exp.Expr, operator: str, literals: Sequence[exp.Expr]
    ) -> QueryCondition:
        is_column = isinstance(column, exp.Column) and not any(literal.find(exp.Column) for literal in literals)
        if not is_column or operator == NOT_EQUAL:
            return self.other(node)
        used = EQUAL if operator in (IN, NULL_SAFE_EQUAL) else operator
        return Comparison(column.name, used, tuple(literal.sql("spark") for literal in literals), node.sql("spark"))

    def other(self, node: exp.Expr, detail: str = "") -> QueryCondition:
        if not detail and isinstance(node, exp.Like) and (prefix := _prefix(node)) is not None:
            like = Comparison(node.this.name, STARTS_WITH, (prefix,), node.sql("spark"))
            return Not(like) if node.args.get("negate") else like
        if node.find(exp.Column) is None:
            reason = "it compares no column"
        elif isinstance(node, exp.NEQ):
            reason = "almost all values satisfy it"
        else:
            reason = "only comparisons of a column itself with literals can"
        return Unknown(node.sql("spark"), reason)


def _prefix(node: exp.Like) -> str | None:
    """Returns the prefix of the values that a pattern such as ``'ab%'`` matches; None for other patterns."""
    pattern = node.expression
    if not (isinstance(node.this, exp.Column) and isinstance(pattern, exp.Literal) and pattern.is_string):
        return None
    prefix = str(pattern.this).rstrip("%")
    is_prefix = len(prefix) > 0 and pattern.this != prefix and not set(prefix) & set("%_\\")
    return prefix if is_prefix else None
