"""Tables of the log without Spark, on stored tables that Spark made."""

import json
import os
import shutil

import numpy as np
import pytest
from fake_clock import FakeClock
from reader_tables import stored_tables

from catalog.columns.column_names import find_column, find_stored
from catalog.errors import IndexUnreadableError, NotSupportedError, TableError, UseError
from catalog.files.arrays import UNKNOWN
from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG
from procedures.insight.health.diagnosis import health_rows
from sql_ext.commands.overview import overview_of_log
from sql_ext.from_log import files_of_log
from sql_ext.from_log.files_of_log import _blocks
from sql_ext.from_log.health import diagnosis_of
from sql_ext.from_log.log_schema import log_schema
from sql_ext.from_log.log_table import LogTable


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {table.name: table.path for table in stored_tables(tmp_path_factory.mktemp("tables"))}


def _table(folders, name, **session):
    return LogTable.of(folders[name], session)


def _copy(folders, name, tmp_path):
    """A copy of a table that a test may damage."""
    return LogTable.of(shutil.copytree(folders[name], tmp_path / name), {})


def test_files_of_an_indexed_table(folders):
    table = _table(folders, "indexed")
    files = table.file_table
    assert len(files) == 5
    assert set(files.revision) == {0, 1, 2}
    assert (files.rows != UNKNOWN).all()
    indexed = files.revision > 0
    assert files.blocks.elements.sum() == files.rows[indexed].sum()
    assert files.low.shape == (5, table.latest_revision.dimensions)
    known = ~np.isnan(files.low) & ~np.isnan(files.high)
    assert (files.low[known] <= files.high[known]).all()


@pytest.mark.parametrize("name", ["indexed", "changed"])
def test_files_are_the_same_in_parts(folders, name, monkeypatch):
    whole = _table(folders, name).file_table
    monkeypatch.setattr(files_of_log, "_FILES_AT_ONCE", 2)
    parts = _table(folders, name).file_table
    assert len(parts) == len(whole) > 2
    for column in ("path", "rows", "revision", "write", "first_time", "deleted", "low"):
        np.testing.assert_array_equal(getattr(parts, column), getattr(whole, column), column)
    for column in ("file", "cube", "min_weight", "elements"):
        np.testing.assert_array_equal(getattr(parts.blocks, column), getattr(whole.blocks, column), column)


def test_deleted_rows_and_vectors(folders):
    files = _table(folders, "changed").file_table
    assert (files.deleted.sum(), int((files.deletion_vector != "").sum())) == (15, 5)
    assert files.rows.sum() == 41


def test_a_damaged_index_is_named(folders, tmp_path):
    table = _copy(folders, "indexed", tmp_path)
    configuration = dict(table.configuration) | {"qbeast.lastRevisionID": "7"}
    object.__setattr__(table, "configuration", configuration)
    with pytest.raises(IndexUnreadableError, match=r"qbeast\.revision\.7"):
        diagnosis_of(table)


def test_a_log_without_the_tags_of_a_file_is_left_to_spark(folders, monkeypatch):
    table = _table(folders, "indexed")
    monkeypatch.setattr(type(table.files), "entry", lambda self, path: None)
    with pytest.raises(NotSupportedError, match="without Spark"):
        assert table.file_table


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {REVISION_TAG: "1"},
        {REVISION_TAG: "2", BLOCKS_TAG: "[]"},
        {REVISION_TAG: "1", BLOCKS_TAG: "[]"},
        {REVISION_TAG: "1", BLOCKS_TAG: "{"},
        {REVISION_TAG: "1", BLOCKS_TAG: '[{"cubeId": "A", "minWeight": 2, "maxWeight": 1, "elementCount": 1}]'},
        {REVISION_TAG: "1", BLOCKS_TAG: '[{"cubeId": "?", "minWeight": 1, "maxWeight": 2, "elementCount": 1}]'},
    ],
    ids=str,
)
def test_tags_that_cannot_be_read(tags):
    assert _blocks(tags, {1: 6}) is None


