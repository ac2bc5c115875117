"""Kinds of transformations, which users choose by name, and the transformations that they make from data."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from otree import format_json
from otree.transformation.base import ColumnStats, DeclaredStats, Transformation


@dataclass(frozen=True)
class DataFacts:
    """The facts about a column's values that a kind of transformation needs.

    Attributes:
        span: The smallest and the largest finite value; only for columns of numbers, dates and timestamps.
        quantiles: Estimated quantiles, as long as the column has no transformation of this kind.
    """

    span: bool = False
    quantiles: bool = False


class Kind(ABC):
    """A way to index a column, such as "linear".

    Attributes:
        name: The word that users write after the column's name, lower case.
        offered: Whether users may choose it.
        transformer_classes: Class names, in the format, of how a column of this kind is indexed.
        transformations: The transformations that this kind brings, by their class names in the format.
    """

    name: ClassVar[str]
    offered: ClassVar[bool] = True
    transformer_classes: ClassVar[tuple[str, ...]]
    transformations: ClassVar[Mapping[str, type[Transformation]]]

    def accepts(self, data_type: str, sql_type: str) -> bool:  # noqa: ARG002 - for those that choose
        """Say whether users may choose this kind for a column.

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
        """Return the facts about the values that the kind needs; none by default."""
        return DataFacts()

    def relevant(self, declared: DeclaredStats, sql_type: str) -> DeclaredStats:  # noqa: ARG002 - for those with some
        """Return the declared statistics that this kind uses; none by default."""
        return DeclaredStats()

    def is_extension(self, data_type: str) -> bool:  # noqa: ARG002 - for those that are
        """Say whether other writers of the format cannot index a column of this data type in this way."""
        return False

    def suits(self, data_type: str, space: Transformation, stats: ColumnStats) -> bool:
        """Say whether a column's transformation so far also suits data of these statistics.

        Args:
            data_type: The format's name of the column's data type.
            space: The transformation so far.
            stats: Of the data to come, with the statistics that the owner declares.
        """
        return getattr(space, "data_type", data_type) == data_type and space.covers(stats)

    @abstractmethod
    def make(self, column: str, data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:
        """Return the transformation whose space holds the data.

        Args:
            column: Name of the column as it is stored.
            data_type: The format's name of its data type.
            stats: Range of all values that the space must hold, in the transformation's unit.
            previous: The column's transformation so far, if any; the new one covers its space too.

        Returns:
            `previous` itself when it suffices, else a new transformation.
        """
