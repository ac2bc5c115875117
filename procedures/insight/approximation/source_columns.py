"""What the attributes of a query's rows are made of, and their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, TimestampType

from catalog.jvm.query_trees import ExpressionTree, PlanTree


def definitions_below(source: PlanTree) -> dict[int | None, ExpressionTree]:
    """Returns what defines the attributes of a node and of those below it, by the ids of the attributes."""
    found: dict[int | None, ExpressionTree] = {}
    nodes = [source]
    while nodes:
        node = nodes.pop()
        if node.kind in ("Project", "Aggregate"):
            found |= {alias.attribute_id: alias.children[0] for alias in node.results if alias.kind == "Alias"}
        nodes.extend(node.children)
    return found


def columns_of(
    expressions: Iterable[ExpressionTree], relation: PlanTree, definitions: Mapping[int | None, ExpressionTree]
) -> list[ExpressionTree]:
    """Returns the columns of a relation that expressions are made of.

    Args:
        expressions: over the rows of a query.
        relation: the scan.
        definitions: see ``definitions_below``.
    """
    known: set[int] = set()
    unknown = {number for expression in expressions for number in expression.attribute_ids}
    while unknown:
        known |= unknown
        made_of = [definitions[number].attribute_ids for number in unknown if number in definitions]
        unknown = {number for ids in made_of for number in ids} - known
    return [column for column in relation.output if column.attribute_id in known]


def conditions_between(source: PlanTree, relation: PlanTree) -> list[ExpressionTree]:
    """Returns the conditions of the filters and joins from a node down to the scan of a table."""
    found: list[ExpressionTree] = []
    nodes = [source]
    while nodes:
        node = nodes.pop()
        if node.kind in ("Filter", "Join"):
            found += node.expressions
        nodes.extend(child for child in node.children if child.java != relation.java)
    return found


def text_of(field: StructField) -> Column:
    """Returns a column as SQL casts it to a text.

    A TIMESTAMP of the hour that clocks repeat when summer time ends has an offset behind its text, unless the text
    without an offset stands for it.
    """
    value = F.col(field.name)
    text = value.cast("string")
    if not isinstance(field.dataType, TimestampType):
        return text
    stands_for_it = text.try_cast(field.dataType).eqNullSafe(value)
    return F.when(stands_for_it, text).otherwise(F.concat(text, F.date_format(value, "XXX")))
