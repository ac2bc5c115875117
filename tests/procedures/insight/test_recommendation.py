"""Recommendation without Spark: parsed queries, drawn conditions, simulated files, and known best answers."""

import re

import numpy as np
import pytest

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.predicates.conditions import AllOf, AnyOf, Comparison, Unknown, leaves
from procedures.insight.recommendation.candidates import ranked_candidates, transformation_of
from procedures.insight.recommendation.conditions import bound, deciding_comparisons
from procedures.insight.recommendation.file_ranges import FileRanges
from procedures.insight.recommendation.query_parser import parse_query
from procedures.insight.recommendation.simulated_layout import (
    SampledColumn,
    TableSample,
    indexed_files,
    unordered_files,
)
from procedures.insight.recommendation.workload import (
    Workload,
    WorkloadQuery,
    recorded_fractions,
    workload_of_consumption,
)

COLUMNS = {"a", "b", "s", "d", "r.x"}


def _resolve(name):
    plain = name.replace("`", "").lower()
    if plain not in COLUMNS:
        raise UnknownNameError.of("column", name, COLUMNS)
    return plain


def _parse(text, number=1):
    return parse_query(number, text, lambda name: name.lower() in {"t", "db.t"}, _resolve)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a > 1", Comparison("a", ">", ("1",))),
        ("1 > a", Comparison("a", "<", ("1",))),
        ("T.A <= -1.5", Comparison("a", "<=", ("-1.5",))),
        ("NOT a < 1", Comparison("a", ">=", ("1",))),
        ("a BETWEEN 1 AND 2", AllOf((Comparison("a", ">=", ("1",)), Comparison("a", "<=", ("2",))))),
        ("a NOT BETWEEN 1 AND 2", AnyOf((Comparison("a", "<", ("1",)), Comparison("a", ">", ("2",))))),
        ("a IN (1, 2)", Comparison("a", "=", ("1", "2"))),
        ("d >= DATE '2024-01-01'", Comparison("d", ">=", ("CAST('2024-01-01' AS DATE)",))),
        ("a IS NULL", Comparison("a", "is_null")),
        ("a IS NOT NULL", Comparison("a", "is_not_null")),
        ("r.x = 3", Comparison("r.x", "=", ("3",))),
        ("a = 1 OR b = 2", AnyOf((Comparison("a", "=", ("1",)), Comparison("b", "=", ("2",))))),
        ("NOT (a > 1 OR b > 2)", AllOf((Comparison("a", "<=", ("1",)), Comparison("b", "<=", ("2",))))),
    ],
)
def test_conditions_are_parsed(where, expected):
    assert _parse(f"SELECT a AS z FROM t WHERE {where} ORDER BY z").condition == expected


@pytest.mark.parametrize(
    "where",
    [
        "upper(s) = 'A'",
        "a + 1 > 2",
        "a = b",
        "a <> 1",
        "NOT a = 1",
        "s LIKE '%x'",
        "s LIKE 'x_%'",
        "s NOT LIKE 'x%'",
        "NOT s LIKE 'x%'",
        "1 = 1",
    ],
)
def test_conditions_that_select_no_files_say_why(where):
    condition = _parse(f"SELECT * FROM t WHERE {where}").condition
    assert isinstance(condition, Unknown)
    assert condition.reason


def test_a_prefix_is_a_range():
    def parsed(pattern):
        return _parse(f"SELECT * FROM t WHERE s LIKE '{pattern}'").condition

    assert parsed("x/p%") == AllOf((Comparison("s", ">=", ("'x/p'",)), Comparison("s", "<", ("'x/q'",))))
    assert parsed("a\ud7ff%").parts[1] == Comparison("s", "<", ("'a\ue000'",))
    assert parsed("\U0010ffff%") == AllOf((Comparison("s", ">=", ("'\U0010ffff'",)),))
    assert _parse("SELECT * FROM t WHERE NOT s NOT LIKE 'x%'").condition == parsed("x%")


def test_samples_and_aliases():
    query = _parse("SELECT count(*) FROM db.t TABLESAMPLE (5 PERCENT) AS q WHERE q.a > 1")
    assert (query.fraction, query.where) == (0.05, "a > 1")
    assert query.condition == Comparison("a", ">", ("1",))


