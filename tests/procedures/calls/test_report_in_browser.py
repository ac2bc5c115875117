"""The report in headless Chromium: nothing is blank, cut off or overlapping, wide and narrow, light and dark."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from report_facts import FACTS

from procedures.insight.report.facts import CubeBox, Event, FilteredColumns, VersionFacts
from procedures.insight.report.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

_HEIGHT = 9_000
# Writes the boxes of the pictures, of their texts and of what is drawn in the colours of the data.
_MEASURE = """<script>
const box = e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const colors = ["--first", "--second", "--third", "--fourth"];
const boxes = [...document.querySelectorAll("svg")].map(svg => ({
  name: svg.getAttribute("aria-label"), box: box(svg),
  ticks: ["xtick", "ytick"].map(k => svg.querySelectorAll(`[id*=${k}] text`).length),
  texts: [...svg.querySelectorAll("text")].map(t => ({text: t.textContent, box: box(t)})),
  marks: [...svg.querySelectorAll("[style]")].filter(
    e => colors.some(c => e.getAttribute("style").includes(c))).map(box)}));
const measured = {boxes, width: document.documentElement.scrollWidth, height: document.body.scrollHeight};
document.body.insertAdjacentHTML("beforeend", "<pre id=measured></pre>");
document.getElementById("measured").textContent = JSON.stringify(measured);
</script>"""

RANDOM = np.random.default_rng(5)
CROWDED = replace(
    FACTS,
    name="a_catalog.a_database_with_a_long_name.a_table_with_an_even_longer_name_that_nobody_would_want_to_type",
    index_columns=("a_column_with_a_name_of_more_than_thirty_characters", "another.field.of_a_structure_with_a_name"),
    shown_columns=("a_column_with_a_name_of_more_than_thirty_characters", "another.field.of_a_structure_with_a_name"),
    cubes=tuple(
        CubeBox((x / 16, (x + 1) / 16), (y / 16, (y + 1) / 16), 4, 10 * (x + y)) for x in range(16) for y in range(16)
    ),
    all_cubes=300,
    sizes=np.exp(RANDOM.normal(15, 3, 5_000)),
    levels=RANDOM.integers(-1, 9, 5_000).astype(float),
    depths=tuple((depth, 1_234_567_890 * (depth + 1)) for depth in range(25)),
    bands=tuple((10.0**-power, 10**13 // 3**power) for power in range(8, -1, -1)),
    samples=tuple((f, 1e12 * min(1, 20 * f), 1e12 * min(1, 1.2 * f)) for f in (0.001, 0.01, 0.1, 0.3, 0.5, 1.0)),
    versions=tuple(VersionFacts(123_456_000 + n, n / 8, 1 - n / 8, None) for n in range(8)),
    events=tuple(
        Event(
            1_700_000_000_000 + n * 10**8, "optimize", "S", "failed" if n % 7 == 0 else "committed", n * 10**11, 10**10
        )
        for n in range(200)
    ),
    filtered_columns=tuple(FilteredColumns(f"column_{n}, another_column", n, 0.5, 0.5) for n in range(20)),
)


def _chromium(*arguments):
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "replace")


def _intersection(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0) * max(height, 0)


def _area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def _problems(measured, width):
    """What is wrong with the places of the pictures, their texts and their marks."""
    problems = []
    if measured["width"] > width:
        problems.append(f"the page is {measured['width']} px wide")
    pictures = measured["boxes"]
    for above, below in pairwise(pictures):
        if above["box"][3] > below["box"][1]:
            problems.append(f"{below['name']} begins above the end of {above['name']}")
    for picture in pictures:
        left, top, right, bottom = picture["box"]
        for one in picture["texts"]:
            box = one["box"]
            if box[0] < left - 1 or box[1] < top - 1 or box[2] > right + 1 or box[3] > bottom + 1:
                problems.append(f"{picture['name']}: {one['text']!r} is cut off")
        for one, other in combinations(picture["texts"], 2):
            # Boxes of texts are a little larger than the letters.
            if _intersection(one["box"], other["box"]) > 0.2 * min(_area(one["box"]), _area(other["box"])):
                problems.append(f"{picture['name']}: {one['text']!r} covers {other['text']!r}")
        if min(picture["ticks"]) < 1 or sum(picture["ticks"]) < 4:
            problems.append(f"{picture['name']} has {picture['ticks']} labels at its axes")
        drawn = [mark for mark in picture["marks"] if _intersection(mark, picture["box"]) > 0 or mark[0] < mark[2]]
        if not drawn:
            problems.append(f"{picture['name']} has no marks")
    return problems


def _blank(image, measured):
    """Pictures whose pixels are nearly all alike."""
    names = []
    for picture in measured["boxes"]:
        pixels = np.asarray(image.crop([round(end) for end in picture["box"]]).convert("RGB"), float)
        background = np.median(pixels.reshape(-1, 3), axis=0)
        differs = np.abs(pixels - background).max(axis=2) > 30
        if differs.mean() < 0.005 or pixels.std() < 5:
            names.append(picture["name"])
    return names


@pytest.mark.parametrize("facts", [FACTS, CROWDED], ids=["few", "crowded"])
@pytest.mark.parametrize(("width", "options"), [(1000, []), (500, []), (1000, ["--force-dark-mode"])])
def test_pictures_are_whole_and_do_not_overlap(tmp_path, facts, width, options):
    from PIL import Image

    file = tmp_path / "report.html"
    file.write_text(page(facts).replace("</body>", f"{_MEASURE}</body>"), encoding="utf-8")
    common = [*options, f"--window-size={width},{_HEIGHT}"]
    text = _chromium(*common, "--dump-dom", file.as_uri())
    measured = json.loads(html.unescape(re.search(r'<pre id="measured">(.*?)</pre>', text, re.DOTALL)[1]))
    assert len(measured["boxes"]) == 7
    assert _problems(measured, width) == []
    _chromium(*common, f"--screenshot={tmp_path / 'report.png'}", file.as_uri())
    with Image.open(tmp_path / "report.png") as image:
        assert image.size == (width, _HEIGHT)
        paper = image.convert("L").getpixel((2, 2))
        assert (paper < 60) == bool(options), "the page follows the mode of the browser"
        assert _blank(image, measured) == []


def test_blank_and_overlapping_pictures_are_noticed(tmp_path):
    """The checks themselves, on pictures with faults."""
    from PIL import Image

    text = {"text": "a", "box": [10, 10, 50, 20]}
    good = {"name": "good", "box": [0, 0, 100, 100], "texts": [text], "marks": [[1, 1, 9, 9]], "ticks": [3, 3]}
    faults = {"texts": [text, {**text, "text": "b"}], "marks": [], "ticks": [0, 4]}
    problems = _problems({"width": 900, "boxes": [good, {**good, "box": [0, 50, 100, 150], **faults}]}, 800)
    expected = ("900 px wide", "begins above the end of good", "'a' is cut off", "'a' covers 'b'", "no marks", "[0, 4]")
    assert [part for part in expected if not any(part in problem for problem in problems)] == []
    assert _blank(Image.new("RGB", (200, 200), "white"), {"boxes": [good]}) == ["good"]
