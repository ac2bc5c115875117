"""Random conditions against a reference evaluator of SQL's three-valued logic; ``make fuzz`` tries many more."""

import pytest
from condition_trees import CASTS, DECIMALS
from planning_fuzz import run
from sql_truth import Operand, Row, Session, Zone, cast, truth

HOUR = 3_600_000_000


def test_no_row_that_meets_a_condition_is_left_out():
    """A failure names its seed: ``make fuzz ARGS="--seed N --count 1"`` repeats it."""
    outcome = run(seed=0, count=5_000)
    assert not outcome.failures, outcome.failures[0]
    # A plan that leaves nothing out would pass as well, and so would conditions that no row meets.
    assert outcome.narrowed > outcome.count / 6
    assert outcome.met > outcome.count
    kinds = {kind for kind, left_out in outcome.left_out.items() if left_out}
    assert kinds >= {*CASTS, "hash", "is_null"} - set(DECIMALS)
    assert kinds & set(DECIMALS)


@pytest.mark.parametrize(
    ("condition", "of_null", "of_true", "of_false"),
    [
        (("compare", "=", "b", True), None, True, False),
        (("not", ("compare", "=", "b", True)), None, False, True),
        (("compare", "<=>", "b", True), False, True, False),
        (("not", ("compare", "<=>", "b", True)), True, False, True),
        (("compare", "<=>", "b", None), True, False, False),
        (("in", "b", [True, None]), None, True, None),
        (("not", ("in", "b", [True, None])), None, False, None),
        (("or", ("is_null", "b"), ("const", None)), True, None, None),
        (("and", ("is_null", "b"), ("const", None)), None, False, False),
        (("same", ("compare", "=", "b", False), True), False, False, True),
        (("same", ("compare", "=", "b", False), None), True, False, False),
        (("coalesce", ("compare", "=", "b", False), True), True, False, True),
    ],
)
def test_the_reference_follows_three_valued_logic(condition, of_null, of_true, of_false):
    def with_operand(node):
        parts = (Operand("b", "boolean") if part == "b" else part for part in node)
        return tuple(with_operand(part) if isinstance(part, tuple) else part for part in parts)

    found = [truth(with_operand(condition), Row({"b": value}), Session()) for value in (None, True, False)]
    assert found == [of_null, of_true, of_false]


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (2**24 + 1, "int", "float", 2.0**24),
        (2**24 + 3, "int", "float", 2.0**24 + 4),
        (2**53 + 1, "bigint", "double", 2.0**53),
        # Rounded once: by way of a double, it would be the single below.
        (2**60 + 2**36 + 1, "bigint", "float", 2.0**60 + 2.0**37),
        (300, "int", "tinyint", 44),
        (1e10, "double", "int", 2**31 - 1),
        (-HOUR - 1, "timestamp", "date", -1),
        (0, "date", "timestamp", -HOUR),
        (0, "timestamp", "timestamp_ntz", HOUR),
    ],
)
def test_the_reference_casts_as_spark_does(value, source, target, expected):
    assert cast(value, source, target, Session("legacy", Zone(HOUR, HOUR))) == expected
