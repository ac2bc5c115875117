"""Transformations from column values to coordinates, one module each, and their registry by class name."""

from collections.abc import Mapping

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation.base import ColumnStats, DeclaredStats, Transformation, Value
from otree.transformation.empty import EMPTY_CLASS, EmptyTransformation
from otree.transformation.hashing import HASH_CLASS, HashTransformation
from otree.transformation.identity import IDENTITY_CLASS, IdentityTransformation
from otree.transformation.legacy_zero import IDENTITY_TO_ZERO_CLASS, NULL_TO_ZERO_CLASS, LegacyZeroTransformation
from otree.transformation.linear import LINEAR_CLASS, LinearTransformation
from otree.transformation.numeric_quantiles import NUMERIC_QUANTILES_CLASS, NumericQuantilesTransformation
from otree.transformation.string_quantiles import STRING_QUANTILES_CLASS, StringQuantilesTransformation

__all__ = [
    "KNOWN_TRANSFORMATIONS",
    "ColumnStats",
    "DeclaredStats",
    "EmptyTransformation",
    "HashTransformation",
    "IdentityTransformation",
    "LegacyZeroTransformation",
    "LinearTransformation",
    "NumericQuantilesTransformation",
    "StringQuantilesTransformation",
    "Transformation",
    "Value",
    "transformation_from_json",
]

# A new transformation is a new module and a line here.
_REGISTRY: Mapping[str, type[Transformation]] = {
    LINEAR_CLASS: LinearTransformation,
    HASH_CLASS: HashTransformation,
    IDENTITY_CLASS: IdentityTransformation,
    EMPTY_CLASS: EmptyTransformation,
    NUMERIC_QUANTILES_CLASS: NumericQuantilesTransformation,
    STRING_QUANTILES_CLASS: StringQuantilesTransformation,
    IDENTITY_TO_ZERO_CLASS: LegacyZeroTransformation,
    NULL_TO_ZERO_CLASS: LegacyZeroTransformation,
}

KNOWN_TRANSFORMATIONS = tuple(_REGISTRY)
"""Class names that can be read; rows are placed by each of them."""


def transformation_from_json(node: Mapping[str, object]) -> Transformation:
    """Read one element of a revision's `transformations`.

    Args:
        node: The JSON object; its `className` decides what it is.

    Returns:
        The transformation.

    Raises:
        IndexFormatError: If the class is not known, or a field is missing or wrong.
    """
    class_name = format_json.text_field(node, "className")
    if class_name not in _REGISTRY:
        raise IndexFormatError.of_field("className", class_name, "one of " + ", ".join(sorted(_REGISTRY)))
    return _REGISTRY[class_name].from_json(node)
