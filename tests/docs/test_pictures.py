"""The pictures show what the code does with real flights today."""

import json
import re
import sys

import pytest
from pages import ROOT
from pyspark.sql import functions as F

PICTURES = ROOT / "docs" / "pictures"
# Pixels: the column of a page on a phone, and its smallest label.
PHONE, SMALLEST_LABEL = 340, 9
sys.path.insert(0, str(PICTURES))


@pytest.fixture(scope="module")
def draw():
    import draw

    return draw


def _texts(file):
    return re.findall(r"<text[^>]*>([^<]*)</text>", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["cubes", "bands", "skipping", "levels", "revisions"])
def test_pictures_say_what_is_drawn_today(draw, name, tmp_path):
    checked_in, now = _texts(PICTURES / f"{name}.svg"), _texts(draw.save(name, tmp_path))
    assert len(now) > 5
    assert now == checked_in, "run python docs/pictures/draw.py, and read the texts beside the pictures again"


@pytest.mark.parametrize("file", sorted(PICTURES.glob("*.svg")), ids=lambda file: file.stem)
def test_labels_are_readable_on_a_phone(file):
    text = file.read_text(encoding="utf-8")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
    sizes = [float(a or b) for a, b in re.findall(r'font(?:-size)?: ([\d.]+)px|<text[^>]* font-size="([\d.]+)"', text)]
    assert sizes
    assert min(sizes) * PHONE / width >= SMALLEST_LABEL


def test_every_picture_is_shown_with_words_for_who_does_not_see_it():
    shown = {}
    for page in ("concepts", "index"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        shown |= {name: words for words, name in re.findall(r"!\[([^\]]*)\]\(pictures/([\w-]+)\.svg\)", text)}
    assert sorted(shown) == sorted(file.stem for file in PICTURES.glob("*.svg"))
    assert all(len(words) > 80 for words in shown.values())


def test_picture_of_bytes_shows_the_recorded_figures(tmp_path):
    import bytes_read

    assert bytes_read.save(tmp_path).read_bytes() == (PICTURES / "bytes-read.svg").read_bytes()
    results = json.loads(bytes_read.RESULTS.read_text(encoding="utf-8"))
    texts = _texts(PICTURES / "bytes-read.svg")
    for query, _ in bytes_read.GROUPS:
        read = bytes_read.shares(results)[query]
        assert all(bytes_read.percent(read[name]) in texts for name in bytes_read.SHOWN)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_words_beside_the_picture_of_bytes_are_its_figures(page):

    (words,) = re.findall(r"!\[([^\]]*)\]\([\w/]*bytes-read\.svg\)", (ROOT / page).read_text(encoding="utf-8"))
    shown = {text[:-2] for text in _texts(PICTURES / "bytes-read.svg") if re.fullmatch(r"[\d.]+ %", text)}
    assert len(shown) >= 6
    assert shown <= set(re.findall(r"\d+(?:\.\d+)?", words))


@pytest.mark.parametrize("page", ["bench/README.md", "docs/comparison.md"])
def test_pages_show_the_recorded_figures(page):
    import bytes_read

    results = json.loads(bytes_read.RESULTS.read_text(encoding="utf-8"))
    text = (ROOT / page).read_text(encoding="utf-8")
    for layout in results["layouts"]:
        lines = [line for line in text.splitlines() if line.startswith(f"| {layout['name']} |")]
        cells = " | ".join(lines)
        assert all(re.search(rf"\| {share:g}\b", cells) for share, _ in layout["reads"] or ()), layout["name"]


def test_numbers_in_the_words_are_those_of_the_pictures():
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    cubes = " ".join(_texts(PICTURES / "cubes.svg"))
    assert all(f": {count} flights" in cubes and re.search(rf"\b{count}\b", page) for count in (125, 500, 779))
    assert "3 of 28 cubes" in " ".join(_texts(PICTURES / "skipping.svg"))


def test_weights_in_the_pictures_are_those_of_spark(draw, spark):
    import indexed_flights

    rows = indexed_flights.read(0, 20_000)
    assert len(rows) > 10
    found = spark.createDataFrame(rows, "micros bigint, distance double").select(
        F.hash(F.expr("timestamp_micros(micros)"), "distance").alias("weight")
    )
    assert [row.weight for row in found.collect()] == [indexed_flights.weight(row) for row in rows]
