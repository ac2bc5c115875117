"""``CALL use.report``: the page as parsed HTML, its pictures, and its numbers against the log."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from report_facts import FACTS
from tables import NUMBERS, numbers

import sql_ext
from catalog.history.event_files import StoredEvent
from procedures.calls.report import _pages_beside
from procedures.insight.report import page as pages
from procedures.insight.report import plots
from procedures.insight.report.facts import CubeBox
from procedures.insight.report.lake import DayOfWork, TableLine, lake_page


class _Page(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def _svgs(text):
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)]


def _marks(svg):
    """Paths, bars and dots that are drawn in a colour of the data."""
    return [e for e in svg.iter() if "var(--" in e.get("style", "") and not e.tag.endswith("text")]


def test_the_page_is_whole_and_refers_to_nothing():
    text = pages.page(FACTS)
    page = _Page(text)
    assert page.open == []
    assert "script" not in {tag for tag, _ in page.tags}
    assert "i" not in {tag for tag, _ in page.tags}
    assert "alert('x')" in page.text
    for _, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#")
    assert not re.findall(r"(?<!xmlns=\")(?<!xlink=\")https?://", text)
    assert "@import" not in text
    assert [tag for tag, _ in page.tags].count("h1") == 1
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert headers
    assert all(attributes["scope"] == "col" for attributes in headers)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    # What scrolls can be reached with the keyboard, and has a name.
    scrolled = [attributes for _, attributes in page.tags if attributes.get("class") == "wide"]
    assert scrolled
    assert all((a["tabindex"], a["role"]) == ("0", "region") and a["aria-label"] for a in scrolled)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("figure") == tags.count("figcaption") == tags.count("svg") == 7
    assert "prefers-color-scheme: dark" in text
    assert "7 deeper cubes are not drawn" in page.text
    assert "<u>, x" in page.text
    assert "25.0 %" in page.text


def test_pictures_have_names_and_marks():
    svgs = _svgs(pages.page(FACTS))
    names = [svg.get("aria-label") for svg in svgs]
    assert [svg.get("role") for svg in svgs] == ["img"] * 7
    titles = [svg[0].text for svg in svgs]
    assert all(name.startswith(f"{title}. ") for name, title in zip(names, titles, strict=True))
    assert len(set(names)) == 7
    for svg in svgs:
        assert len(_marks(svg)) > 3, svg.get("aria-label")
        # Text stays text, and its colour is that of the page.
        texts = ["".join(e.itertext()) for e in svg.iter() if e.tag.endswith("text")]
        assert texts
        assert not re.search(r"#0[1-6]0", ET.tostring(svg, "unicode"))
    assert any("a$b$" in "".join(svg.itertext()) for svg in svgs)


def test_pages_of_empty_and_plain_tables():
    empty = dict.fromkeys(
        ("index_columns", "shown_columns", "cubes", "samples", "versions", "events", "parts", "bands"), ()
    )
    nothing = replace(FACTS, files=0, rows=None, sizes=np.array([]), levels=np.array([]), filtered_columns=(), **empty)
    text = _Page(pages.page(nothing)).text
    for expected in (
        "The table has no index",
        "The table has no files",
        "There was none yet",
        "unknown",
        "No scan was recorded yet",
    ):
        assert expected in text
    one = replace(FACTS, index_columns=("a",), shown_columns=("a",), cubes=(CubeBox((0.0, 1.0), (0.0, 1.0), 0, 1),))
    assert len(_svgs(pages.page(one))) == 7


LINES = [
    TableLine("a.<b>", 2_000, 0, 40, "failed", "USE_X: <it broke>", DayOfWork(2, 1, 5_000, 4_000), None,
              "CALL use.compact('<b>')", 700, "<Why>."),
    TableLine("c", None, None, None, "", "gone"),
    TableLine("d", 10, 5, 90, "", "", DayOfWork(), 3_000_000, "CALL use.optimize('d')", 900_000, "Small."),
]  # fmt: skip


def test_the_page_of_all_tables():
    page = _Page(lake_page(LINES, 1_700_000_000_000))
    assert page.open == []
    assert "b" not in {tag for tag, _ in page.tags}
    for expected in ("3 tables, the lowest score is 40", "a.<b>", "USE_X: <it broke>", "unknown", "5.0 kB"):
        assert expected in page.text
    # Those that cost most come first.
    assert page.text.index("3.0 MB", page.text.index("Cost")) < page.text.index("2.0 kB", page.text.index("Cost"))
    assert "There is no table." in _Page(lake_page([], 1)).text


def test_the_page_of_all_tables_has_sums_and_advice():
    text = lake_page(LINES, 1_700_000_000_000)
    page = _Page(text)
    assert "2.0 kB" in page.text[: page.text.index("What to do")]
    advice = page.text[page.text.index("What to do") : page.text.index("Health")]
    for expected in ("900.0 kB", "CALL use.compact('<b>')", "<Why>.", "700 bytes"):
        assert expected in advice
    assert "<code>CALL use.optimize(&#x27;d&#x27;)</code>" in text


def test_tables_are_linked_to_pages_beside_the_report(tmp_path):
    for name, content in {
        "db.t.html": "<!doctype html>",
        "db.u.html": "no page",
        "lake.html": "<!doctype html>",
    }.items():
        (tmp_path / name).write_text(content)
    names = ("spark_catalog.db.t", "spark_catalog.db.u", "spark_catalog.db.v", "spark_catalog.lake", "delta.`/x/db.t`")
    lines = [TableLine(name, 1, 0, 50, "", "") for name in names]
    pages = _pages_beside(str(tmp_path / "lake.html"), lines)
    assert pages == {"spark_catalog.db.t": "db.t.html"}
    assert _pages_beside(None, lines) == {}
    links = [attributes["href"] for tag, attributes in _Page(lake_page(lines, 1, pages)).tags if tag == "a"]
    assert set(links) == {"db.t.html"}


def test_a_day_of_work_counts_what_the_events_say():
    def event(state, inputs, outputs):
        line = json.dumps({"input_files_stats": inputs, "output_files_stats": outputs})
        return StoredEvent(line, "w", state, 1, "t", {})

    events = [event("committed", {"bytes": 10}, {"bytes": 7}), event("committed", None, {"bytes": "x"}),
              event("failed", {"bytes": 99}, None), event("ignored", None, None)]  # fmt: skip
    assert DayOfWork.of(events) == DayOfWork(2, 1, 10, 7)


def test_without_matplotlib_the_page_has_numbers_and_says_what_is_missing(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert 'pip install "use-spark[report]"' in plots.missing_package()
    text = pages.page(FACTS)
    page = _Page(text)
    assert page.open == []
    assert not {"svg", "figure", "details"} & {tag for tag, _ in page.tags}
    assert 'matplotlib is not installed: pip install "use-spark[report]"' in page.text
    assert "Bytes per band of weights" in page.text
    assert "of a fresh index" in page.text
    assert "Cubes over the index space" not in page.text


@pytest.mark.slow
def test_the_row_says_what_is_missing(spark, new_table, monkeypatch):
    table = new_table(NUMBERS)
    assert sql_ext.call(spark, "report", table=table.name).collect()[0].message is None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "use-spark[report]" in sql_ext.call(spark, "report", table=table.name).collect()[0].message
    assert sql_ext.call(spark, "report").collect()[0].message is None


@pytest.mark.slow
def test_the_report_of_a_table(spark, new_table, tmp_path):
    table = new_table(NUMBERS, index="x,y", cube_size=200, file_bytes="8kb")
    table.append(numbers(spark, 2_000)).index()
    table.append(numbers(spark, 100, 5_000))
    file = tmp_path / "report.html"
    (row,) = table.sql(f"CALL use.report('{{t}}', out => '{file}')")
    assert (row.path, row.html, row.bytes) == (str(file), None, file.stat().st_size)
    page = _Page(file.read_text())
    adds = list(table.replayed()[0].values())
    rows = sum(json.loads(add["stats"])["numRecords"] for add in adds)
    assert f"{rows:,}" in page.text
    assert f"{len(adds)} files." in page.text
    cubes = {(file.revision, block.cube_id) for file in table.files for block in file.blocks}
    assert f"{len(cubes)} cubes of the newest revision over x and y, as shares of the index space." in page.text
    inspected = sql_ext.table(spark, table.name).inspect.report(columns=["y"])
    assert (inspected.health, inspected.table) == (row.health, f"spark_catalog.{table.name}")
    assert "over y, as" in inspected.html
    assert inspected._repr_html_().startswith("<main")
    assert inspected.save(tmp_path / "b.html").read_text() == inspected.html
    (row,) = sql_ext.call(spark, "report").collect()
    lines = _Page(row.html).text
    assert f"spark_catalog.{table.name}" in lines
    assert row.health <= inspected.health
    with pytest.raises(sql_ext.UseError, match="table is missing"):
        sql_ext.call(spark, "report", columns=["x"])
    for name in ("a\0b", "x" * 5_000):
        with pytest.raises(sql_ext.UseError, match="a file on the driver"):
            sql_ext.call(spark, "report", out=name)
    table.sql(f"CALL use.report('{{t}}', out => '{file}')")  # An earlier page is replaced.
    (other := tmp_path / "other.html").write_text("no page")
    for arguments, text in (("columns => array('s')", "no column 's'"), ("columns => array()", "one or two"),
                            ("columns => array('x','x')", "one or two"), (f"out => '{tmp_path}'", "a file on the"),
                            ("out => '/nowhere/at/all.html'", "a folder that exists"),
                            (f"out => '{other}'", "this is another file")):  # fmt: skip
        with pytest.raises(Exception, match=text):
            table.sql(f"CALL use.report('{{t}}', {arguments})")
    assert other.read_text() == "no page"
