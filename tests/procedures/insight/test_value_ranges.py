"""Ranges of expressions, from those of columns."""

import math
from types import SimpleNamespace

import pytest

from procedures.insight.approximation.value_bounds import TableBounds, ValueRanges

EVERYTHING = (-math.inf, math.inf)


def tree(kind, of, *children, **more):
    return SimpleNamespace(kind=kind, type=of, children=children, attribute_id=None, **more)


X = tree("AttributeReference", "INT")
X.attribute_id, X.name = 1, "x"
NULL = tree("Literal", "INT", constant=None)
BILLION = tree("Literal", "INT", constant=10**9)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (X, (-5, 2_000_000_000)),
        (tree("Cast", "BIGINT", X), (-5, 2_000_000_000)),
        (tree("Cast", "SMALLINT", X), EVERYTHING),
        (tree("Add", "INT", X, BILLION), EVERYTHING),
        (tree("Add", "BIGINT", X, BILLION), (10**9 - 5, 3 * 10**9)),
        (tree("Multiply", "BIGINT", tree("Multiply", "BIGINT", X, X), X), EVERYTHING),
        (tree("Cast", "DOUBLE", tree("Subtract", "INT", X, BILLION)), (-5 - 10**9, 10**9)),
        (tree("UnaryMinus", "INT", X), (-2_000_000_000, 5)),
        (tree("Coalesce", "INT", X, NULL), (-5, 2_000_000_000)),
        (NULL, (math.inf, -math.inf)),
    ],
)
def test_whole_numbers_may_wrap_around(expression, expected):
    """Without ANSI mode, a sum that is too large is negative."""
    relation = SimpleNamespace(output=[X])
    ranges = ValueRanges(TableBounds(10, 0, {"x": (-5, 2_000_000_000)}), relation, {})
    assert ranges.of(expression) == expected
