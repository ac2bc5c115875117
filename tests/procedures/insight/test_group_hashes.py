"""The hashes by which groups of a sample are told apart."""

import pytest

from procedures.insight.approximation.sampled_source import hash_of_keys


def hashes(spark, *groups):
    rows = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({key}, 7)' for key in groups)} AS rows(k0, k1)")
    return {row[0] for row in rows.select(hash_of_keys(rows, 2)).collect()}


@pytest.mark.parametrize("key", ["{}", "named_struct('x', {})", "array({}, 1D)", "array(named_struct('x', array({})))"])
def test_zeros_of_both_signs_are_one_group(spark, key):
    assert len(hashes(spark, key.format("0D"), key.format("-0D"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # These are printed alike.
        ("named_struct('a', NULL, 'b', 'null')", "named_struct('a', 'null', 'b', NULL)"),
        ("array(named_struct('a', 5, 'b', NULL))", "array(named_struct('a', NULL, 'b', 5))"),
        ("named_struct('a', 5, 'a', NULL)", "named_struct('a', NULL, 'a', 5)"),
        ("array(5, NULL)", "array(NULL, 5)"),
        ("array(array(1), array(2))", "array(array(1, 2), array())"),
        ("array()", "CAST(NULL AS ARRAY<INT>)"),
    ],
)
def test_different_groups_have_different_hashes(spark, one, other):
    assert len(hashes(spark, one, other)) == 2