@pytest.mark.parametrize(
    ("table", "column"),
    [("db.t", "db.t.a"), ("db.t", "T.a"), ("db.t", "DB.`t`.a"), ("db.t q", "q.a"), ("t", "t.a"), ("db.t", "r.x")],
)
def test_columns_are_qualified_with_any_part_of_the_name_of_the_table(table, column):
    query = _parse(f"SELECT max({column}) FROM {table} WHERE {column} = 1")
    assert query.where == f"{'r.x' if column == 'r.x' else 'a'} = 1"


def test_a_column_with_the_name_of_its_table():
    query = parse_query(1, "SELECT * FROM db.t WHERE t = 1 AND t.t = 2", lambda _: True, lambda name: name)
    assert query.where == "t = 1 AND t = 2"


def test_names_of_any_letters_are_written_as_sql_reads_them():
    query = parse_query(
        1, """SELECT * FROM t WHERE `a"[b` > 1 AND t.`c d`.`e,f` = 2""", lambda _: True, lambda name: name
    )
    assert query.where == """`a"[b` > 1 AND `c d`.`e,f` = 2"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT FROM WHERE", "does not parse"),
        ("DELETE FROM t", "not a SELECT"),
        ("SELECT 1 FROM t; SELECT 2 FROM t", "not a SELECT"),
        ("SELECT * FROM t WHERE a = :a", "parameters"),
        ("SELECT * FROM t WHERE a = ?", "parameters"),
        ("SELECT * FROM other WHERE a = 1", "another table"),
        ("SELECT * FROM t JOIN t AS u ON t.a = u.a", "once"),
        ("SELECT * FROM t WHERE a IN (SELECT a FROM t)", "once"),
        ("SELECT * FROM t UNION ALL SELECT * FROM t", "not a SELECT"),
        ("SELECT 1", "once"),
        ("SELECT * FROM t TABLESAMPLE (10 ROWS)", "PERCENT"),
    ],
)
def test_unusable_queries_are_refused_with_their_number(text, reason):
    with pytest.raises(InvalidArgumentError, match=rf"query 7: .*{re.escape(reason)}") as refused:
        _parse(text, 7)
    assert refused.value.code == "USE_INVALID_ARGUMENT"


def test_an_unknown_column_is_named_with_its_query():
    with pytest.raises(UnknownNameError, match="Query 3: There is no column 'aa'") as refused:
        _parse("SELECT * FROM t WHERE aa = 1", 3)
    assert refused.value.code == "USE_UNKNOWN_COLUMN"


def test_an_or_with_an_unusable_part_excludes_no_file():
    a, unusable = Comparison("a", "=", ("1",)), Unknown("f(b)", "function")
    assert list(deciding_comparisons(AnyOf((a, unusable)))) == []
    assert list(deciding_comparisons(AllOf((a, unusable)))) == [a]
    assert list(leaves(AnyOf((a, unusable)))) == [a, unusable]


def test_a_literal_without_a_value_makes_a_comparison_unusable():
    condition = bound(Comparison("a", "=", ("1", "'x'")), lambda _, text: 1.0 if text == "1" else None)
    assert isinstance(condition, Unknown)


# --------------------------------------------------------------------------------------------- consumption


def _row(*filters, selectivity=None, fraction=None):
    pairs = [{"column": column, "operator": operator} for column, operator in filters]
    return {"filters": pairs, "selectivity": selectivity, "fraction": fraction}


def test_consumption_becomes_boxes_of_its_selectivity():
    quantiles = {"a": [float(i) for i in range(101)], "b": [float(i) for i in range(101)]}
    workload = workload_of_consumption([_row(("a", "between"), ("b", ">="), selectivity=0.01)], quantiles)
    low, high, tail = workload.queries[0].condition.parts
    assert (low.operator, high.operator) == (">=", "<=")
    assert high.values[0] - low.values[0] == pytest.approx(10, abs=1)
    assert tail == Comparison("b", ">=", (90.0,))
    assert workload == workload_of_consumption([_row(("a", "between"), ("b", ">="), selectivity=0.01)], quantiles)


def test_quantiles_are_values_of_even_ranks():
    nulls = np.arange(4_001) == 0
    column = SampledColumn(np.arange(4_001, dtype=float), nulls, np.zeros(4_001, np.int32))
    assert column.quantiles[:2] == [1.0, 5.0]
    assert (len(column.quantiles), column.quantiles[-1]) == (1_001, 4_000.0)
    assert SampledColumn(np.zeros(1), np.ones(1, bool), np.zeros(1, np.int32)).quantiles == []


def test_functions_and_alternatives_of_consumption_select_no_files():
    rows = [_row(("a", "f() ="), ("b", "OR <"), ("a", ">"), selectivity=0.01)]
    (query,) = workload_of_consumption(rows, {name: [float(i) for i in range(11)] for name in "ab"}).queries
    assert [comparison.operator for comparison in deciding_comparisons(query.condition)] == [">"]


def test_consumption_of_points_samples_and_unknown_columns():
    rows = [
        _row(("a", "="), selectivity=0.5),
        _row(("z", "<"), ("a", "like"), fraction=0.1),
        _row(("a", ">"), ("a", "<"), selectivity=0.1),
    ]
    point, sample, box = workload_of_consumption(rows, {"a": [float(i) for i in range(11)]}).queries
    assert point.condition.parts[0].operator == "="
    assert sample.fraction == 0.1
    assert all(isinstance(part, Unknown) for part in sample.condition.parts)
    assert [part.operator for part in box.condition.parts] == [">", "<"]
    assert box.condition.parts[1].values[0] - box.condition.parts[0].values[0] == pytest.approx(1)


# ----------------------------------------------------------------------------------------- simulated layouts

ROWS = 20_000
RANDOM = np.random.default_rng(7)


def _column(values, nulls=None):
    hashes = RANDOM.integers(-(2**31), 2**31, len(values)).astype(np.int32)
    return SampledColumn(values, np.zeros(len(values), bool) if nulls is None else nulls, hashes)


@pytest.fixture(scope="module")
def sample():
    """A table of 100 files whose column ``time`` follows the order of the rows."""
    return TableSample(
        {
            "x": _column(RANDOM.random(ROWS)),
            "y": _column(RANDOM.random(ROWS)),
            "time": _column(np.arange(ROWS, dtype=float)),
            "id": _column(np.array([f"{i:08x}".encode() for i in RANDOM.permutation(ROWS)], object)),
            "none": _column(RANDOM.random(ROWS), RANDOM.random(ROWS) < 0.1),
        },
        (),
        rows=1_000_000,
        target_rows=10_000,
    )


def _workload(*conditions, fraction=1.0):
    return Workload(tuple(WorkloadQuery(i, c, fraction) for i, c in enumerate(conditions, 1)))


def _box(column, low, width):
    return AllOf((Comparison(column, ">=", (low,)), Comparison(column, "<=", (low + width,))))


def test_a_selective_column_is_recommended_alone(sample):
    workload = _workload(*(_box("x", low, 0.02) for low in (0.1, 0.4, 0.8)))
    best = ranked_candidates(sample, workload, list(sample.columns), 1.0)[0]
    assert best.columns == ("x",)
    assert 0.02 < best.share < 0.1


def test_two_columns_are_recommended_together(sample):
    workload = _workload(*(AllOf((_box("x", low, 0.2), _box("y", 1 - low, 0.2))) for low in (0.1, 0.4, 0.7)))
    ranked = ranked_candidates(sample, workload, list(sample.columns), 1.0)
    assert set(ranked[0].columns) == {"x", "y"}
    assert ranked[0].share < 0.75 * next(c.share for c in ranked if c.columns == ("x",))


def test_a_disjunction_needs_both_columns(sample):
    workload = _workload(AnyOf((_box("x", 0.2, 0.01), _box("y", 0.6, 0.01))))
    assert set(ranked_candidates(sample, workload, list(sample.columns), 1.0)[0].columns) == {"x", "y"}


def test_equality_of_strings_reads_few_files(sample):
    best = ranked_candidates(sample, _workload(Comparison("id", "=", (b"00000123",))), ["id", "x"], 1.0)[0]
    assert best.columns == ("id",)
    assert 0 < best.share < 0.1


def test_a_clustered_column_needs_no_index(sample):
    workload = _workload(_box("time", 5_000.0, 200.0))
    assert ranked_candidates(sample, workload, list(sample.columns), 0.02)[0].columns == ()


def test_samples_alone_are_served_by_the_column_with_most_values(sample):
    few = _column(np.zeros(ROWS))
    few.hashes[:] = 7
    columns = {"few": few, **sample.columns}
    mixed = TableSample(columns, (), sample.rows, sample.target_rows)
    best = ranked_candidates(mixed, _workload(AllOf(()), fraction=0.01), list(columns), 1.0)[0]
    assert len(best.columns) == 1
    assert best.columns != ("few",)
    assert best.share < 0.05


def test_without_filters_and_for_tiny_tables_no_index_is_best(sample):
    unusable = _workload(Unknown("upper(s) = 'A'", "function"))
    assert [c.columns for c in ranked_candidates(sample, unusable, list(sample.columns), 1.0)] == [()]
    tiny = TableSample(sample.columns, (), ROWS, 10 * ROWS)
    assert ranked_candidates(tiny, _workload(_box("x", 0.1, 0.01)), ["x"], 1.0)[0].columns == ()


def test_nulls_are_read_where_files_have_them(sample):
    files = indexed_files(sample, ["none"])
    nulls = files.share_read(WorkloadQuery(1, Comparison("none", "is_null")))
    assert 0.1 <= nulls < 0.3
    assert files.share_read(WorkloadQuery(1, Comparison("none", "is_not_null"))) > 0.8


def test_no_file_with_a_matching_row_is_left_out(sample):
    files = indexed_files(sample, ["x", "y"])
    for low in (0.0, 0.31, 0.97):
        matching = (sample.columns["x"].values >= low) & (sample.columns["x"].values <= low + 0.01)
        kept = files.may_match(_box("x", low, 0.01))
        of_row = np.empty(ROWS, np.int64)
        of_row[files.order] = np.repeat(np.arange(files.count), np.diff(files.starts, append=ROWS))
        assert kept[of_row[matching]].all()


def test_partitions_never_share_a_file(sample):
    parts = _column(np.arange(ROWS, dtype=float) % 2)
    mixed = TableSample({**sample.columns, "p": parts}, ("p",), sample.rows, sample.target_rows)
    query = WorkloadQuery(1, Comparison("p", "=", (0.0,)))
    assert indexed_files(mixed, ["x"]).share_read(query) == pytest.approx(0.5)
    assert unordered_files(mixed).share_read(query) == pytest.approx(0.5)


def test_transformations():
    even, skewed = _column(RANDOM.random(1_000)), _column(np.exp(10 * RANDOM.random(1_000)))
    words = _column(np.array([b"a", b"b"], object))
    numbers, texts = ("linear", "hashing", "quantiles"), ("hashing", "quantiles")
    assert transformation_of(even, frozenset({">"}), numbers, is_text=False) == "linear"
    assert transformation_of(skewed, frozenset({">"}), numbers, is_text=False) == "quantiles"
    assert transformation_of(words, frozenset({"="}), texts, is_text=True) == "hashing"
    assert transformation_of(words, frozenset({"=", ">"}), texts, is_text=True) == "quantiles"


def _sampled(table, share, seed):
    """A random sample of the rows of a sample that has all of them."""
    rows = np.flatnonzero(np.random.default_rng(seed).random(table.size) < share)
    columns = {
        name: SampledColumn(c.values[rows], c.nulls[rows], c.hashes[rows], c.distinct[0], c.distinct[-1])
        for name, c in table.columns.items()
    }
    return TableSample(columns, (), table.rows, table.target_rows)


def _narrow_queries(columns, random):
    """Three queries over one to three columns, most of which select few rows."""
    names = list(random.choice(list(columns), random.integers(1, 4), replace=False))
    conditions = []
    for _ in range(3):
        parts = []
        for name in random.choice(names, random.integers(1, len(names) + 1), replace=False):
            width = 10 ** random.uniform(-3, -0.5)
            start = random.random() * (1 - width)
            low, high = np.quantile(columns[name].values, [start, start + width], method="nearest")
            parts.append(_box(name, low, high - low))
        conditions.append(AllOf(tuple(parts)))
    return tuple(names), _workload(*conditions)


def test_a_sample_estimates_what_all_rows_tell():
    """100 sampled rows per file, and queries that select few rows."""
    random, rows = np.random.default_rng(11), 40_000
    columns = {
        "x": _column(random.random(rows)),
        "y": _column(random.random(rows)),
        "tail": _column(np.exp(3 * random.standard_normal(rows))),
        "zipf": _column(np.floor(random.random(rows) ** (-1 / 1.1))),
    }
    table = TableSample(columns, (), rows, 1_000)
    sample = _sampled(table, 0.1, 12)
    errors = []
    for _ in range(25):
        names, workload = _narrow_queries(columns, random)
        exact = indexed_files(table, names).mean_share(workload)
        errors.append(indexed_files(sample, names).mean_share(workload) / exact - 1)
    wrong = np.abs(errors) > 0.2
    assert abs(np.mean(errors)) < 0.04
    assert wrong.mean() <= 0.08


def test_ranges_reach_beyond_the_sampled_values():
    """1,000 files of 1,000 rows each, of which every tenth is sampled: the ends are those of all rows on average."""
    values = np.random.default_rng(3).integers(0, 10**6, (1_000, 1_000))
    sampled, places = values[:, ::10], 10**6 - 1
    starts, nulls = np.arange(1_000) * 100, np.zeros(sampled.size, bool)
    for unseen, most in ((0.9, 5_500), (0.0, 10_500)):
        ranges = FileRanges.of_rows(sampled.ravel(), nulls, starts, unseen, places)
        assert (ranges.low.min() >= 0, ranges.high.max() <= places) == (True, True)
        for error in (ranges.low - values.min(axis=1), values.max(axis=1) - ranges.high):
            assert abs(error.mean()) < most
    exact = FileRanges.of_rows(sampled.ravel(), nulls, starts, 0.0, places)
    assert (exact.high == sampled.max(axis=1)).all()
    assert (exact.low == sampled.min(axis=1)).all()


def test_ranges_of_files_with_few_values():
    """A file of one value, one of nulls only, and one of two values and a null."""
    nulls = np.array([False, True, True, False, False, True])
    ranges = FileRanges.of_rows(np.array([4, 0, 0, 2, 6, 0]), nulls, np.array([0, 1, 3]), 1.0, 9)
    assert ranges.has_value.tolist() == [True, False, True]
    assert ranges.has_null.tolist() == [False, True, True]
    assert (ranges.low[0], ranges.high[0]) == (4, 4)
    assert (ranges.low[2], ranges.high[2]) == (0, 9)


def test_values_between_beyond_and_outside_those_of_the_sample():
    column = SampledColumn(np.array([1.0, 3.0]), np.zeros(2, bool), np.zeros(2, np.int32), 0.0, 9.0)
    places = [column.place_of(value) for value in (-1.0, 0.5, 1.0, 2.0, 8.0, 10.0)]
    assert places == [(-0.5, False), (0.0, False), (0.0, True), (0.5, False), (1.0, False), (1.5, False)]
    unknown = SampledColumn(np.array([1.0]), np.zeros(1, bool), np.zeros(1, np.int32))
    assert [unknown.place_of(value) for value in (0.0, 2.0)] == [(-0.5, False), (0.5, False)]


def test_rare_values_that_the_sample_lacks_cost_a_file(sample):
    """A table has few rows beyond the sampled ones: a query of these reads the last file, not nothing."""
    x = sample.columns["x"]
    wider = SampledColumn(x.values, x.nulls, x.hashes, -1.0, 5.0)
    files = indexed_files(TableSample({"x": wider}, (), sample.rows, sample.target_rows), ["x"])
    beyond, outside = (WorkloadQuery(1, Comparison("x", ">", (value,))) for value in (4.0, 6.0))
    assert 0 < files.share_read(beyond) < 0.05
    assert files.share_read(outside) == 0
    assert 0 < files.share_read(WorkloadQuery(1, Comparison("x", "<", (-0.5,)))) < 0.05


def test_sampled_fractions_between_powers_of_ten():
    queries = [WorkloadQuery(n, AllOf(()), fraction) for n, fraction in enumerate((0.15, 0.1, 0.01, 1.0, 0.15, 0.003))]
    assert recorded_fractions(Workload(tuple(queries))) == (0.003, 0.15)
    assert recorded_fractions(Workload(())) == ()
