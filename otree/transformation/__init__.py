"""Transformations from column values to coordinates: their kinds, and their classes in the format, by name."""

from collections.abc import Mapping

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation.base import ColumnStats, DeclaredStats, Transformation, Value
from otree.transformation.empty import EmptyKind, EmptyTransformation
from otree.transformation.hashing import HashingKind, HashTransformation
from otree.transformation.identity import IdentityTransformation
from otree.transformation.kind import DataFacts, Kind
from otree.transformation.legacy_zero import LegacyZeroTransformation
from otree.transformation.linear import LinearKind, LinearTransformation
from otree.transformation.numeric_quantiles import NumericQuantilesTransformation
from otree.transformation.quantiles import QuantilesKind
from otree.transformation.string_quantiles import StringQuantilesTransformation

__all__ = [
    "KINDS",
    "ColumnStats",
    "DataFacts",
    "DeclaredStats",
    "EmptyTransformation",
    "HashTransformation",
    "IdentityTransformation",
    "Kind",
    "LegacyZeroTransformation",
    "LinearTransformation",
    "NumericQuantilesTransformation",
    "StringQuantilesTransformation",
    "Transformation",
    "Value",
    "kind_of_class",
    "kinds_for",
    "known_transformations",
    "transformation_from_json",
]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        LinearKind(),
        HashingKind(),
        QuantilesKind(),
        EmptyKind(),
    )
}
"""Kinds by name; the first that accepts a column's type is its default. A new kind is a new module and a line here."""


def kinds_for(data_type: str, sql_type: str) -> tuple[str, ...]:
    """Return the names of the kinds that users may choose for a column, its default first.

    Args:
        data_type: The format's name of the column's type.
        sql_type: Spark's simple name of it.
    """
    return tuple(name for name, kind in KINDS.items() if kind.offered and kind.accepts(data_type, sql_type))


def kind_of_class(class_name: str) -> Kind:
    """Return the kind of a column that a revision names by the class of its transformer.

    Raises:
        IndexFormatError: If the class is not known.
    """
    by_class = {name: kind for kind in KINDS.values() for name in kind.transformer_classes}
    if class_name not in by_class:
        raise IndexFormatError.of_field("className", class_name, "one of " + ", ".join(sorted(by_class)))
    return by_class[class_name]


def known_transformations() -> Mapping[str, type[Transformation]]:
    """Return the transformations that can be read, by class name; rows are placed by each of them."""
    return {name: made for kind in KINDS.values() for name, made in kind.transformations.items()}


def transformation_from_json(node: Mapping[str, object]) -> Transformation:
    """Read one element of a revision's `transformations`.

    Args:
        node: The JSON object; its `className` decides what it is.

    Returns:
        The transformation.

    Raises:
        IndexFormatError: If the class is not known, or a field is missing or wrong.
    """
    known = known_transformations()
    class_name = format_json.text_field(node, "className")
    if class_name not in known:
        raise IndexFormatError.of_field("className", class_name, "one of " + ", ".join(sorted(known)))
    return known[class_name].from_json(node)
