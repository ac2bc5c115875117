"""The queries that a table is judged by: those of the user, or ranges of its columns, a box and a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catalog.errors import InvalidArgumentError, TooComplexError, UnknownNameError, first_line
from catalog.predicates.conditions import AllOf, Comparison
from catalog.sql_names import name_parts
from procedures.insight.recommendation.accepted_queries import ACCEPTED
from procedures.insight.recommendation.conditions import QueryCondition, bound
from procedures.insight.recommendation.query_parser import parse_query
from procedures.insight.recommendation.simulated_layout import SampledColumn, TableSample
from procedures.insight.recommendation.workload import Workload, WorkloadQuery
from sql_ext.diagnosis.ordered_values import ordered_value_of
from sql_ext.readers.literals import literal
from sql_ext.readers.table_columns import Column, TableColumns

SHARE = 0.01
"""Share of the rows that a range, a box and a sample have."""

PLACES = 7
"""Number of ranges of a column, evenly spaced, of which a mean is taken."""

MOST_COLUMNS = 6
"""Number of columns that are candidates for an index if there are no queries."""

_TIMES, _MEASURES = ("date", "timestamp", "timestamp_ntz"), ("float", "double")
# Most tables are read by time: it counts as much as so many other columns.
_TIME_WEIGHT = 2.0


def range_queries(name: str, column: SampledColumn, places: int = PLACES) -> tuple[WorkloadQuery, ...]:
    """Returns ranges of a column with 1 % of its values each, evenly spaced; none without values."""
    return tuple(WorkloadQuery(number, part) for number, part in enumerate(_ranges(name, column, SHARE, places), 1))


def box_queries(
    columns: Mapping[str, SampledColumn], names: Sequence[str], places: int = PLACES
) -> tuple[WorkloadQuery, ...]:
    """Returns boxes with 1 % of the rows if the columns are independent; each column begins at another place.

    Args:
        columns: sampled values by name.
        names: columns of the boxes.
        places: number of boxes.
    """
    sides = [_ranges(name, columns[name], SHARE ** (1 / len(names)), places) for name in names]
    sides = [side for side in sides if side]
    # Neighbouring boxes of all columns would lie on a diagonal, where correlated columns have their rows.
    parts = (
        AllOf(tuple(side[(place * (n + 1) + n) % len(side)] for n, side in enumerate(sides))) for place in range(places)
    )
    return tuple(WorkloadQuery(number, part) for number, part in enumerate(parts, 1)) if sides else ()


def _ranges(name: str, column: SampledColumn, share: float, places: int) -> list[QueryCondition]:
    values = column.quantiles
    if not values:
        return []
    last = len(values) - 1
    width = share * last
    starts = [(last - width) * (place + 0.5) / places for place in range(places)]
    ends = [(values[round(start)], values[round(start + width)]) for start in starts]
    return [AllOf((Comparison(name, ">=", (low,)), Comparison(name, "<=", (high,)))) for low, high in ends]


def assumed_workload(sample: TableSample, columns: Sequence[Column], places: int, most: int) -> Workload:
    """Returns ranges of the columns that people filter most: times, then keys and names, then other numbers.

    Args:
        sample: a sample of the table.
        columns: columns that may be indexed, in the order of the table.
        places: number of ranges per column.
        most: number of columns.
    """
    usable = [column for column in columns if len(sample.columns[column.name].distinct) > 1]
    chosen = sorted(usable, key=lambda column: _order(column.sql_type))[:most]
    queries: list[WorkloadQuery] = []
    for column in chosen:
        weight = _TIME_WEIGHT if column.sql_type in _TIMES else 1.0
        for query in range_queries(column.name, sample.columns[column.name], places):
            queries.append(WorkloadQuery(len(queries) + 1, query.condition, weight=weight))
    return Workload(tuple(queries))


def _order(sql_type: str) -> int:
    return 0 if sql_type in _TIMES else 2 if sql_type in _MEASURES or sql_type.startswith("decimal") else 1


def parsed_queries(text: str, columns: TableColumns) -> list[WorkloadQuery]:
    """Parses the statements of a file; literals stay SQL texts.

    Args:
        text: SELECT statements, separated by semicolons; they may call the table by any name.
        columns: its columns.

    Raises:
        InvalidArgumentError: a statement cannot be used.
        TooComplexError: a statement is too deeply nested.
        UnknownNameError: the table lacks a column.
    """
    try:
        statements = [node.sql("spark") for node in sqlglot.parse(text, read="spark") if node is not None]
    except RecursionError as error:
        raise TooComplexError.of("queries", "fewer levels of brackets") from error
    except SqlglotError as error:
        raise InvalidArgumentError.of("queries", text[:100], f"{ACCEPTED} ({first_line(error)})") from error
    if not statements:
        raise InvalidArgumentError.of("queries", text[:100], f"statements, separated by semicolons, each {ACCEPTED}")

    def resolve(name: str) -> str:
        return columns.find(name_parts(name)).name

    return [parse_query(number, statement, lambda _: True, resolve) for number, statement in enumerate(statements, 1)]


def with_values(query: WorkloadQuery, columns: TableColumns) -> WorkloadQuery:
    """Returns a parsed query with the values of its literals, in the order of ``ordered_values``."""

    def value_of(name: str, text: str) -> Any:
        column = columns.find(name_parts(name))
        try:
            return ordered_value_of(literal(_node(text), column.sql_type))
        except (ValueError, SqlglotError, UnknownNameError):
            return None

    return WorkloadQuery(
        query.number, bound(query.condition, value_of), query.fraction, query.weight, where=query.where
    )


def _node(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="spark")
