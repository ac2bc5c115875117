"""The query itself: what it would read, and its exact answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NumericType, StringType

from catalog.jvm.read_report import bytes_to_read
from procedures.insight.approximation.aggregate_query import Output
from procedures.insight.approximation.source_columns import text_of

# Types of exact answers that have an estimate.
_NUMBERS = (NumericType, BooleanType, StringType)


@dataclass(frozen=True)
class ExactValue:
    """An aggregate of a group.

    Attributes:
        keys: of the group, as texts, by name.
        name: of the aggregate.
        number: its value; None if it is NULL or not a number.
        text: its value as SQL casts it.
    """

    keys: dict[str, str | None]
    name: str
    number: float | None
    text: str | None


@dataclass(frozen=True, eq=False)
class ExactQuery:
    """A query that is planned once, and reads the versions of that plan.

    Attributes:
        query: the query.
        outputs: its columns.
    """

    query: DataFrame
    outputs: Sequence[Output]

    @cached_property
    def data(self) -> DataFrame:
        """Each column as a text, and then each column as DOUBLE, NULL for keys and values that are no numbers."""
        named = self.query.toDF(*(f"c{number}" for number in range(len(self.outputs))))
        texts = [text_of(field) for field in named.schema.fields]
        numbers = [
            F.lit(None).cast("double")
            if isinstance(output.what, int) or not isinstance(field.dataType, _NUMBERS)
            else F.col(field.name).try_cast("double")
            for field, output in zip(named.schema.fields, self.outputs, strict=True)
        ]
        return named.select(*texts, *numbers)

    @cached_property
    def bytes(self) -> int:
        """Bytes of the files that it reads."""
        return bytes_to_read(self.data)

    def values(self) -> Iterator[ExactValue]:
        """Runs the query, and returns each aggregate of each group."""
        for answer in self.data.collect():
            keys = {output.name: answer[n] for n, output in enumerate(self.outputs) if isinstance(output.what, int)}
            for n, output in enumerate(self.outputs):
                if not isinstance(output.what, int):
                    yield ExactValue(keys, output.name, answer[len(self.outputs) + n], answer[n])
