"""Transformers: how a column is to be indexed, and the transformation that fits its data."""

from collections.abc import Mapping
from dataclasses import dataclass

from otree import format_json
from otree.errors import IndexFormatError
from otree.transformation import KINDS, ColumnStats, DataFacts, Kind, Transformation, kind_of_class

LINEAR = "linear"
HASHING = "hashing"
QUANTILES = "quantiles"
EMPTY = "empty"


@dataclass(frozen=True)
class Transformer:
    """How one column is indexed.

    Attributes:
        kind: Name of the kind, such as "linear", "hashing", "quantiles" or "empty".
        column: Name of the column as it is stored; the names of a nested one, joined by dots.
        data_type: The format's name of its data type; empty for kind "empty", which has none in the format.

    Source:
        Index format, section 3.
    """

    kind: str
    column: str
    data_type: str

    def __post_init__(self) -> None:
        """Refuse a column that the format cannot express.

        Raises:
            IndexFormatError: If the kind is unknown or does not suit the data type.
        """
        if self.kind not in KINDS:
            raise IndexFormatError.of_field("kind", self.kind, "one of " + ", ".join(KINDS))
        self._kind.check(self.column, self.data_type)

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    @property
    def data_facts(self) -> DataFacts:
        """The facts about the column's values that are needed to index them."""
        return self._kind.data_facts(self.data_type)

    def to_json(self) -> dict[str, object]:
        """Return the format's JSON object, keys in the format's order."""
        return self._kind.to_json(self.column, self.data_type)

    @classmethod
    def from_json(cls, node: Mapping[str, object]) -> "Transformer":
        """Read one element of a revision's `columnTransformers`.

        Raises:
            IndexFormatError: If the class is not known, or a field is missing or wrong.
        """
        kind = kind_of_class(format_json.text_field(node, "className"))
        data_type = kind.read_data_type(node)
        return cls(kind.name, format_json.text_field(node, "columnName"), data_type)


def make_transformation(
    transformer: Transformer, stats: ColumnStats, previous: Transformation | None = None
) -> Transformation:
    """Return the transformation whose space holds the data; see `Kind.make`.

    Args:
        transformer: How the column is indexed.
        stats: Range of all values the space must hold, in the transformation's unit.
        previous: The column's transformation so far, if any; its range stays covered.

    Returns:
        `previous` itself when it suffices, else a new transformation.
    """
    return KINDS[transformer.kind].make(transformer.column, transformer.data_type, stats, previous)


def suits(transformer: Transformer, space: Transformation, stats: ColumnStats) -> bool:
    """Say whether a column's transformation so far also suits data of these statistics.

    Args:
        transformer: How the column is indexed.
        space: The transformation so far.
        stats: Of the data to come, with the statistics that the owner declares.
    """
    return KINDS[transformer.kind].suits(transformer.data_type, space, stats)


def needs_quantiles(transformer: Transformer, space: Transformation | None) -> bool:
    """Say whether quantiles must be estimated from the data, unless the owner declares some.

    Args:
        transformer: How the column is indexed.
        space: The column's transformation so far, if any.
    """
    made = isinstance(space, tuple(KINDS[transformer.kind].transformations.values()))
    return transformer.data_facts.quantiles and not made
