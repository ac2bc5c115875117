"""Predicates as users write them: how large they may be, and how they are refused beyond that."""

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from catalog.errors import TooComplexError
from catalog.predicates.conditions import leaves
from catalog.predicates.sql_conditions import SqlConditions, name_parts
from catalog.pruning import file_conditions
from catalog.pruning.row_predicate import RowPredicate

SCHEMA = StructType([StructField("a", IntegerType()), StructField("b", IntegerType())])


def _possible(text):
    tree = RowPredicate.parse("where", text).tree
    condition = SqlConditions(file_conditions._Reading(None, SCHEMA)).condition(tree)
    columns = {leaf.column: None for leaf in leaves(condition) if hasattr(leaf, "column")}
    return file_conditions._possible(condition, list(columns))


@pytest.mark.parametrize(("connective", "negation"), [("OR", ""), ("AND", ""), ("OR", "NOT "), ("AND", "NOT ")])
def test_a_thousand_conditions_are_one_level(connective, negation):
    terms = [f"{negation}a < {number}" for number in range(1_000)]
    found = _possible(f" {connective} ".join(terms))
    parts = found.split(f") {connective} (")
    assert len(parts) == 1_000
    assert "low0 < 17," in parts[17] or "high0 >= 17," in parts[17]


def test_a_negated_chain_changes_its_connective():
    assert _possible("NOT (a < 1 OR a > 5 OR b = 2)").count(") AND (") == 2
    assert _possible("NOT (a < 1 AND a > 5 AND b = 2)").count(") OR (") == 2
    assert _possible("a < 1 OR b = 2 OR a + b = 5") is None


@pytest.mark.parametrize(
    "text",
    [
        "(" * 30 + "a = 1" + ")" * 30,
        "NOT " * 30 + "a = 1",
        "abs(" * 30 + "a" + ")" * 30 + " = 1",
        "CASE WHEN a = 1 THEN " * 29 + "1" + " END" * 29 + " = 1",
        "(a = 1 AND (b = 2 OR " * 15 + "a = 1" + "))" * 15,
        "struct(" * 7 + "1" + ")" * 7 + " = a",
    ],
)
def test_thirty_levels_are_parsed(text):
    assert RowPredicate.parse("where", text).text == text


@pytest.mark.parametrize("levels", [31, 1_000, 20_000])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(", ")"),
        ("NOT ", ""),
        ("abs(", ")"),
        ("array(", ")"),
        ("CASE WHEN true THEN ", " END"),
        ("- ", ""),
        ("struct(", ")"),
    ],
)
def test_more_levels_are_refused_by_a_code_that_names_the_limit(levels, before, after):
    with pytest.raises(TooComplexError, match=r"\[USE_TOO_COMPLEX\] where .* at most 30 levels"):
        RowPredicate.parse("where", before * levels + "a" + after * levels + " = 1")


@pytest.mark.parametrize("connective", ["AND", "OR"])
def test_more_conditions_are_refused_by_a_code_that_names_the_limit(connective):
    assert RowPredicate.parse("where", f" {connective} ".join(["a = 1"] * 1_001))
    with pytest.raises(
        TooComplexError, match=r"\[USE_TOO_COMPLEX\] where .* at most 1,000 AND and OR; use IN or BETWEEN"
    ):
        RowPredicate.parse("where", f" {connective} ".join(["a = 1"] * 10_000))


def test_a_text_of_more_than_a_million_characters_is_refused():
    with pytest.raises(TooComplexError, match="at most 1,000,000 characters; this one has 1,000,001"):
        RowPredicate.parse("where", "a = 1".ljust(1_000_001))


def test_a_type_nested_too_deeply_is_refused():
    with pytest.raises(TooComplexError, match="at most 30 levels"):
        RowPredicate.parse("where", "CAST(a AS " + "array<" * 5_000 + "int" + ">" * 5_000 + ") = 1")


def test_a_name_may_have_any_number_of_parts():
    tree = RowPredicate.parse("where", "a" + ".b" * 5_000 + " = 1").tree
    assert len(name_parts(tree.this)) == 5_001
