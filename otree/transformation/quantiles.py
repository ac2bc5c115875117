"""The kind "quantiles": coordinates of numbers or strings by their place among quantiles of the data."""

from collections.abc import Mapping
from typing import ClassVar

from otree import format_json
from otree.data_types import STRING
from otree.errors import IndexFormatError
from otree.transformation import number
from otree.transformation.base import CLASS_PREFIX, ColumnStats, DeclaredStats, Transformation
from otree.transformation.empty import EmptyTransformation
from otree.transformation.identity import IdentityTransformation
from otree.transformation.kind import DataFacts, Kind
from otree.transformation.linear import hull, of_range, range_of, typed_ends
from otree.transformation.numeric_quantiles import NUMERIC_QUANTILES_CLASS, NumericQuantilesTransformation
from otree.transformation.string_quantiles import STRING_QUANTILES_CLASS, StringQuantilesTransformation

_NUMERIC_TRANSFORMER = CLASS_PREFIX + "CDFNumericQuantilesTransformer"
_STRING_TRANSFORMER = CLASS_PREFIX + "CDFStringQuantilesTransformer"


class QuantilesKind(Kind):
    """Even shares of the rows, however the values are spread."""

    name: ClassVar[str] = "quantiles"
    transformer_classes: ClassVar[tuple[str, ...]] = (_NUMERIC_TRANSFORMER, _STRING_TRANSFORMER)
    transformations: ClassVar[Mapping[str, type[Transformation]]] = {
        NUMERIC_QUANTILES_CLASS: NumericQuantilesTransformation,
        STRING_QUANTILES_CLASS: StringQuantilesTransformation,
    }

    def accepts(self, data_type: str, sql_type: str) -> bool:  # noqa: ARG002 - the SQL type decides
        """See `Kind.accepts`."""
        return sql_type not in ("boolean", "binary")

    def check(self, column: str, data_type: str) -> None:  # noqa: ARG002 - the text names none
        """See `Kind.check`."""
        if data_type != STRING and data_type not in number.ORDERED_DATA_TYPES:
            raise IndexFormatError.of_field("orderedDataType", data_type, "numbers or strings for quantiles")

    def to_json(self, column: str, data_type: str) -> dict[str, object]:
        """See `Kind.to_json`."""
        if data_type == STRING:
            return {"className": _STRING_TRANSFORMER, "columnName": column}
        return {"className": _NUMERIC_TRANSFORMER, "columnName": column, "orderedDataType": data_type}

    def read_data_type(self, node: Mapping[str, object]) -> str:
        """See `Kind.read_data_type`."""
        return (
            STRING if node.get("className") == _STRING_TRANSFORMER else format_json.text_field(node, "orderedDataType")
        )

    def data_facts(self, data_type: str) -> DataFacts:
        """See `Kind.data_facts`."""
        return DataFacts(span=data_type != STRING, quantiles=True)

    def relevant(self, declared: DeclaredStats, sql_type: str) -> DeclaredStats:  # noqa: ARG002 - the same for all
        """See `Kind.relevant`."""
        return DeclaredStats(quantiles=declared.quantiles)

    def suits(self, data_type: str, space: Transformation, stats: ColumnStats) -> bool:
        """See `Kind.suits`."""
        if not isinstance(space, (NumericQuantilesTransformation, StringQuantilesTransformation)):
            # There were too few values for quantiles; now there may be enough.
            possible = _of_quantiles(data_type, stats, space)
            return isinstance(possible, (IdentityTransformation, EmptyTransformation)) and space.covers(stats)
        return super().suits(data_type, space, stats)

    def make(
        self,
        column: str,  # noqa: ARG002 - the place of a value does not depend on it
        data_type: str,
        stats: ColumnStats,
        previous: Transformation | None,
    ) -> Transformation:
        """See `Kind.make`."""
        if previous is not None and self.suits(data_type, previous, stats):
            return previous
        return _of_quantiles(data_type, stats, previous)


def _of_quantiles(data_type: str, stats: ColumnStats, previous: Transformation | None) -> Transformation:
    """The transformation of declared or estimated quantiles; one that holds everything when they are too few."""
    if data_type == STRING:
        if stats.declared.quantiles is not None:
            return StringQuantilesTransformation(tuple(str(q) for q in stats.declared.quantiles))
        texts = [quantile for quantile in stats.estimated or () if isinstance(quantile, str)]
        return StringQuantilesTransformation.of_estimate(texts) or EmptyTransformation()
    if stats.declared.quantiles is not None:
        return NumericQuantilesTransformation(tuple(float(q) for q in stats.declared.quantiles), data_type)
    numbers = [quantile for quantile in stats.estimated or () if not isinstance(quantile, str)]
    # The ends may lie within the error of an estimate, which then shows one value only.
    ends = hull(range_of(previous, data_type), typed_ends(stats.span, data_type))
    enough = NumericQuantilesTransformation.of_estimate([*numbers, *(stats.span or ())], data_type)
    return enough or NumericQuantilesTransformation.of_estimate(ends or (), data_type) or of_range(ends, data_type)
