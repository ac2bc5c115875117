"""Diagnoses of tables of known layouts, made without Spark."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from reader_tables import stored_tables
from written_logs import field, write_delta_table

from catalog.errors import InvalidArgumentError, TableError, TooComplexError, UnknownNameError
from sql_ext.diagnosis.verdict import Gain
from sql_ext.from_log.log_table import LogTable
from sql_ext.readers import diagnose

ROWS = 60_000
TARGET = 60_000


def numbers(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1_000_000, ROWS)


def write(folder: Path, rows: pa.Table, commits: int = 8, **options) -> Path:
    for n in range(commits):
        first, last = n * rows.num_rows // commits, (n + 1) * rows.num_rows // commits
        write_deltalake(str(folder), rows.slice(first, last - first), mode="append", **options)
    return folder


def one(folder: Path, **options):
    options.setdefault("target_file_bytes", TARGET)
    (found,) = diagnose(folder, **options).tables
    return found


def column(found, name: str):
    return next(one for one in found.columns if one.name == name)


@pytest.fixture(scope="module")
def unordered(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tables") / "unordered", pa.table({"x": numbers(1), "y": numbers(2)}))


def test_an_unordered_table_gains_from_an_index(unordered):
    found = one(unordered)
    assert found.rows == ROWS
    assert found.files == 8
    assert found.bytes == sum(path.stat().st_size for path in unordered.glob("*.parquet"))
    assert column(found, "x").reads.today == 1.0
    assert column(found, "x").reads.today_with_pages > 0.9
    assert found.verdict.gain is Gain.INDEX
    assert set(found.recommended.split(",")) == {"x", "y"}
    assert found.box.indexed < 0.5
    assert found.sample.today == 1.0
    assert found.sample.indexed < 0.1
    assert found.verdict.saved_bytes == int((found.workload_today - found.workload_indexed) * found.bytes)
    assert f"use-spark index --table {unordered}" in found.verdict.command
    assert "&& use-spark optimize" in found.verdict.command


def test_nothing_is_written_and_no_property_is_needed(unordered):
    before = {path: path.stat().st_mtime_ns for path in unordered.rglob("*")}
    one(unordered)
    assert {path: path.stat().st_mtime_ns for path in unordered.rglob("*")} == before


def test_a_table_that_is_sorted_has_nothing_to_gain(tmp_path):
    found = one(write(tmp_path / "t", pa.table({"x": np.arange(ROWS)}), commits=20))
    assert column(found, "x").reads.today < 0.15
    assert found.verdict.gain is Gain.NOTHING
    assert found.recommended is None
    assert found.verdict.command == ""


def test_a_table_whose_files_are_sorted_inside_is_judged_by_its_pages(tmp_path):
    folder = tmp_path / "t"
    write_deltalake(str(folder), pa.table({"x": np.arange(1_000)}))
    (name,) = DeltaTable(str(folder)).file_uris()
    # Each file has values from everywhere, in order: only the page index tells them apart.
    rows = pa.table({"x": np.arange(ROWS) * 16})
    pq.write_table(rows, name, write_page_index=True, data_page_size=2_000, use_dictionary=False)
    log = folder / "_delta_log" / f"{0:020d}.json"
    text = []
    for line in log.read_text().splitlines():
        action = json.loads(line)
        if "add" in action:
            stats = {"numRecords": ROWS, "minValues": {"x": 0}, "maxValues": {"x": ROWS * 16}, "nullCount": {"x": 0}}
            action["add"] |= {"size": Path(name).stat().st_size, "stats": json.dumps(stats)}
        text.append(json.dumps(action))
    log.write_text("\n".join(text))
    found = one(folder)
    reads = column(found, "x").reads
    assert reads.today == 1.0
    assert reads.today_with_pages < 0.1
    assert found.verdict.gain is Gain.NOTHING


def test_no_index_is_recommended_if_the_table_fits_into_one_file(tmp_path, unordered):
    found = one(unordered, target_file_bytes="1GB")
    assert found.verdict.gain is Gain.MERGE
    assert found.recommended is None
    assert found.small_files == 8
    few = one(write(tmp_path / "t", pa.table({"x": numbers()}), commits=2), target_file_bytes="1GB")
    assert (few.verdict.gain, few.recommended) == (Gain.NOTHING, None)
    assert "fits into one file" in few.verdict.sentence


def test_an_empty_table_has_nothing_to_gain(tmp_path):
    write_deltalake(str(tmp_path / "t"), pa.table({"x": pa.array([], pa.int64())}))
    found = one(tmp_path / "t")
    assert (found.rows, found.files, found.verdict.gain) == (0, 0, Gain.NOTHING)
    assert "empty" in found.verdict.sentence


def test_queries_decide_which_columns_are_recommended(unordered):
    found = one(unordered, queries="SELECT * FROM t WHERE y < 10000; SELECT y FROM t WHERE y BETWEEN 1 AND 20000")
    assert found.queries == 2
    assert found.recommended == "y"
    assert found.workload_indexed < 0.4


def test_conditions_that_select_no_files_are_named(unordered):
    found = one(unordered, queries=["SELECT * FROM t WHERE y < 10000", "SELECT * FROM t WHERE abs(x) = 1"])
    assert any("ABS(x) = 1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("queries", "error", "text"),
    [
        ("SELECT * FROM t WHERE z = 1", UnknownNameError, "z"),
        ("DELETE FROM t", InvalidArgumentError, "queries"),
        ("SELECT * FROM t JOIN u USING (x)", InvalidArgumentError, "queries"),
        ("", InvalidArgumentError, "queries"),
        ("SELECT FROM WHERE", InvalidArgumentError, "queries"),
        ("SELECT * FROM t WHERE " + "(" * 2_000, TooComplexError, "queries"),
    ],
)
def test_wrong_queries_are_refused(unordered, queries, error, text):
    with pytest.raises(error, match=text):
        one(unordered, queries=queries)


def test_partitions_are_no_candidates(tmp_path):
    rows = pa.table({"x": numbers(), "part": np.sort(np.random.default_rng(2).integers(0, 4, ROWS))})
    found = one(write(tmp_path / "t", rows, partition_by=["part"]))
    assert found.partitioned_by == ("part",)
    assert column(found, "part").is_partition
    assert column(found, "part").reads.today < 0.5
    assert found.recommended == "x"


def test_only_a_part_of_the_rows_is_read(unordered):
    all_of_it = one(unordered)
    part = one(unordered, budget=all_of_it.bytes // 4)
    assert part.read_bytes <= all_of_it.bytes // 2
    assert part.recommended is not None


def test_a_file_that_is_missing_is_a_note(tmp_path):
    folder = write(tmp_path / "t", pa.table({"x": numbers(), "y": numbers(2)}))
    next(folder.glob("*.parquet")).unlink()
    found = one(folder)
    assert any("1 could not be read" in note for note in found.notes)
    assert found.verdict.gain is Gain.INDEX


def test_deleted_rows_and_tiny_commits_are_counted(tmp_path):
    folder = write(tmp_path / "t", pa.table({"x": np.arange(1_000)}), commits=5)
    found = one(folder)
    assert (found.log.commits, found.log.since_checkpoint, found.log.tiny_commits) == (5, 5, 5)
    assert (found.deleted_rows, found.files_with_deleted_rows) == (0, 0)
    adds = [
        json.loads(line)["add"]
        for path in (folder / "_delta_log").glob("*.json")
        for line in path.read_text().splitlines()
        if '"add"' in line
    ]
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    features = ["deletionVectors"]
    lines = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {"remove": {"path": adds[0]["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": adds[0] | {"deletionVector": vector}},
    ]
    (folder / "_delta_log" / f"{5:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    found = one(folder)
    assert (found.deleted_rows, found.files_with_deleted_rows, found.rows) == (6, 1, 994)


def test_the_worst_table_comes_first_and_unreadable_ones_stop_nothing(tmp_path, unordered):
    lake = tmp_path / "lake"
    write(lake / "db" / "sorted", pa.table({"x": np.arange(ROWS)}))
    write(lake / "db" / "random", pa.table({"x": numbers(), "y": numbers(2)}))
    (lake / "broken" / "_delta_log").mkdir(parents=True)
    (lake / "broken" / "_delta_log" / f"{0:020d}.json").write_text("{")
    (lake / "_hidden" / "t" / "_delta_log").mkdir(parents=True)
    found = diagnose([lake, tmp_path / "missing"], target_file_bytes=TARGET)
    assert [Path(table.location).name for table in found.tables] == ["random", "sorted"]
    assert [Path(table.location).name for table in found.unreadable] == ["broken", "missing"]
    assert "2 tables" in str(found)
    assert "2 could not be read" in str(found)
    with pytest.raises(InvalidArgumentError, match="queries"):
        diagnose(lake, "SELECT * FROM t WHERE x = 1")


def test_a_missing_table_is_an_error(tmp_path):
    with pytest.raises(TableError, match="was not found"):
        diagnose(tmp_path / "missing")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"budget": "none"}, "budget"), ({"target_file_bytes": 0}, "target_file_bytes"), ({"processes": 0}, "processes")],
)
def test_wrong_arguments_are_named(unordered, arguments, name):
    with pytest.raises(InvalidArgumentError, match=name):
        diagnose(unordered, **arguments)
    with pytest.raises(InvalidArgumentError, match="paths"):
        diagnose([])


class _Page(HTMLParser):
    """What a page refers to, and its tags."""

    def __init__(self):
        super().__init__()
        self.tags, self.references = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [value for name, value in attributes if name in ("src", "href")]


def test_the_page_escapes_names_and_needs_no_other_resource(tmp_path):
    folder = write(tmp_path / "<script>alert(1)</script>", pa.table({"<b>x</b>": numbers(), "y": numbers(2)}))
    found = diagnose([folder, tmp_path / "missing<i>"], target_file_bytes=TARGET)
    page = _Page()
    page.feed(found.to_html())
    assert not {"script", "b", "i", "link", "img"} & set(page.tags)
    assert all(reference.startswith("#") for reference in page.references)
    assert json.loads(json.dumps(found.to_dict()))["tables"][0]["verdict"]["gain"] == "INDEX"


def test_the_text_of_a_table_fits_a_terminal_and_ends_with_the_verdict(unordered):
    found = diagnose(unordered, target_file_bytes=TARGET)
    lines = str(found).splitlines()
    assert lines[0] == f"{unordered} (version 7)"
    assert lines[-1].strip() == found.tables[0].verdict.command
    assert any(line.split()[:2] == ["x", "bigint"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"paths": ""}, "paths = ''"),
        ({"paths": ["t", " "]}, "paths = ' '"),
        ({"paths": []}, "paths = '[]'"),
        ({"paths": b"t"}, "paths = "),
        ({"paths": [b"t"]}, "paths = "),
        ({"queries": [1]}, "queries = '[1]'"),
        ({"queries": 5}, "queries = '5'"),
        ({"queries": {"SELECT * FROM t"}}, "queries = "),
        ({"processes": "2"}, "processes = '2'"),
        ({"processes": True}, "processes = 'True'"),
        ({"processes": 0}, "processes = '0'"),
        ({"storage_options": {"key": 1}}, "storage_options = 'dict'"),
    ],
)
def test_arguments_are_checked(arguments, named):
    with pytest.raises(InvalidArgumentError) as refused:
        diagnose(**{"paths": "/missing", **arguments})
    assert named in str(refused.value)


def test_names_in_a_text_control_no_terminal_and_forge_no_line(tmp_path):
    hostile = "\x1b]0;title\x07\x9b2J\nforged line"
    rows = pa.table({hostile: pa.array(range(3_000), pa.int32())})
    properties = {"use.index.columns": f"`{hostile}`"}
    path = write_delta_table(tmp_path / "t", [field(hostile, "integer")], {"f": rows}, properties)
    for paths in ([path], [path, f"{tmp_path}/missing{hostile}"]):
        text = str(diagnose(paths, target_file_bytes=1_000))
        styles_only = re.sub(r"\x1b\[[0-9;]*m", "", text)  # of headers
        assert "forged line" in styles_only
        assert styles_only.replace("\n", "").isprintable()
        assert not any(line.strip().startswith("forged line") for line in styles_only.split("\n"))


def test_the_present_index_and_deleted_rows_are_those_of_the_log(tmp_path):
    indexed = set()
    for table in stored_tables(tmp_path):
        found = one(table.path)
        files = LogTable.of(table.path, {}).file_table
        if found.index_columns:
            indexed.add(table.name)
            assert found.unindexed_bytes == int(files.size[files.revision == 0].sum()), table.name
        assert found.deleted_rows == int(files.deleted.sum()), table.name
    assert {"indexed", "changed", "widened", "checkpointed"} <= indexed
