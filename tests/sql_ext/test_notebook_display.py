"""What notebooks show of tables, reports and rows: HTML in which all texts are escaped. No Spark."""

from dataclasses import fields
from html.parser import HTMLParser

import pytest

import sql_ext
from catalog.pruning.read_planning import SampleReason
from procedures.calls.registry import procedures
from procedures.declare.result_rows import ShownRow, rows_as_html
from procedures.insight.health.diagnosis import HealthRow
from sql_ext.facade.rows import ResultRows, typed_rows

ATTACK = "<script>alert('x')</script>"
ROW = HealthRow("failures", 2.5, ATTACK, None, 1.0, 1_234_567, "a & b")


class _Cells(HTMLParser):
    """Texts of the cells, row by row; tags must be closed."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.tags = [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_rows_are_a_table():
    shown = _Cells(rows_as_html([ROW, ROW]))
    assert shown.rows[0] == ["part", "value", "unit", "fine", "points_lost", "cost_per_read", "advice"]
    assert shown.rows[1:] == [["failures", "2.5", ATTACK, "", "1.0", "1,234,567", "a & b"]] * 2
    assert "script" not in shown.tags
    assert ROW._repr_html_() == rows_as_html([ROW])


def test_lists_of_rows_are_lists_and_short():
    rows = ResultRows([ROW] * 70)
    assert rows == [ROW] * 70
    text = rows._repr_html_()
    assert len(_Cells(text).rows) == 51
    assert "20 more rows are not shown" in text
    assert ResultRows()._repr_html_() == "<p>No rows.</p>"


def test_methods_return_such_lists():
    class Data:
        @staticmethod
        def collect():
            names = ("part", "value", "unit", "fine", "points_lost", "cost_per_read", "advice")
            return [{name: getattr(ROW, name) for name in names}]

    rows = typed_rows(HealthRow, Data())
    assert (type(rows), rows) == (ResultRows, [ROW])


@pytest.mark.parametrize("name", procedures())
def test_every_kind_of_row_is_shown(name):
    assert issubclass(procedures()[name].row, ShownRow)


def test_a_table_shows_what_it_offers():
    table = sql_ext.Table(None, f"spark_catalog.default.`{ATTACK}`")
    text = table._repr_html_()
    shown = _Cells(text)
    assert "script" not in shown.tags
    assert "&lt;script&gt;" in text
    methods = {row[0]: row[1].split(", ") for row in shown.rows[1:]}
    assert {"health", "report", "recommend"} <= set(methods["inspect"])
    assert {"optimize", "vacuum"} <= set(methods["maintenance"])


def test_a_read_report_shows_scans_and_samples():
    scan = sql_ext.ScanReport(
        True, 80, 800, 30, 300, 100, 1_000, 90, 900, 50, 500, f"default.{ATTACK}", 7, False, 30, 300, ()
    )
    weight = sql_ext.WeightSample(("x",), 0.0, 0.1, "note", None)
    spark_sample = sql_ext.SparkSample(SampleReason.NOT_A_TABLE, ATTACK, 0.0, 0.5)
    text = sql_ext.ReadReport((spark_sample,), 1, (scan,), (weight,))._repr_html_()
    shown = _Cells(text)
    assert "script" not in shown.tags
    assert shown.rows[1] == [
        *(f"default.{ATTACK}", "7", "100", "1,000", "10", "10", "0", "30", "20", "0", "30", "300"),
    ]
    assert shown.rows[3] == ["0 to 0.1", "by weight", "note"]
    assert shown.rows[4] == ["0 to 0.5", "by Spark", f"NOT_A_TABLE: {ATTACK}"]
    assert "No scan" in sql_ext.ReadReport((), 0, (), ())._repr_html_()


def test_an_explanation_shows_its_rows():
    cells = ["x"] * len(fields(sql_ext.ExplainSkippingRow))
    row = sql_ext.ExplainSkippingRow(*cells)
    assert _Cells(sql_ext.SkippingExplanation((row,))._repr_html_()).rows[1] == cells
