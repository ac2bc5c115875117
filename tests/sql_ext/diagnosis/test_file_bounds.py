"""Files that the log excludes, against the rows that are in them."""

import math
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.predicates.conditions import AllOf, AnyOf, Comparison, Unknown
from sql_ext.diagnosis.file_bounds import FileBounds
from sql_ext.diagnosis.ordered_values import ordered_value_of
from sql_ext.readers.delta_files import DeltaFiles

VALUES = (
    st.integers(-20, 20),
    st.sampled_from([-1.5, 0.0, 2.5, math.inf, -math.inf]),
    st.text("abé𝄞", max_size=3),
    st.integers(0, 30).map(lambda n: date(2024, 1, 1) + timedelta(n)),
    st.sampled_from(["p", "q"]),
)
rows = st.tuples(*(st.none() | values for values in VALUES[:4]), VALUES[4])
NAMES = ("n", "r", "t", "d", "part")
TYPES = (pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.string())


def literal(value):
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def holds(condition, row) -> bool:
    """The condition of a row, in Python."""
    match condition:
        case AllOf(parts):
            return all(holds(part, row) for part in parts)
        case AnyOf(parts):
            return any(holds(part, row) for part in parts)
        case Unknown():
            return True
    value = row[NAMES.index(condition.column)]
    if condition.operator in ("is_null", "is_not_null"):
        return (value is None) == (condition.operator == "is_null")
    if value is None:
        return False
    own, (other,) = ordered_value_of(literal(value)), condition.values
    return {"=": own == other, "<": own < other, "<=": own <= other, ">": own > other, ">=": own >= other}[
        condition.operator
    ]


@st.composite
def conditions(draw, depth=2):
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind > 1:
        parts = tuple(draw(conditions(depth - 1)) for _ in range(draw(st.integers(1, 3))))
        return (AllOf if kind == 2 else AnyOf)(parts)
    number = draw(st.integers(0, 4))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "is_null", "is_not_null"]))
    if operator.startswith("is_"):
        return Comparison(NAMES[number], operator)
    return Comparison(NAMES[number], operator, (ordered_value_of(literal(draw(VALUES[number]))),))


@given(
    st.lists(st.lists(rows, min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(conditions(), min_size=1, max_size=8),
)
@settings(max_examples=40, deadline=None)
def test_no_file_with_a_matching_row_is_excluded(tmp_path_factory, commits, tried):
    folder = tmp_path_factory.mktemp("table")
    for commit in commits:
        arrays = [pa.array([row[n] for row in commit], kind) for n, kind in enumerate(TYPES)]
        write_deltalake(str(folder), pa.table(arrays, NAMES), mode="append", partition_by=["part"])
    table = DeltaFiles.of(str(folder), None, {})
    files = FileBounds.of(table, list(table.columns.leaves))
    assert files.row_count == sum(map(len, commits))
    for condition in tried:
        kept = files.may_match(condition)
        for number, path in enumerate(files.paths):
            own = pq.read_table(folder / path.replace("part=", "part=")).to_pydict()
            part = path.split("/")[0].removeprefix("part=")
            inside = zip(*(own[name] for name in NAMES[:-1]), strict=True)
            if any(holds(condition, (*row, part)) for row in inside):
                assert kept[number], (condition, path)


def test_a_file_of_other_values_is_excluded(tmp_path):
    for first in (0, 100, 200):
        write_deltalake(str(tmp_path), pa.table({"n": range(first, first + 10)}), mode="append")
    table = DeltaFiles.of(str(tmp_path), None, {})
    files = FileBounds.of(table, list(table.columns.leaves))
    kept = files.may_match(Comparison("n", "=", (105.0,)))
    assert kept.sum() == 1
    assert files.share_of(kept) == pytest.approx(1 / 3, abs=0.01)
