"""Keys that rows of the sampled table are joined with, and that were themselves selected by weight.

The ids of a sample of customers, for example, select orders by their weights if the index of the orders has the same
columns. The orders of a sample then say nothing about the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from catalog.jvm.query_trees import ExpressionTree, PlanTree
from procedures.layout.weight_gaps import found_gaps, gap_aggregates

Keys = Mapping[int, ExpressionTree]
"""What an index column, by the id of its attribute, is compared with."""


def has_selected_keys(
    spark: SparkSession,
    source: PlanTree,
    columns: Sequence[ExpressionTree],
    definitions: Mapping[int | None, ExpressionTree],
) -> bool:
    """Whether a join or IN compares all index columns with keys that have gaps in the range of weights.

    A Spark job for each comparison of all index columns reads its keys.

    Args:
        spark: session of the query.
        source: the rows of the query.
        columns: the index columns, in their order.
        definitions: see ``definitions_below``.
    """
    for keys, rows in _comparisons(source, definitions):
        if all(column.attribute_id in keys for column in columns):
            # A key that is no value of the column matches no row.
            found = [keys[column.attribute_id or 0].column(spark).try_cast(column.type) for column in columns]
            matching = rows.data(spark).where(~F.greatest(*map(F.isnull, found), F.lit(False)))
            values = matching.agg(*gap_aggregates(F.hash(*found))).collect()[0].asDict()
            if found_gaps(values):
                return True
    return False


def _comparisons(source: PlanTree, definitions: Mapping[int | None, ExpressionTree]) -> Iterator[tuple[Keys, PlanTree]]:
    """What columns are compared with, and the rows that have it, for each side of each join, and each IN."""
    nodes = [source]
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children)
        for expression in _all_in(node.expressions):
            # The rows of a correlated subquery are other ones for each row of the query.
            if expression.kind == "InSubquery" and not _is_correlated(rows := expression.query):
                pairs = zip(expression.values, rows.output, strict=False)
                yield {_origin(value, definitions): key for value, key in pairs}, rows
        if node.kind == "Join":
            equal = [each.children for each in _all_in(node.expressions) if each.kind in ("EqualTo", "EqualNullSafe")]
            sides = [(left, right) for left, right in equal] + [(right, left) for left, right in equal]
            for rows in node.children:
                own = {attribute.attribute_id for attribute in rows.output}
                yield {_origin(one, definitions): key for one, key in sides if key.attribute_ids <= own}, rows


def _is_correlated(rows: PlanTree) -> bool:
    return any("OuterReference" in expression.kinds for expression in rows.expressions) or any(
        map(_is_correlated, rows.children)
    )


def _all_in(expressions: Sequence[ExpressionTree]) -> Iterator[ExpressionTree]:
    for expression in expressions:
        yield expression
        yield from _all_in(expression.children)


def _origin(expression: ExpressionTree, definitions: Mapping[int | None, ExpressionTree]) -> int:
    """The id of the attribute that an expression is, apart from names and casts; -1 for any other expression."""
    while True:
        if expression.kind in ("Cast", "Alias"):
            expression = expression.children[0]
        elif expression.kind == "AttributeReference" and expression.attribute_id in definitions:
            expression = definitions[expression.attribute_id]
        else:
            return expression.attribute_id or -1 if expression.kind == "AttributeReference" else -1
