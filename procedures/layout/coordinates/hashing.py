"""Coordinates of rows by the hash of a value's text."""

from __future__ import annotations

from pyspark.sql import Column

from otree.data_types import STRING
from otree.transformation import HashTransformation
from procedures.layout.coordinates.indexed_column import IndexedColumn


def hash_coordinate(indexed: IndexedColumn, _: HashTransformation) -> Column:
    """The hash of text and bytes as they are, of a decimal by its own digits, of other values by Java's text."""
    if indexed.transformer.data_type == STRING:
        text = indexed.column.cast("string")
    elif indexed.transformer.data_type == "DecimalDataType":
        text = indexed.expressions.java_text(indexed.column)
    else:
        text = indexed.expressions.java_text(indexed.value)
    return indexed.or_null(indexed.expressions.hash_coordinate(text))
