"""What a killed rewrite leaves: a record, and files that a vacuum recognizes and finds without a listing."""

import json
import re
import uuid
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging import At, settings_of
from tables import NUMBERS, numbers

import sql_ext
from catalog.jvm.table_transaction import TableTransaction
from catalog.state.state_files import Unreadable
from catalog.state.write_records import FILE_NAME, MAX_FOLDERS, WriteRecord, folders_of, parse_record, record_write
from procedures.declare.runs import Run
from procedures.layout.step import Step
from procedures.loop.table_optimizer import optimize

WRITE = uuid.UUID(int=7).hex
# Hadoop resolves the last ones to places that the table's folder does not contain.
OUTSIDE = ("../other", "/etc", "a/../../b", "..", "file:/etc", "s3a://bucket/other", "a:b", "p=\x00")


def test_folders_are_those_of_the_inputs():
    paths = ["a.parquet", "p=1/b.parquet", "p=%C3%A4%252F/c.parquet", "p=1/d.parquet", "s3://other/e.parquet", "/x/f"]
    assert folders_of(paths) == ("", "p=1", "p=ä%2F")
    assert folders_of(f"p={n}/a" for n in range(MAX_FOLDERS + 1)) == ()


def test_a_record_is_read_back_and_leads_nowhere_else():
    text = json.dumps({"started_at": 5, "folders": [".", "p=1", *OUTSIDE, "..a", "p=1/q=a:b"]})
    assert parse_record(WRITE, text) == WriteRecord(WRITE, 5, ("", "p=1", "..a", "p=1/q=a:b"))


@pytest.mark.parametrize("folder", ["city=New\u00a0York", "p=\u200bz", "p=" + 500 * "x"])
def test_a_folder_may_have_any_name(folder):
    record = WriteRecord(WRITE, 5, folders_of([f"{quote(folder)}/part-0.parquet"]))
    table = SimpleNamespace(create_state=lambda _, text: texts.append(text))
    texts = []
    record_write(table, record)
    assert record.folders == (folder,)
    assert parse_record(WRITE, texts[0]) == record


@given(st.text() | st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())).map(json.dumps))
def test_any_text_is_read_without_an_exception(text):
    assert isinstance(parse_record(WRITE, text), (WriteRecord, Unreadable))


def test_only_files_of_rewrites_have_such_names():
    mark = WriteRecord(WRITE, 0, ()).mark
    assert re.search(FILE_NAME, f"/t/p=1/part-00001-{mark}-use12-3.c000.snappy.parquet")
    assert re.search(FILE_NAME, f"cdc-00001-{mark}-use0.c000.snappy.parquet")
    for other in (f"part-00001-{mark}.c000.snappy.parquet", f"x-{mark}-use1/part-0.parquet", "part-00001-use1.parquet"):
        assert not re.search(FILE_NAME, other)


class Killed(BaseException):
    """Ends a rewrite as a signal would: nothing is tidied up."""


def _kill(table, monkeypatch):
    def killed():
        raise Killed

    monkeypatch.setattr(TableTransaction, "discard", lambda _: 1)
    run = Run.of(table.managed, "call", {})
    with pytest.raises(Killed):
        optimize(table.managed, settings_of(strategy="SizeTieredClustering"), run, At(Step.COMMIT, killed))
    monkeypatch.undo()


def _vacuum(table, **arguments):
    call = {"retention_hours": 0.0, "force": True, **arguments}
    return {r.reason: r.files for r in sql_ext.call(table.spark, "vacuum", table=table.name, **call).collect()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "tail"), [("lite", ""), ("lite", "PARTITIONED BY (p)"), ("full", "PARTITIONED BY (p)")]
)
def test_a_vacuum_finds_the_files_of_a_killed_rewrite(spark, new_table, monkeypatch, mode, tail):
    table = new_table(f"{NUMBERS}, p STRING", tail=tail)
    for number in range(4):
        table.append(numbers(spark, 10, start=number * 10, partitions=1).selectExpr("*", "'ä b%' AS p"))
    before, live = table.checksum(), table.paths
    _kill(table, monkeypatch)
    records = table.managed.list_state("writes")
    assert len(records) == 1
    assert len(table.on_disk() - live) == 1
    # Within the retention, another writer may still commit them.
    _vacuum(table, mode=mode, retention_hours=None)
    assert table.managed.list_state("writes") == records
    assert len(table.on_disk() - live) == 1
    assert _vacuum(table, mode=mode)["ABORTED_REWRITE"] == 1
    assert table.on_disk() == live
    assert table.managed.list_state("writes") == []
    assert table.checksum() == before
    table.optimize(strategy="SizeTieredClustering")
    assert table.managed.list_state("writes") == []
    assert all("-use" in path for path in table.paths)
    assert table.checksum() == before

    # One that was killed after its commit: its files are live, and its record is of no more use.
    mark = re.search("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", min(table.paths))[0]
    record_write(table.managed, WriteRecord(uuid.UUID(mark).hex, 0, folders_of(table.paths)))
    _vacuum(table, mode=mode)
    assert table.managed.list_state("writes") == []
    assert table.checksum() == before


def test_only_names_of_aborted_rewrites_reach_python(spark, new_table):
    table = new_table("id BIGINT").append(spark.range(4))
    marks = [str(uuid.UUID(int=number)) for number in (7, 8, 9)]
    (table.path / "p=ä b").mkdir()
    names = [f"part-00001-{mark}-use1-0.parquet" for mark in marks]
    for name in names:
        (table.path / "p=ä b" / name).touch()
    (table.path / "p=ä b" / f"folder-{marks[0]}").mkdir()
    handle = table.managed.handle
    assert handle.list_names_containing("p=ä b", marks[:2]) == names[:2]
    (table.path / names[2]).touch()
    assert handle.list_names_containing("", marks) == names[2:]
    assert handle.list_names_containing("missing", marks) == []
