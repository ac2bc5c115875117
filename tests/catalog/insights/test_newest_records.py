"""Which files of records a plan reads: the newest, unless they do not hold the newest records."""

import json
import math
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
from folders import memory_table
from tables import NUMBERS, numbers

from catalog.insights import consumption, recorded_scans
from catalog.insights.consumption import CONSUMPTION_FOLDER, add_scans
from catalog.insights.record_files import RECORD_FILE, newest_files
from catalog.insights.scan_rows import parse_scans
from catalog.table.managed_table import ManagedTable


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: SimpleNamespace(settings={}))
    monkeypatch.setattr(consumption, "MOST_FILES", 5)
    return memory_table({})


def _add(table, *times):
    key = {"table_id": "t", "application_id": "a", "scan": 0}
    lines = (json.dumps({**key, "execution_id": time, "finished_at": time}) for time in times)
    add_scans(table, "\n".join(lines), now=1000)


def _scans(table, name):
    return parse_scans(table.read_state(f"{CONSUMPTION_FOLDER}/{name}"))


def _read_without_spark(asked, table, most, columns, since, most_lines):
    """Records as ``_newest`` reads them: each scan once, the newest first."""
    names, missing_until = newest_files(table.list_state(CONSUMPTION_FOLDER), since, most_lines)
    asked.append(len(names))
    times = {scan.key: scan.finished_at for name in names for scan in _scans(table, name)}
    newest = sorted((time for time in times.values() if time >= since), reverse=True)[:most]
    nulls = {name: pa.nulls(len(newest)) for name in columns}
    return pa.table({"time": pa.array(newest, pa.int64()), **nulls}), missing_until


@pytest.fixture
def asked(monkeypatch):
    """The number of files of each read."""
    numbers = []
    monkeypatch.setattr(recorded_scans, "MOST_RECORDS", 6)
    monkeypatch.setattr(recorded_scans, "_LINES_PER_RECORD", 4 / 3)
    monkeypatch.setattr(recorded_scans, "_newest", partial(_read_without_spark, numbers))
    return numbers


def _times(table, since=0):
    return [scan.time for scan in recorded_scans.recorded_scans(table, since).scans]


def test_names_tell_the_newest_record_and_the_number_of_lines(table):
    for time in range(10, 100, 10):
        _add(table, time, time - 5)
    names = [name for name in table.list_state(CONSUMPTION_FOLDER) if name.endswith(".json")]
    assert any("merged" in name for name in names)
    for name in names:
        match, scans = RECORD_FILE.fullmatch(name), _scans(table, name)
        assert (int(match[1]), int(match[2])) == (max(scan.finished_at for scan in scans), len(scans))


def test_files_that_cannot_hold_what_is_asked_are_left_out():
    names = ["30-2-a.json", "40-merged-5-b.json", "10-1-c.json", "20-d.json", "40-merged-5-b.parts", "50-3-e.json"]
    assert newest_files(names) == (
        ["50-3-e.json", "40-merged-5-b.json", "30-2-a.json", "20-d.json", "10-1-c.json"],
        None,
    )
    assert newest_files(names, since=30) == (["50-3-e.json", "40-merged-5-b.json", "30-2-a.json"], None)
    assert newest_files(names, most=8) == (["50-3-e.json", "40-merged-5-b.json"], 30)
    assert newest_files(names, since=31, most=8) == (["50-3-e.json", "40-merged-5-b.json"], None)
    assert newest_files(names, most=11) == newest_files(names)
    assert newest_files([]) == ([], None)


def test_only_the_newest_files_are_read(table, asked, monkeypatch):
    monkeypatch.setattr(consumption, "MOST_FILES", 100)
    for time in range(10, 400, 10):
        _add(table, time, time - 1)
    assert _times(table) == [369, 370, 379, 380, 389, 390]
    assert _times(table, since=380) == [380, 389, 390]
    assert asked == [4, 2]
    newest = recorded_scans.newest_records(table, 3, ("filters",))
    assert (newest["time"].to_pylist(), newest.column_names, asked) == ([390, 389, 380], ["time", "filters"], [4, 2, 2])


def test_merged_files_and_their_parts_hide_no_record(table, asked):
    for time in range(10, 100, 10):
        _add(table, time, time - 5)
        assert _times(table) == sorted(t for made in range(10, time + 1, 10) for t in (made - 5, made))[-6:]
    # Two processes have merged the same files.
    merged = next(name for name in table.list_state(CONSUMPTION_FOLDER) if "merged" in name and name.endswith("json"))
    text = table.read_state(f"{CONSUMPTION_FOLDER}/{merged}")
    for copy in "abc":
        table.write_state(f"{CONSUMPTION_FOLDER}/{merged.removesuffix('.json')}{copy}.json", text)
    assert _times(table) == [65, 70, 75, 80, 85, 90]


def test_records_of_long_queries_that_were_stored_late_are_not_missed(table, asked):
    _add(table, 50, *range(1, 9))
    _add(table, 30, 40)
    assert _times(table) == [6, 7, 8, 30, 40, 50]
    assert asked == [1, 2]


def test_scans_and_totals_of_the_newest_files(spark, new_table, monkeypatch):
    table = new_table(NUMBERS).append(numbers(spark, 10)).managed
    monkeypatch.setattr(recorded_scans, "MOST_RECORDS", 4)
    monkeypatch.setattr(recorded_scans, "_LINES_PER_RECORD", 3 / 2)
    scan = {
        "table_id": table.snapshot().table_id,
        "application_id": "a",
        "scan": 0,
        "filters": [{"column": "x", "operator": ">", "literal": "1"}],
        "table_size": {"files": 1, "bytes": 100},
        "read": {"files": 1, "bytes": 50},
    }
    for time in range(10, 110, 10):
        lines = [{**scan, "execution_id": number, "finished_at": number} for number in (time - 1, time)]
        add_scans(table, "\n".join(map(json.dumps, lines)), now=1000)
    newest, missing_until = recorded_scans._newest(table, 4, (), 0, 6)
    assert (newest["time"].to_pylist(), missing_until) == ([100, 99, 90, 89], 70)
    found = recorded_scans.recorded_scans(table, 0).scans
    assert [scan.time for scan in found] == [89, 90, 99, 100]
    assert [filter_.column for filter_ in found[0].filters] == ["x"]
    totals = recorded_scans.scan_totals(table, 90, 1000, math.inf, math.inf)
    assert (totals.scans, totals.first, totals.share_read) == (2, 99, 0.5)
    assert recorded_scans.recorded_scans(table, 101).scans == ()
