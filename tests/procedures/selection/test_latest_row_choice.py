"""Which rows of a key stay, and which files are rewritten for it, without Spark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, TimestampType, VariantType
from staging import settings_of

import sql_ext
from catalog.columns.key_columns import key_columns, key_order, names_text, order_column
from procedures.calls.compact import COMPACT
from procedures.groups.group import InputFile, RowRemoval
from procedures.rewrite.outdated_rows import ALL_TIES, ANY_TIE, FileWithOutdated
from procedures.selection.latest_row_compaction import _RUN_BYTES, ComparedFiles, first_files, group_of

REMOVAL = RowRemoval(None, 0, None, ())
SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("a,b", StringType()),
        StructField("s", StructType([StructField("x", LongType())])),
        StructField("l", ArrayType(LongType())),
        StructField("v", VariantType()),
        StructField("ts", TimestampType()),
    ]
)


@st.composite
def files(draw):
    def file(number):
        rows = draw(st.one_of(st.none(), st.integers(1, 100)))
        outdated = draw(st.integers(1, 100 if rows is None else rows))
        revision = draw(st.sampled_from([0, 0, 1, 2]))
        size = draw(st.sampled_from([1, 1000, _RUN_BYTES // 2, _RUN_BYTES, 3 * _RUN_BYTES]))
        first = draw(st.integers(0, 5))
        made = InputFile(f"f{number}", "", size, rows, 0 if revision else -1, first, first)
        return FileWithOutdated(made, number, revision, outdated, draw(st.integers(0, 2)), draw(st.sampled_from("pq")))

    return [file(number) for number in range(draw(st.integers(0, 12)))]


@given(files(), st.integers(1, 4 * _RUN_BYTES))
def test_a_group_is_of_one_revision_and_its_runs_of_one_partition(found, bytes_per_iter):
    taken = first_files(found, bytes_per_iter)
    if not taken:
        assert not found
        return
    group = group_of(taken, 168.0, ALL_TIES, REMOVAL)
    by_path = {f.file.path: f for f in found}
    assert group.revision_id == min(f.revision_id for f in found)
    assert [f.file for f in taken] == list(group.files)
    assert {by_path[f.path].revision_id for f in group.files} == {group.revision_id}
    in_runs = [path for run in group.runs for path in run.paths]
    # Files without a row that stays are in no run, all others in exactly one.
    assert sorted(in_runs) == sorted(f.file.path for f in taken if f.file.rows != f.outdated)
    for run in group.runs:
        members = [by_path[path] for path in run.paths]
        assert len({m.partition for m in members}) == 1
        assert len(members) == 1 or group.revision_id == 0
        assert [m.file.first_time for m in members] == sorted(m.file.first_time for m in members)
        expected = [int(m.file.size * (1 - m.share)) for m in members]
        assert len(members) == 1 or sum(expected) <= _RUN_BYTES
    limit = max(bytes_per_iter, sum(f.file.size for f in found) // 8)
    assert sum(f.size for f in group.files[:-1]) < limit


def test_a_budget_bounds_a_group_however_many_files_have_outdated_rows():
    outdated = [FileWithOutdated(InputFile(f"f{n:02}", "", 100, 10, -1, 1, 1), n, 0, 1) for n in range(80)]
    assert [len(first_files(outdated, 200, budget)) for budget in (None, 5000, 300, 1)] == [10, 10, 3, 1]
    selection = settings_of(strategy="LatestRowCompaction", options={"primary_key": "id", "order_by": "ts"})
    assert selection.within(300).selection["LatestRowCompaction"].budget_bytes == 300


def test_names_of_keys_may_hold_commas():
    for names in (["id"], ["id", "a,b"], ["s.x", "`a,b`"]):
        text = names_text(names)
        assert [c.plain_name for c in key_columns(SCHEMA, "primary_key", text)] == [n.strip("`") for n in names]
    found = key_order(SCHEMA, ("primary_key", "ID, s.x"), ("order_by", "TS"))
    assert ([c.name for c in found.key], found.order.name) == (["id", "s.x"], "ts")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names of columns"),
        ("id,", "names of columns"),
        ("id,id", "each column once"),
        ("id,ID", "each column once"),
        ("idd", "Did you mean id"),
        ("lower(id)", "no column"),
        ("l", "array<bigint>"),
        ("s", "struct"),
        ("v", "variant"),
        ("`id", "names of columns"),
    ],
)
def test_keys_that_are_not_accepted(text, message):
    with pytest.raises(sql_ext.UseError, match=message) as refused:
        key_columns(SCHEMA, "use.compaction.primaryKey", text)
    assert "use.compaction.primaryKey" in refused.value.message


def test_an_order_is_one_column():
    with pytest.raises(sql_ext.UseError, match="one column"):
        order_column(SCHEMA, "order_by", "id,ts")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"primary_key": ["id"]}, "order_by is missing"),
        ({"order_by": "ts"}, "primary_key is missing"),
        ({"ties": "any"}, "primary_key is missing"),
        ({"primary_key": [], "order_by": "ts"}, "primary_key"),
        ({"primary_key": ["id"], "order_by": "ts", "ties": "first"}, "ties = 'first'"),
        ({"primary_key": "id", "order_by": "ts"}, "primary_key"),
    ],
    ids=str,
)
def test_arguments_that_are_not_accepted(arguments, named):
    with pytest.raises(sql_ext.UseError, match=named):
        COMPACT.checked({"table": "t", **arguments})


def test_only_files_that_were_never_compared_are_new():
    compared = ComparedFiles()
    numbers = np.array([5, 1, 9])
    assert list(compared.are_new("t", numbers)) == [True, True, True]
    compared.put("t", numbers)
    assert list(compared.are_new("t", np.array([9, 7, 1]))) == [False, True, False]
    assert list(compared.are_new("other", numbers)) == [True, True, True]
    for number in range(100):
        compared.put(number, numbers)
    assert list(compared.are_new("t", numbers)) == [True, True, True]


def test_the_note_counts_and_names_ties():
    outdated = [FileWithOutdated(InputFile("a", "", 100, 10, -1, 1, 1), 1, 0, 1)]
    assert (
        "removes 1 row of 1 file because of later rows with the same key; "
        in group_of(outdated, 1.0, ALL_TIES, REMOVAL).note
    )
    note = group_of(outdated, 1.0, ANY_TIE, REMOVAL).note
    assert "because of later rows, or one equally late row that stays, with the same key; " in note
