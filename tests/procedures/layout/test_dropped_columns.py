"""Revisions whose columns were dropped after others were declared, without Spark."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from listed_tables import REVISION, cube, file, table_files, unindexed
from pyspark.sql.types import IntegerType, StructType

from catalog.columns.column_names import shown_name
from catalog.errors import UnknownNameError
from catalog.jvm.file_writer import DataFile
from otree.block import REWRITES_TAG, TIME_RANGE_TAG, WRITE_TAG
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.groups.strategy import TableFiles
from procedures.layout.index_columns import stored_columns_of
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.rewrite import kept_rows
from procedures.rewrite.inputs import InputFacts
from procedures.rewrite.run_rewrite import RunRewrite

SCHEMA = StructType().add("B", IntegerType(), metadata={"delta.columnMapping.physicalName": "col-b"})
DROPPED, PRESENT = SimpleNamespace(columns=("col-a", "col-b")), SimpleNamespace(columns=("col-b",))
SNAPSHOT = SimpleNamespace(
    schema=SCHEMA,
    revisions={1: DROPPED, 2: PRESENT},
    has_columns_of=lambda revision: revision is PRESENT,
)


def test_columns_of_a_revision_are_all_there_or_an_error():
    assert stored_columns_of(None, SNAPSHOT, PRESENT).columns == ("col-b",)
    with pytest.raises(UnknownNameError, match="col-a"):
        stored_columns_of(None, SNAPSHOT, DROPPED)
    assert [shown_name(SCHEMA, stored) for stored in DROPPED.columns] == ["col-a", "B"]


class FakeTransaction:
    """Writes one file, and remembers what was asked for."""

    def __init__(self):
        self.written = []

    def scan(self, paths, numbered):
        return paths

    def in_runs(self, rows, runs):
        return rows

    def write(self, *arguments):
        self.written.append(arguments)
        return [DataFile("part-00000-x.parquet", 9, 10)]


def test_a_rewrite_of_runs_leaves_files_of_dropped_columns_unindexed():
    transaction = FakeTransaction()
    group = Concatenate("DeleteCompaction", 1, "", (InputFile("a", "", 100, 10, 1, 5, 6),), runs=(FileRun(("a",)),))
    rewrite = RunRewrite(
        SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None)),
        SimpleNamespace(snapshot=SNAPSHOT, transaction=transaction),
        group,
        InputFacts((), {"a": 1.0}, {"a": 100}),
        "w",
        SimpleNamespace(observe=lambda _: None),
    )
    output = rewrite.write()
    assert transaction.written == [(["a"],)]
    assert (output.revision_id, [facts.path for facts in output.facts]) == (0, ["part-00000-x.parquet"])
    assert output.tags == {"part-00000-x.parquet": {WRITE_TAG: "w", TIME_RANGE_TAG: "5,6", REWRITES_TAG: "2.000"}}


@pytest.mark.parametrize("strategy", ["SortedRunCompaction", "LeveledCompaction", "CubeDefragmentation"])
def test_strategies_leave_files_of_dropped_columns_alone(strategy):
    """Their rows could not be placed again: each run would fail."""
    files = [file(name, {cube(0): 900}) for name in "abcd"]
    assert findings_without_x(files, strategy) == [
        f"{strategy}: a column of revision {REVISION} was dropped; see revision_rewrite"
    ]


def test_named_files_of_dropped_columns_are_indexed_again():
    [group] = findings_without_x([file("a", {cube(0): 900})], "FileList", files=["a"])
    assert (group.revision_id, [f.path for f in group.files]) == (0, ["a"])


@pytest.mark.parametrize(
    ("listed", "expected"),
    [(file("a", {cube(0): 900}), kept_rows.NO_INDEX), (unindexed("a"), kept_rows.NOTHING_TO_KEEP)],
)
def test_statements_lose_the_index_of_indexed_files_only(monkeypatch, listed, expected):
    snapshot = snapshot_without_x([listed])
    monkeypatch.setattr(kept_rows, "TableSnapshot", SimpleNamespace(of=lambda *_: snapshot))
    # The types of other columns say nothing of the former index.
    monkeypatch.setattr(kept_rows, "has_other_hash_types", lambda *_: True)
    handle = SimpleNamespace(state=lambda: None, facts=lambda: SimpleNamespace(location="t", paths=["a"]))
    assert kept_rows.write_kept_rows(handle, None) == expected


def findings_without_x(listed, strategy, **arguments):
    settings = OptimizeSettings.of({**DEFAULT_ARGUMENTS, "table": "t", "strategy": strategy, **arguments})
    snapshot = snapshot_without_x(listed)
    [chosen] = settings.strategies
    return list(chosen.groups(TableFiles(snapshot), settings.selection[chosen.name]))


def snapshot_without_x(listed):
    table = table_files(listed)
    schema = StructType([field for field in table.snapshot.schema.fields if field.name != "x"])
    properties = {**table.snapshot.configuration, "use.index.columns": "y"}
    snapshot = replace(table.snapshot, schema=schema, configuration=properties)
    snapshot.__dict__["file_table"] = table.files
    return snapshot
