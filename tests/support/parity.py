"""A transformation of the tests' own, made as a contributor would: whole numbers by whether they are even."""

from dataclasses import dataclass

from pyspark.sql import functions as F

from otree.transformation import Kind, Transformation

PARITY_CLASS = "tests.ParityTransformation"
EVEN, ODD, NULL = 0.25, 0.75, 1.0


@dataclass(frozen=True)
class ParityTransformation(Transformation):
    """Even numbers at 0.25, odd ones at 0.75, null at 1."""

    def coordinate(self, value):
        return NULL if value is None else (ODD if value % 2 else EVEN)

    def interval(self, lower, upper):
        if lower is not None and lower == upper:
            return self.coordinate(lower), self.coordinate(lower)
        return EVEN, ODD

    def covers(self, stats):
        return True

    def describe(self, kind, shown):
        return f"{kind} of {shown(0)} and {shown(1)}"

    def to_json(self):
        return {"className": PARITY_CLASS}

    @classmethod
    def from_json(cls, node):
        return cls()


class ParityKind(Kind):
    """Offered for whole numbers."""

    name = "parity"
    transformer_classes = ("tests.ParityTransformer",)
    transformations = {PARITY_CLASS: ParityTransformation}

    def accepts(self, data_type, sql_type):
        return data_type in ("IntegerDataType", "LongDataType") and sql_type != "boolean"

    def is_extension(self, data_type):
        return True

    def make(self, column, data_type, stats, previous):
        return previous or ParityTransformation()


def parity_coordinate(indexed, space):
    """The same of rows, as its line in ``COORDINATES`` names it."""
    is_odd = F.pmod(indexed.value, F.lit(2)) == 1
    return indexed.or_null(F.when(is_odd, F.lit(ODD)).when(~is_odd, F.lit(EVEN)))
