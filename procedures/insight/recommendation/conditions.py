"""Conditions of queries, as far as ranges of values in files decide about them.

A comparison with ``=`` is true for each of its values. Values are SQL texts of literals, or after ``bound`` doubles or
bytes in the column's order. An unknown condition cannot select files, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sqlglot import exp

from catalog.predicates.conditions import AllOf, AnyOf, Comparison, Condition, Unknown, visit, with_leaves
from catalog.predicates.operators import EQUAL, NEGATED, STARTS_WITH, after_prefix, sql_text

QueryCondition: TypeAlias = Condition[str]
"""Columns are known by their names."""


def deciding_comparisons(condition: QueryCondition) -> list[Comparison[str]]:
    """Returns the comparisons that can exclude a file; a disjunction with an unknown part excludes none."""

    def leaf(node: Comparison[str] | Unknown, _: bool) -> list[Comparison[str]]:
        return [] if isinstance(node, Unknown) else [node]

    def all_of(parts: Sequence[list[Comparison[str]]]) -> list[Comparison[str]]:
        return [comparison for part in parts for comparison in part]

    def any_of(alternatives: Sequence[list[Comparison[str]]]) -> list[Comparison[str]]:
        if all(alternatives):
            return all_of(alternatives)
        return []

    return visit(condition, leaf, all_of, any_of)


def without_negations(condition: QueryCondition) -> QueryCondition:
    """Returns a parsed condition whose comparisons are ranges, and those that almost all values satisfy are unknown."""
    return visit(condition, _as_range, AllOf[str], AnyOf[str])


def _as_range(leaf: Comparison[str] | Unknown, negated: bool) -> QueryCondition:
    if isinstance(leaf, Unknown):
        return leaf
    if negated and leaf.operator in (EQUAL, STARTS_WITH):
        return Unknown(leaf.text, "almost all values satisfy its negation")
    if leaf.operator == STARTS_WITH:
        ends = ((">=", leaf.values[0]), ("<", after_prefix(leaf.values[0])))
        texts = [(operator, exp.Literal.string(end).sql("spark")) for operator, end in ends if end is not None]
        return AllOf(tuple(Comparison(leaf.column, operator, (text,)) for operator, text in texts))
    return replace(leaf, operator=NEGATED[leaf.operator]) if negated else leaf


def bound(condition: QueryCondition, value_of: Callable[[str, str], Any]) -> QueryCondition:
    """Replaces literals by values.

    Args:
        condition: as parsed.
        value_of: returns the value of a literal for a column; None if there is none.
    """

    def leaf(node: Comparison[str] | Unknown) -> QueryCondition:
        if isinstance(node, Unknown):
            return node
        values = tuple(value_of(node.column, text) for text in node.values)
        if any(value is None for value in values):
            text = f"{node.column} {sql_text(node.operator)} {', '.join(node.values)}"
            return Unknown(text, "a literal has no value as the column's type")
        return replace(node, values=values)

    return with_leaves(condition, leaf)
