"""The tree of conditions: the walk over it, the operators, and how it is made from JSON and from SQL."""

import itertools
import json
from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from catalog.predicates.conditions import AllOf, AnyOf, Comparison, Not, Unknown, leaves, visit, with_leaves
from catalog.predicates.index_conditions import RowHash, StoredColumn, condition_of_json
from catalog.predicates.operators import BOUND_TESTS, FUNCTIONS, MIRRORED, NEGATED
from catalog.predicates.sql_conditions import SqlConditions

NAMES = ("a", "b", "c")
TREES = st.recursive(
    st.sampled_from([Comparison(name, "=", (True,)) for name in NAMES]),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda parts: AllOf(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
    ),
    max_leaves=8,
)


def _all(parts):
    return False if False in parts else None if None in parts else True


def _any(parts):
    return True if True in parts else None if None in parts else False


def _not(value):
    return None if value is None else not value


@given(TREES)
def test_negations_may_stay_or_move_to_the_leaves(tree):
    for values in itertools.product((True, False, None), repeat=3):
        row = dict(zip(NAMES, values, strict=True))
        stay = visit(tree, lambda leaf, _: row[leaf.column], _all, _any, _not)  # noqa: B023 - used at once
        moved = visit(
            tree,
            lambda leaf, negated: _not(row[leaf.column]) if negated else row[leaf.column],  # noqa: B023 - used at once
            _all,
            _any,
        )
        assert stay is moved


@given(TREES)
def test_other_leaves_keep_the_tree_and_its_order(tree):
    assert with_leaves(tree, lambda leaf: leaf) == tree
    named = [leaf.column for leaf in leaves(tree)]
    assert [leaf.text for leaf in leaves(with_leaves(tree, lambda leaf: Unknown(leaf.column)))] == named


def test_a_tree_may_be_deeper_than_the_stack():
    tree = Comparison("a", "=", (True,))
    for _ in range(10_000):
        tree = Not(AllOf((tree,)))
    assert visit(tree, lambda _, negated: negated, all, any) is False
    assert len(list(leaves(tree))) == 1


@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))
def test_operators_agree_with_their_mirrored_and_negated_ones(value, literal, other):
    low, high = min(value, other), max(value, other)
    for operator, function in FUNCTIONS.items():
        assert function(value, literal) == FUNCTIONS[MIRRORED[operator]](literal, value)
        assert function(value, literal) != FUNCTIONS[NEGATED[operator]](value, literal)
    for operator, tests in BOUND_TESTS.items():
        may_be = all(FUNCTIONS[test]({"low": low, "high": high}[end], literal) for end, test in tests)
        is_true = value == literal if operator == "=" else FUNCTIONS[operator](value, literal)
        assert may_be or not is_true


def test_json_of_the_shim():
    def column(operator, values, **more):
        return {"operator": operator, "column": "x", "type": "int", "values": values, **more}

    parts = [
        column("=", [1, None]),
        column(">", ["-Infinity"], **{"as": "double"}),
        column("<", ["1.50"], **{"as": "decimal(10,2)"}),
        {"operator": "not", "of": [column("=", ["AP8="], type="binary")]},
        {"operator": ">=", "hash_of": ["x", "y"], "types": ["int", "string"], "values": [5]},
        {"operator": "all"},
        {"operator": "never"},
        {"operator": "unknown"},
    ]
    assert condition_of_json(json.dumps({"operator": "or", "of": parts})) == AnyOf(
        (
            Comparison(StoredColumn("x", "int"), "=", (1, None)),
            Comparison(StoredColumn("x", "int", "double"), ">", (float("-inf"),)),
            Comparison(StoredColumn("x", "int", "decimal(10,2)"), "<", (Decimal("1.50"),)),
            Not(Comparison(StoredColumn("x", "binary"), "=", (b"\x00\xff",))),
            Comparison(RowHash(("x", "y"), ("int", "string")), ">=", (5,)),
            AllOf(()),
            AnyOf(()),
            Unknown(),
        )
    )


class _Names:
    def comparison(self, node, column, operator, literals):
        return Comparison(column.sql("spark"), operator, tuple(literal.sql("spark") for literal in literals))

    def other(self, node, detail=""):
        return Unknown(node.sql("spark"), detail)


def _condition(text, **more):
    return SqlConditions(_Names(), **more).condition(sqlglot.parse_one(text, read="spark"))


def test_conditions_of_sql():
    assert _condition("1 < a AND (b IN (1, 2) AND NOT c BETWEEN 3 AND 4)") == AllOf(
        (
            Comparison("a", ">", ("1",)),
            AllOf(
                (
                    Comparison("b", "in", ("1", "2")),
                    Not(AllOf((Comparison("c", ">=", ("3",)), Comparison("c", "<=", ("4",))))),
                )
            ),
        )
    )
    assert _condition("a IS NOT NULL") == Not(Comparison("a", "is_null"))
    assert _condition("a BETWEEN SYMMETRIC 3 AND 1").reason == " (symmetric)"
    assert _condition("a + 1") == Unknown("a + 1")


def test_a_chain_is_one_level_and_brackets_are_levels():
    assert len(_condition(" OR ".join(["a = 1"] * 5_000)).parts) == 5_000
    assert _condition("(((a = 1)))", deepest=3) == Comparison("a", "=", ("1",))
    with pytest.raises(RecursionError):
        _condition("((((a = 1))))", deepest=3)
