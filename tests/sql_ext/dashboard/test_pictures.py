"""The pictures: what is drawn, and that texts are escaped."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from fleet_fakes import fleet_of

from procedures.insight.report.facts import CubeBox
from sql_ext.dashboard.day_picture import day_picture
from sql_ext.dashboard.layout_picture import cube_picture, size_picture, size_table
from sql_ext.dashboard.saving_days import DayLine

CUBES = (CubeBox((0.0, 1.0), (0.0, 1.0), 0, 100), CubeBox((0.5, 1.0), (0.0, 0.5), 1, 1_000))


def _rectangles(text, kind):
    root = ET.fromstring(text)  # well-formed, also in HTML
    return [e.attrib for e in root.iter("rect") if kind in e.attrib.get("class", "").split()]


def test_cubes_lie_where_their_values_are():
    whole, part = _rectangles(cube_picture(CUBES, ["a", "b"]), "cube")
    assert [float(whole[name]) for name in ("x", "y", "width", "height")] == [40, 14, 300, 300]
    # The second column grows upwards.
    assert [float(part[name]) for name in ("x", "y", "width", "height")] == [190, 164, 150, 150]
    assert float(part["fill-opacity"]) > float(whole["fill-opacity"])
    assert float(part["stroke-width"]) < float(whole["stroke-width"])


@pytest.mark.parametrize("columns", [["<a>&\"'"], ["<a>&\"'", "b</text><script>"], ["a" * 500, "b" * 500]])
def test_names_of_columns_are_escaped_and_shortened(columns):
    text = cube_picture(CUBES, columns)
    assert {e.tag for e in ET.fromstring(text).iter()} == {"svg", "title", "rect", "text", "g"} - (
        {"g"} if len(columns) == 1 else set()
    )
    assert all(len(t) < 40 for t in re.findall(r"<text[^>]*>([^<]*)</text>", text) if "&" not in t)


def test_files_are_counted_by_size():
    rows = size_table(np.array([1e6, 1e6, 5e8, 3.0]), [True, False, True, True])
    assert sum(indexed for _, indexed, _ in rows) == 3
    assert sum(others for _, _, others in rows) == 1
    assert len(rows) <= 16
    assert rows[-1] == ("536.9 MB", 1, 0)
    assert len(_rectangles(size_picture(rows), "first")) == len(rows)
    assert size_table(np.array([]), []) == []


def test_days_are_bars_of_what_was_saved_and_spent():
    days = fleet_of(50).days
    text = day_picture(days)
    highest = max(range(30), key=lambda n: days[n].saved)
    bars = _rectangles(text, "first")
    assert len(bars) == len(_rectangles(text, "second")) == 30
    assert max(range(30), key=lambda n: float(bars[n]["height"])) == highest
    assert ET.fromstring(day_picture([DayLine(days[0].day, 0, 0)])) is not None
