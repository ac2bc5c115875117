"""Tables of a terminal, and values with units."""

import io
import re
import sys
from datetime import datetime, timezone

import pytest
from rich.cells import cell_len

from sql_ext.commands.output import OutputFormat, print_rows
from sql_ext.commands.overview_text import overview_text
from sql_ext.commands.readable_values import readable
from sql_ext.commands.terminal_table import terminal_table

NAMES = ["number", "strategy", "input_files", "empty", "message"]
ROWS = [
    ["1", "UnindexedFiles", "1,200", "", "2 of 2 unindexed files, oldest first; made revision 1"],
    ["2", "", "7", "", "no files match"],
]
NUMERIC = [True, False, True, False, False]


def fitted(width, rows=ROWS, hidden_first=()):
    table = terminal_table(NAMES, rows, NUMERIC, width, hidden_first)
    text = re.sub(r"\x1b\[[0-9;]*m", "", table.text)
    return [line.rstrip() for line in text.splitlines()], table.hidden


@pytest.mark.parametrize("width", [60, 70, 80, 100, 140])
def test_a_table_fits_and_loses_no_character(width):
    lines, hidden = fitted(width)
    assert max(map(cell_len, lines)) <= width
    assert hidden == ()
    assert "UnindexedFiles" in "".join(lines)
    text = "".join("".join(lines).split())
    for word in ["2", "of", "2", "unindexed", "files,", "oldest", "first;", "made", "revision", "1"]:
        assert word in text


def test_a_wide_terminal_wraps_nothing():
    lines, _ = fitted(140)
    assert lines[0].split() == ["number", "strategy", "input", "files", "empty", "message"]
    assert len(lines) == 1 + len(ROWS)


def test_empty_columns_are_hidden_before_others():
    lines, hidden = fitted(50)
    assert "empty" not in " ".join(lines)
    assert hidden == ()
    lines, hidden = fitted(42, hidden_first=("number", "strategy"))
    assert hidden == ("number",)
    assert max(map(cell_len, lines)) <= 42


def test_what_fits_no_table_is_a_block_per_row():
    lines, hidden = fitted(35)
    assert lines[0] == "number       1"
    assert lines[1] == "strategy     UnindexedFiles"
    assert lines[lines.index("") + 1] == "number       2"
    assert max(map(cell_len, lines)) <= 35
    assert hidden == ()
    many, _ = fitted(35, ROWS * 30)
    assert len(many) == 61


def test_wide_characters_are_counted():
    lines, _ = fitted(60, [["1", "表" * 8, "7", "", "表 " * 20]])
    assert max(map(cell_len, lines)) <= 60
    assert sum(line.count("表") for line in lines) == 28


def test_units():
    assert readable("input_bytes", 806_679) == "806.7 kB"
    assert readable("rows", 100_000) == "100,000"
    assert readable("version", 100_000) == "100000"
    assert readable("cost_per_read", 806_679) == "806.7 kB"
    noon = datetime(2026, 1, 2, 12, 0, 7)  # noqa: DTZ001  # in the time zone of this process, as Spark's times
    assert readable("started_at", int(noon.timestamp() * 1000)) == readable("time", noon) == "2026-01-02 12:00:07"
    assert readable("timestamp", 0) == "0"
    assert readable("dry", True) is True
    assert readable("share", 0.123456) == "0.1235"
    assert readable("at", datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone.utc)) == "2026-01-02 03:04:05+00:00"
    assert readable("name", None) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_its_width(monkeypatch, capsys):
    row = {"iteration": 1, "bytes": 5000, "message": "some words that are too long for one line"}
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    print_rows([row], OutputFormat.TABLE, hidden_first=("iteration",))
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 2
    assert "5.0 kB" in lines[1]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("COLUMNS", "26")
    print_rows([row], OutputFormat.TABLE, hidden_first=("iteration",))
    assert capsys.readouterr().err == "use-spark: hidden to fit the terminal: iteration; --json prints all columns\n"


def test_csv(capsys):
    rows = [{"a": 1, "b": 'x,"y"', "c": None}, {"a": float("nan"), "b": ["é", 2], "c": True}]
    print_rows(rows, OutputFormat.CSV)
    assert capsys.readouterr().out.splitlines() == ["a,b,c", '1,"x,""y""",', 'NaN,"[""é"", 2]",true']
    print_rows([], OutputFormat.CSV, ["a", "b"])
    assert capsys.readouterr().out == "a,b\n"
    print_rows([], OutputFormat.CSV)
    assert capsys.readouterr().out == ""


def _overview():
    last = {"optimization_name": "UnindexedFiles", "state": "committed", "trigger": "call", "finished_at": "2026-01-02"}
    numbers = dict.fromkeys(("files", "indexed_files", "unindexed_files", "rows", "indexed_rows", "unindexed_rows"), 3)
    numbers |= {"small_files": 1, "deleted_rows": 2, "files_with_deleted_rows": 1}
    return {
        "name": "spark_catalog.default.flights", "location": "file:/a/rather/long/path/of/a/table", "version": 4,
        "index_columns": ["time_hour", "distance", "carrier"], "revisions": 1, "newest_revision": 1, **numbers,
        "bytes": 9, "unindexed_bytes": 3, "rows_known": True, "automatic": {"state": "off", "type": None},
        "last_optimization": {**last, "error_code": None}, "properties": {"use.index.cubeSize": "9"},
    }  # fmt: skip


def test_an_overview_fits_a_narrow_terminal():
    row = _overview()
    lines = overview_text(row).splitlines()
    assert "last optimization  UnindexedFiles committed by call at 2026-01-02" in lines
    assert "deleted rows       2 in 1 file" in lines
    narrow = overview_text(row, 49).splitlines()
    assert [line for line in narrow if len(line) > 49] == ["location           file:/a/rather/long/path/of/a/table"]
    assert "last optimization  UnindexedFiles committed by" in narrow
    assert " " * 19 + "call at 2026-01-02" in narrow


@pytest.mark.parametrize("width", [None, 60])
def test_names_in_an_overview_control_no_terminal_and_forge_no_line(width):
    hostile = "\x1b]0;title\x07\x9b2J\nsize  0"
    row = _overview()
    row |= {"location": hostile, "index_columns": [hostile], "properties": {hostile: hostile}}
    row["last_optimization"] |= {"error_code": "USE_X", "error": hostile}
    assert len(overview_text(row).splitlines()) == len(overview_text(_overview()).splitlines())
    assert overview_text(row, width).replace("\n", "").isprintable()
