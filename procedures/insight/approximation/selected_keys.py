"""Keys that rows of the sampled table are compared with, and that were themselves selected by weight.

The ids of a sample of customers, for example, select orders by their weights if the index of the orders has the same
columns. The orders of a sample then say nothing about the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from catalog.jvm.query_trees import ExpressionTree, PlanTree
from procedures.insight.approximation.source_columns import columns_of, definitions_below
from procedures.layout.weight_gaps import found_gaps, gap_aggregates

Pair = tuple[ExpressionTree, ExpressionTree]
"""An expression over the sampled table, and the key that it is compared with."""
Definitions = Mapping[int | None, ExpressionTree]
_LOCAL = frozenset({"LocalRelation", "Range", "OneRowRelation"})


def has_selected_keys(
    spark: SparkSession, plan: PlanTree, relation: PlanTree, columns: Sequence[ExpressionTree]
) -> bool:
    """Whether all index columns are compared with keys that have gaps in the range of weights, or can have them.

    A Spark job reads the keys that the columns themselves are compared with. The weights of other keys are not known:
    of correlated subqueries, and of those that are compared with what is computed from the columns.

    Args:
        spark: session of the query.
        plan: the query.
        relation: the scan of the sampled table.
        columns: its index columns, in their order.
    """
    definitions = definitions_below(plan)
    for pairs, rows in _comparisons(plan, relation, definitions):
        by_column = {_origin(value, definitions): key for value, key in pairs}
        keys = [by_column[number] for number in (column.attribute_id or 0 for column in columns) if number in by_column]
        # A comparison with a constant selects nothing by a sample.
        compared = columns_of([value for value, key in pairs if key.attribute_ids], relation, definitions)
        if len(keys) == len(columns):
            if any(key.attribute_ids for key in keys) and _have_gaps(spark, keys, columns, rows):
                return True
        elif _has_all(columns, compared) and not _is_local(rows):
            return True
    return any(
        _has_all(columns, columns_of([subquery], relation, definitions)) and not _is_local(subquery.query)
        for subquery in _correlated(plan)
    )


def _have_gaps(
    spark: SparkSession, keys: Sequence[ExpressionTree], columns: Sequence[ExpressionTree], rows: PlanTree
) -> bool:
    # A key that is no value of the column matches no row.
    found = [key.column(spark).try_cast(column.data_type) for key, column in zip(keys, columns, strict=True)]
    matching = rows.data(spark).where(~F.greatest(*map(F.isnull, found), F.lit(False)))
    return found_gaps(matching.agg(*gap_aggregates(F.hash(*found))).collect()[0].asDict())


def _comparisons(
    plan: PlanTree, relation: PlanTree, definitions: Definitions
) -> Iterator[tuple[Sequence[Pair], PlanTree]]:
    """What is compared with which keys, and the rows that have them, for the other side of each join, and each IN."""
    equal = [
        pair
        for expression in _expressions(plan)
        if expression.kind in ("EqualTo", "EqualNullSafe")
        for pair in (expression.children, expression.children[::-1])
    ]
    for node in _nodes(plan):
        for expression in _all_in(node.expressions):
            if expression.kind == "InSubquery" and not _is_correlated(rows := expression.query):
                yield list(zip(expression.values, rows.output, strict=False)), rows
        if node.kind == "Join":
            for rows in node.children:
                # The tables of a cross product are sides of joins of their own.
                if relation.java not in (below.java for below in _nodes(rows)) and not _is_product(rows):
                    own = {attribute.attribute_id for attribute in rows.output}
                    named = [(value, _named_in(key, own, definitions)) for value, key in equal]
                    yield [(value, key) for value, key in named if key.attribute_ids <= own], rows


def _correlated(plan: PlanTree) -> list[ExpressionTree]:
    """The subqueries whose rows are other ones for each row of the query."""
    kinds = ("Exists", "InSubquery", "ScalarSubquery")
    return [each for each in _expressions(plan) if each.kind in kinds and _is_correlated(each.query)]


def _is_correlated(rows: PlanTree) -> bool:
    return any("OuterReference" in expression.kinds for node in _nodes(rows) for expression in node.expressions)


def _is_product(rows: PlanTree) -> bool:
    return rows.kind == "Join" and not rows.expressions


def _is_local(rows: PlanTree) -> bool:
    return all(node.children or node.kind in _LOCAL for node in _nodes(rows))


def _has_all(columns: Sequence[ExpressionTree], found: Sequence[ExpressionTree]) -> bool:
    return {column.attribute_id for column in columns} <= {column.attribute_id for column in found}


def _nodes(plan: PlanTree) -> Iterator[PlanTree]:
    yield plan
    for child in plan.children:
        yield from _nodes(child)


def _expressions(plan: PlanTree) -> Iterator[ExpressionTree]:
    for node in _nodes(plan):
        yield from _all_in(node.expressions)


def _all_in(expressions: Sequence[ExpressionTree]) -> Iterator[ExpressionTree]:
    for expression in expressions:
        yield expression
        yield from _all_in(expression.children)


def _named_in(key: ExpressionTree, own: set[int | None], definitions: Definitions) -> ExpressionTree:
    """The key by the names that it has among some attributes, for a comparison above a projection."""
    while key.kind == "AttributeReference" and key.attribute_id not in own and key.attribute_id in definitions:
        key = definitions[key.attribute_id]
    return key


def _origin(expression: ExpressionTree, definitions: Definitions) -> int:
    """The id of the attribute that an expression is, apart from names and casts; -1 for any other expression."""
    while True:
        if expression.kind in ("Cast", "Alias"):
            expression = expression.children[0]
        elif expression.kind == "AttributeReference" and expression.attribute_id in definitions:
            expression = definitions[expression.attribute_id]
        else:
            return expression.attribute_id or -1 if expression.kind == "AttributeReference" else -1