def _rewritten(table, change):
    """Changes each action of the commits of a table in a folder of a test."""
    for commit in sorted((table.folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").split("\n") if line]
        commit.write_text("\n".join(json.dumps(change(action)) for action in actions), encoding="utf-8")
    return LogTable.of(table.folder, {})


@pytest.mark.parametrize("text", ["9" * 30, "-" + "9" * 30, "1" * 5_000, "x", ""])
def test_numbers_in_tags_that_are_too_large_are_none(folders, tmp_path, text):
    tags = {REVISION_TAG: text, TIER_TAG: text, BAND_TAG: f"{text},{text}", TIME_RANGE_TAG: f"{text},{text}"}

    def change(action):
        return (
            {"add": {**action["add"], "tags": {**action["add"].get("tags", {}), **tags}}} if "add" in action else action
        )

    files = _rewritten(_copy(folders, "indexed", tmp_path), change).file_table
    assert len(files) == 5
    assert set(files.revision) == {0}


def test_texts_of_tags_that_are_no_unicode_are_an_error_with_a_code(folders, tmp_path):
    def change(action):
        return {"add": {**action["add"], "tags": {WRITE_TAG: "\ud800"}}} if "add" in action else action

    with pytest.raises(UseError) as raised:
        assert _rewritten(_copy(folders, "indexed", tmp_path), change).file_table
    assert raised.value.code in ("USE_FILE_SYSTEM", "USE_TABLE_NOT_FOUND")


@pytest.mark.parametrize(
    "text", ["[1", "[]", "null", '{"clusteringColumns": 5}', '{"clusteringColumns": [[]]}', "[" * 100_000], ids=range(6)
)
def test_damaged_columns_of_cluster_by_are_an_error_with_a_code(folders, tmp_path, text):
    features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["clustering", "domainMetadata", "timestampNtz"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    table = _copy(folders, "indexed", tmp_path)
    first = table.folder / "_delta_log" / f"{0:020}.json"
    domain = {"domain": "delta.clustering", "configuration": text, "removed": False}
    first.write_text(first.read_text(encoding="utf-8").rstrip() + "\n" + json.dumps({"domainMetadata": domain}))
    changed = _rewritten(table, lambda action: {"protocol": protocol} if "protocol" in action else action)
    with pytest.raises(TableError, match="columns of CLUSTER BY are damaged") as raised:
        diagnosis_of(changed)
    assert raised.value.code == "USE_TABLE_UNREADABLE"


def test_failures_of_the_last_week_cost_points(folders, tmp_path):
    table = _copy(folders, "plain", tmp_path)
    clock = FakeClock()
    before = {row.part: row.points_lost for row in health_rows(diagnosis_of(table, clock))}
    events = table.folder / "_use" / "events"
    events.mkdir(parents=True)
    event = {"write_id": "w", "state": "failed", "started_at": clock.now(), "table_id": table.table_id}
    (events / f"{clock.now()}-w.json").write_text(json.dumps(event))
    after = {row.part: row.points_lost for row in health_rows(diagnosis_of(table, clock))}
    assert before["failures"] == 0 < after["failures"]
    assert overview_of_log(table, clock)["last_optimization"]["state"] == "failed"


def test_a_setting_of_the_session_counts_after_the_table(folders):
    lowered = {"use.index.targetFileBytes": "1MB"}
    assert _table(folders, "plain", **lowered).settings["use.index.targetFileBytes"] == "1MB"
    assert _table(folders, "indexed", **lowered).settings["use.index.targetFileBytes"] != "1MB"


def test_the_schema_is_found_as_spark_finds_it():
    schema = log_schema(
        [
            {"name": "a", "type": "long", "metadata": {"delta.columnMapping.physicalName": "p"}},
            {"name": "s", "type": {"type": "struct", "fields": [{"name": "x.y", "type": "decimal(10,2)"}]}},
            {"name": "c", "type": "string", "metadata": {"__COLLATIONS": {"c": "UTF8_LCASE"}}},
        ]
    )
    assert schema.names == ["a", "s", "c"]
    assert (find_column(schema, "A").stored, find_column(schema, "A").type_name) == ("p", "bigint")
    assert find_column(schema, "s.`x.y`").type_name == "decimal(10,2)"
    assert find_stored(schema, "s.x.y").path == ("s", "x.y")
    assert find_column(schema, "c").type_name == "string collate UTF8_LCASE"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize("name", ["suspended.json", "lease.json"])
def test_state_that_is_no_file_is_not_read(folders, tmp_path, name, make):
    table = _copy(folders, "plain", tmp_path)
    (table.folder / "_use").mkdir(exist_ok=True)
    make(table.folder / "_use" / name)
    with pytest.raises(OSError, match="is no regular file"):
        table.read_state(name)
    assert overview_of_log(table)["version"] == table.version
