"""Kinds of transformations: what users ask for by name, and how a kind makes a transformation of a column's data."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from otree import format_json
from otree.transformation.base import ColumnStats, DeclaredStats, Transformation


@dataclass(frozen=True)
class DataFacts:
    """What has to be known of a column's values before a transformation of some kind is made.

    Attributes:
        span: The smallest and the largest finite value; only for columns of numbers, dates and timestamps.
        quantiles: Estimated quantiles, as long as the column has no transformation of this kind.
    """

    span: bool = False
    quantiles: bool = False


class Kind(ABC):
    """A way to index a column, such as "linear".

    Attributes:
        name: What users write after the column's name, lower case.
        offered: Whether users may ask for it.
        transformer_classes: Class names, in the format, of how a column of this kind is indexed.
        transformations: The transformations that this kind brings, by their class names in the format.
    """

    name: ClassVar[str]
    offered: ClassVar[bool] = True
    transformer_classes: ClassVar[tuple[str, ...]]
    transformations: ClassVar[Mapping[str, type[Transformation]]]

    def accepts(self, data_type: str, sql_type: str) -> bool:  # noqa: ARG002 - for those that choose
        """Say whether users may ask for this kind on a column.

        Args:
            data_type: The format's name of the column's type.
            sql_type: Spark's simple name of it; several SQL types share a name in the format.
        """
        return True

    def check(self, column: str, data_type: str) -> None:  # noqa: B027 - most kinds take every data type
        """Refuse a data type that a revision cannot hold a column of this kind with.

        Raises:
            IndexFormatError: If the kind does not suit the data type.
        """

    def to_json(self, column: str, data_type: str) -> dict[str, object]:
        """Return the format's JSON object of how a column is indexed, keys in the format's order."""
        return {"className": self.transformer_classes[0], "columnName": column, "dataType": data_type}

    def read_data_type(self, node: Mapping[str, object]) -> str:
        """Return the data type that such a JSON object names.

        Raises:
            IndexFormatError: If it is missing or wrong.
        """
        return format_json.text_field(node, "dataType")

    def data_facts(self, data_type: str) -> DataFacts:  # noqa: ARG002 - for those that need some
        """Say what has to be known of the values; nothing unless a kind says so."""
        return DataFacts()

    def relevant(self, declared: DeclaredStats, sql_type: str) -> DeclaredStats:  # noqa: ARG002 - for those with some
        """Return the part of what an owner declares that this kind uses; nothing unless a kind says so."""
        return DeclaredStats()

    def is_extension(self, data_type: str) -> bool:  # noqa: ARG002 - for those that are
        """Say whether other writers of the format could not index a column of this data type so."""
        return False

    def suits(self, data_type: str, space: Transformation, stats: ColumnStats) -> bool:
        """Say whether a column's transformation so far also suits data of these statistics.

        Args:
            data_type: The format's name of the column's data type.
            space: The transformation so far.
            stats: Of the data to come, and what the owner declares.
        """
        return getattr(space, "data_type", data_type) == data_type and space.covers(stats)

    @abstractmethod
    def make(self, column: str, data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:
        """Return the transformation whose space holds the data.

        Args:
            column: Name of the column as it is stored.
            data_type: The format's name of its data type.
            stats: Range of all values that the space must hold, in the transformation's unit.
            previous: The column's transformation so far, if any; what it covers stays covered.

        Returns:
            `previous` itself when it suffices, else a new transformation.
        """
