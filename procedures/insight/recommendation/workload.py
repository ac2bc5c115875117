"""The workload that a layout is judged by, and its derivation from recorded consumption."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.predicates.conditions import AllOf, Comparison, Unknown, leaves
from catalog.predicates.operators import EQUAL, IS_NOT_NULL, IS_NULL
from procedures.insight.recommendation.conditions import QueryCondition, deciding_comparisons

_SEED = 42
# Each fraction adds a division to the files of every layout.
_MOST_FRACTIONS = 3
_OPERATORS: Mapping[str, str] = {
    "=": "=", "<=>": "=", "in": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "between": "between",
    "is null": IS_NULL, "is not null": IS_NOT_NULL,
}  # fmt: skip


@dataclass(frozen=True)
class WorkloadQuery:
    """A query as far as it decides which files are read.

    Attributes:
        number: its position, from 1.
        condition: the condition that its rows satisfy.
        fraction: share of the rows that it samples; 1 for all.
        weight: how often it runs, relative to the other queries.
        where: the condition as SQL; None if the query comes from consumption or has no condition.
    """

    number: int
    condition: QueryCondition
    fraction: float = 1.0
    weight: float = 1.0
    where: str | None = None


@dataclass(frozen=True)
class Workload:
    """Queries of one table."""

    queries: tuple[WorkloadQuery, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose comparisons can exclude files, each once, in order of appearance."""
        return tuple(dict.fromkeys(c.column for q in self.queries for c in deciding_comparisons(q.condition)))

    @property
    def has_samples(self) -> bool:
        """Whether any query reads a sample."""
        return any(query.fraction < 1.0 for query in self.queries)

    @property
    def unusable(self) -> tuple[tuple[int, Unknown], ...]:
        """Conditions that cannot select files, with the numbers of their queries."""
        return tuple(
            (q.number, leaf) for q in self.queries for leaf in leaves(q.condition) if isinstance(leaf, Unknown)
        )

    def operators(self, column: str) -> frozenset[str]:
        """Returns the operators with which the queries compare a column."""
        return frozenset(
            c.operator for q in self.queries for c in deciding_comparisons(q.condition) if c.column == column
        )


def recorded_fractions(workload: Workload) -> tuple[float, ...]:
    """Returns the fractions of the samples that end between the powers of ten at which files end anyway, ascending.

    Args:
        workload: the queries.
    """
    sampled = {round(query.fraction, 6) for query in workload.queries if 0 < query.fraction < 1}
    between = (fraction for fraction in sampled if not _is_power_of_ten(fraction))
    return tuple(sorted(between))[:_MOST_FRACTIONS]


def _is_power_of_ten(fraction: float) -> bool:
    exponent = math.log10(fraction)
    return abs(exponent - round(exponent)) < 1e-9


def workload_of_consumption(rows: Sequence[Mapping[str, Any]], quantiles: Mapping[str, Sequence[Any]]) -> Workload:
    """Draws conditions of the recorded selectivity from the quantiles of the columns.

    Consumption holds no literals. The columns of a query share its selectivity evenly. Ranges begin at a random
    quantile; the same rows give the same workload.

    Args:
        rows: each with ``filters`` (pairs of column and operator), ``selectivity`` (None if unknown) and ``fraction``
            (None for no sample).
        quantiles: per column, non-null values in ascending order, evenly spaced by rank. Other columns are unusable.
    """
    chance = random.Random(_SEED)
    queries = []
    for number, row in enumerate(rows, start=1):
        filters = [(pair["column"], _OPERATORS.get(str(pair["operator"]).lower())) for pair in row["filters"] or ()]
        names = {column for column, operator in filters if operator is not None and quantiles.get(column)}
        selectivity = row.get("selectivity")
        share = 1.0 if selectivity is None else min(max(float(selectivity), 0.0), 1.0) ** (1 / max(len(names), 1))
        operators: dict[str, list[str]] = {}
        parts: list[QueryCondition] = []
        for column, operator in filters:
            if operator is None or column not in names:
                parts.append(Unknown(str(column), "no range of values is known for it"))
            else:
                operators.setdefault(column, []).append(operator)
        for column, used in operators.items():
            parts.extend(_drawn(column, used, share, quantiles[column], chance))
        fraction = row.get("fraction")
        queries.append(WorkloadQuery(number, AllOf(tuple(parts)), 1.0 if fraction is None else float(fraction)))
    return Workload(tuple(queries))


def _drawn(
    column: str, operators: Sequence[str], share: float, values: Sequence[Any], chance: random.Random
) -> list[QueryCondition]:
    """Draws comparisons of a column that a share of its values satisfies together."""
    if EQUAL in operators:
        return [Comparison(column, EQUAL, (values[chance.randrange(len(values))],))]
    last = len(values) - 1
    lower = next((operator for operator in operators if operator in (">", ">=")), None)
    upper = next((operator for operator in operators if operator in ("<", "<=")), None)
    if "between" in operators or (lower and upper):
        start = chance.uniform(0.0, 1.0 - share)
        first, end = values[round(start * last)], values[round((start + share) * last)]
        return [Comparison(column, lower or ">=", (first,)), Comparison(column, upper or "<=", (end,))]
    if lower:
        return [Comparison(column, lower, (values[round((1.0 - share) * last)],))]
    if upper:
        return [Comparison(column, upper, (values[round(share * last)],))]
    return [Comparison(column, operator) for operator in dict.fromkeys(operators)]
